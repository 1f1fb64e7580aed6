"""Arrays that a caller gives, made our own: what is proved of them must not change with the caller's copy."""

from __future__ import annotations

from typing import Any

import numpy as np


def owned(given: Any, dtype: Any = None) -> np.ndarray:
    """A copy that nobody can write into."""
    return unwritable(np.array(given, dtype=dtype))


def unwritable(array: np.ndarray) -> np.ndarray:
    """The same one: what is handed out and used again must not change with what its reader does."""
    array.setflags(write=False)
    return array
