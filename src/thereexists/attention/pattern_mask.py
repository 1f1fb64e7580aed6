"""What our mask function hands to a transformers model instead of a mask: nothing that other code can use.

A model that calls its attention through transformers' registry passes this object on to our attention function, which
reads the fields. A model that computes its attention itself adds the mask to its logits, or fills with it, or slices
it: every such use raises an error that names the model. Had we returned None, those models would see the future; a
dense n × n mask would keep them right but ignore the pattern, and cost n² bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from thereexists.attention.own_masks import Own
from thereexists.core.errors import InvalidInput

_OPERATORS = (
    "add radd iadd sub rsub isub mul rmul imul truediv rtruediv matmul rmatmul and rand or ror xor rxor invert neg pos "
    "lt le gt ge bool len iter float int index setitem contains"
)


def not_driven(owner: str, what: str) -> InvalidInput:
    """The refusal of a model that computes attention of its own."""
    return InvalidInput(
        f"{owner} computes attention outside transformers' AttentionInterface ({what}), where 'thereexists' cannot "
        "apply a pattern; load it with attn_implementation='eager', or build on te.attention.SparseAttention."
    )


@dataclass(frozen=True, eq=False)
class PatternMask:
    """Causal or not, which keys are padding, and where the queries stand; a pattern that was given is the module's.

    A mask of the model's own is ``own``, where it was understood, or ``pairs``, padding included, where it was not.
    """

    owner: str  # the model, for errors
    own: Own
    batch: int
    rows: int  # queries
    keys: int  # keys that hold something: a cache may have empty places after them
    held: int  # those that the cache announced, with such places
    start: int  # the position of the first key: a cache may have dropped others before it
    padding: Tensor | None  # (batch, keys), True at real tokens; None: no padding
    pairs: Tensor | None = None  # (batch, 1, rows, keys)

    @property
    def causal(self) -> bool:
        return self.own.causal

    @property
    def plain(self) -> bool:
        """Whether causality and padding are all there is."""
        return self.own.plain and self.pairs is None

    # What models look at before they pass a mask on.
    ndim = 4

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.batch, 1, self.rows, self.keys

    def dim(self) -> int:
        return 4

    def to(self, *_: Any, **__: Any) -> PatternMask:
        return self

    def contiguous(self) -> PatternMask:
        return self

    def __getitem__(self, index: Any) -> PatternMask:
        """``mask[:, :, :, :keys]`` and the like, which cut nothing off; anything else is a use of its own."""
        if isinstance(index, tuple) and index and isinstance(index[-1], slice):
            last, whole = index[-1], all(i in (Ellipsis, slice(None)) for i in index[:-1])
            if whole and not last.start and last.step is None and (last.stop is None or last.stop >= self.keys):
                return self
        raise not_driven(self.owner, f"it cuts its mask by {index}")

    # What models do that apply a mask themselves.
    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        mask = next(x for x in _flat((args, kwargs or {})) if isinstance(x, PatternMask))
        raise not_driven(mask.owner, f"it calls {getattr(function, '__name__', function)} with its mask")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # Python's own questions, such as how to copy
        raise not_driven(self.owner, f"it asks its mask for '{name}'")


def _refuse(name: str) -> Any:
    def refuse(self: PatternMask, *_: Any) -> Any:
        raise not_driven(self.owner, f"it uses {name} on its mask")

    return refuse


for _name in _OPERATORS.split():
    setattr(PatternMask, f"__{_name}__", _refuse(f"__{_name}__"))


def _flat(x: Any) -> list[Any]:
    if isinstance(x, dict):
        return [y for value in x.values() for y in _flat(value)]
    return [y for value in x for y in _flat(value)] if isinstance(x, list | tuple) else [x]
