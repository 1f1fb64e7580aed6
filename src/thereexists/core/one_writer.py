"""One process writes a folder at a time: a second one is refused before any work.

The lock is a file beside the folder, ``.name.lock``, held by ``flock``: the system lets it go when its process ends,
however that ends, so a killed build blocks no other. Only then is the name taken away; a name that was taken away while
we waited for it is no lock, and we take a new one.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from thereexists.core.errors import Obstructed

try:
    import fcntl
except ImportError:  # Windows: renames alone keep folders whole there
    fcntl = None


@contextmanager
def one_writer(path: Path) -> Iterator[None]:
    """Hold the place of a folder that is to be written; the folder above it exists."""
    if fcntl is None:
        yield
        return
    name = path.parent / f".{path.name}.lock"
    try:
        handle = _locked(name, path)
    except OSError as error:  # where no file can be made beside the folder none can take its place either
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS) or os.path.lexists(name):
            raise  # a lock that is there and not ours to open is somebody's
        yield
        return
    try:
        yield
    finally:
        try:
            with suppress(OSError):
                name.unlink()
        finally:
            os.close(handle)


def _locked(name: Path, path: Path) -> int:
    while True:
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        if os.fstat(handle).st_size:
            os.close(handle)
            raise Obstructed(f"{name} is where {path} would be locked, and holds something; choose another folder.")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # pyright: ignore[reportOptionalMemberAccess]
        except BlockingIOError:
            os.close(handle)
            raise Obstructed(
                f"Another process is writing {path} at this moment; wait for it, or choose another folder."
            ) from None
        except OSError:  # a file system without locks
            return handle
        if _is_still(name, handle):
            return handle
        os.close(handle)


def _is_still(name: Path, handle: int) -> bool:
    """Whether the name still stands for the file that we hold."""
    try:
        return os.path.samestat(os.stat(name, follow_symlinks=False), os.fstat(handle))
    except OSError:
        return False
