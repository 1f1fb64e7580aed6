"""Python processes that we start do not import from the folder that they start in: it may be a stranger's.

``python -m`` and ``python -c``, by which workers and their helpers start, put that folder first on the path: a
``multiprocessing.py`` there would be run. The caller's own path follows later, as the caller has it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SAFE_PATH = "PYTHONSAFEPATH"
_holders: list[str | None] = []
_holding = threading.Lock()


@contextmanager
def nothing_from_here() -> Iterator[None]:
    """Of processes that start meanwhile. Two threads may be in here at once; the last one to leave puts things back."""
    with _holding:
        _holders.append(os.environ.get(_SAFE_PATH))
        os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        with _holding:
            before = _holders.pop()
            if before is None:
                os.environ.pop(_SAFE_PATH, None)
            else:
                os.environ[_SAFE_PATH] = before
