"""What a caller's function prints is not our output: it goes to stderr.

``contextlib.redirect_stdout`` puts back what it found. Of two threads the later one finds stderr there, puts that back,
and everything that is printed afterwards is lost on whoever reads stdout. So the threads that are inside are counted.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_inside: list[Any] = []  # for every ``with`` block under way, what was stdout before the first of them
_lock = threading.Lock()


@contextmanager
def printed_to_stderr() -> Iterator[None]:
    with _lock:
        _inside.append(_inside[0] if _inside else sys.stdout)
        sys.stdout = sys.stderr
    try:
        yield
    finally:
        with _lock:
            before = _inside.pop()
            if not _inside:
                sys.stdout = before
