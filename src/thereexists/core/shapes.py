"""Shape annotations. They come from jaxtyping; without it (a bare GPU machine) they mean nothing and cost nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Integer
else:
    try:
        from jaxtyping import Bool, Float, Int, Integer
    except ImportError:

        class _AnyShape:
            def __class_getitem__(cls, item):
                return item[0]

        Bool = Float = Int = Integer = _AnyShape

__all__ = ["Bool", "Float", "Int", "Integer"]
