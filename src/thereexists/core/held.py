"""Whether what stands beside a place, under a name that only we give, belongs to a writer that is alive.

A writer holds its file or folder by a lock (``flock``), which the system lets go when its process ends, however that
ends. What no writer holds was left by one that was killed, and the next writer of the same place removes it. Between
making it and locking it a writer may lose it to such a removal: it looks whether it is still there, and makes another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: what killed writers leave stays there
    fcntl = None


def hold(handle: int) -> None:
    """Lock an open file until it is closed, after whoever looks at it at this moment."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks: what is left there stays
            fcntl.flock(handle, fcntl.LOCK_EX)


@contextmanager
def held(folder: Path) -> Iterator[bool]:
    """Lock a folder that was made a moment ago; whether it is still there."""
    with _opened(folder) as handle:
        if handle is not None:
            hold(handle)
        yield folder.is_dir()


@contextmanager
def let_go(place: Path) -> Iterator[bool]:
    """Whether no living writer holds it, which is so until the block ends. False where nothing can be locked."""
    with _opened(place) as handle:
        yield handle is not None and _is_free(handle)


@contextmanager
def _opened(place: Path) -> Iterator[int | None]:
    """None of what is not there, is a link, or may not be looked at; and where nothing can be locked."""
    if fcntl is None:
        yield None
        return
    try:
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def _is_free(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # pyright: ignore[reportOptionalMemberAccess]
    except OSError:
        return False
    return True
