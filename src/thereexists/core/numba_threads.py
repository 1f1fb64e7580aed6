"""Numba's threads, started so that torch does not notice.

Over OpenMP, starting them sets the number of threads for the whole process, and torch would forget the one that
it was given (``OMP_NUM_THREADS``, ``torch.set_num_threads``): small tensors are then a hundred times slower.
"""

from __future__ import annotations

import sys
from functools import cache

import numba


@cache
def start_threads() -> None:
    """Before the first parallel kernel of a process."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else None
    numba.set_num_threads(numba.get_num_threads())  # which starts them all
    if torch is not None:
        torch.set_num_threads(before)
