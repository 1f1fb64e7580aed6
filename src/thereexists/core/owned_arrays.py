"""Arrays that a caller gives, made our own: what is proved of them must not change with the caller's copy."""

from __future__ import annotations

from typing import Any

import numpy as np


def owned(given: Any, dtype: Any = None) -> np.ndarray:
    """A copy that nobody can write into."""
    copy = np.array(given, dtype=dtype)
    copy.setflags(write=False)
    return copy
