"""The one writer of files: written under a temporary name beside it, then renamed; whole or not at all.

A folder may be a stranger's, and hold a link under any name that can be guessed. So the file beside gets a random name
and is created, never opened (``O_CREAT | O_EXCL | O_NOFOLLOW``): nothing that is there already is written through. The
rename then replaces the *name*: a link at the target is replaced, what it points to is not touched.

Its writer holds the file beside (``held.py``) until then: one that nobody holds is what a killed writer has left, and
the next one removes it once its own is in place.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from safetensors import SafetensorError

from thereexists.core.errors import InvalidInput, Obstructed
from thereexists.core.held import hold, let_go
from thereexists.core.modes import as_the_umask_says

PART = "thereexists-part"  # how the name of a file ends that is not complete yet: no user calls one of theirs so
MOST_REMOVED = 1 << 10


def write_beside(path: str | Path, content: bytes | str | Callable[[BinaryIO], Any]) -> None:
    """Make ``content`` the file at ``path``; a function of it writes into the open stream."""
    with the_error_in_words(Path(path)), filled_beside(path, content):
        pass


@contextmanager
def filled_beside(path: str | Path, content: bytes | str | Callable[[BinaryIO], Any] = b"") -> Iterator[Path]:
    """The name of the file that takes its place after the ``with`` block: complete, or for writers that want a name."""
    path = Path(path)
    _check_target(path)
    with _fresh(path) as (handle, beside):
        try:
            with os.fdopen(handle, "wb", closefd=False) as stream:
                if callable(content):
                    content(stream)
                else:
                    stream.write(content.encode("utf-8") if isinstance(content, str) else content)
            as_the_umask_says(beside)
            yield beside
            os.replace(beside, path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
    remove_parts(path)  # and no earlier: ``certificates/block_sums.py`` may need one until this file is there


@contextmanager
def _fresh(path: Path) -> Iterator[tuple[int, Path]]:
    """An empty file beside ``path``, open, and held until the ``with`` block ends."""
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=f".{PART}", dir=path.parent)
        try:
            hold(handle)
            if os.path.lexists(name):
                yield handle, Path(name)
                return
        finally:
            os.close(handle)


def remove_parts(path: Path) -> None:
    """What killed writers of this file have left; what a living one holds stays."""
    for part in parts_of(path, most=MOST_REMOVED):
        with let_go(part) as is_left, suppress(OSError):
            if is_left:
                part.unlink()


@contextmanager
def no_empty_folders(path: Path) -> Iterator[None]:
    """Whoever fails takes the folders above ``path`` along that were not there before, if nothing is in them."""
    new = missing_above(path)
    try:
        yield
    except BaseException:
        remove_empty(new)
        raise


def missing_above(path: Path) -> list[Path]:
    """The folders above ``path`` that do not exist, the lowest first."""
    return [folder for folder in path.parents if not os.path.lexists(folder)]


def remove_empty(folders: list[Path]) -> None:
    """One after the other; a folder that holds something stays, and so do those above it."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def parts_of(path: Path, most: int = 16) -> list[Path]:
    """What killed writers of this file have left, if it is a file and no link: the newest ``most`` of them."""
    names = [name for name in _names(path.parent) if is_part_of(name, path.name)]
    found = [(path.parent / name, about) for name in names if (about := _about(path.parent / name)) is not None]
    real = [(about.st_mtime, place) for place, about in found if stat.S_ISREG(about.st_mode)]
    return [place for _, place in sorted(real, reverse=True)[:most]]


def is_part_of(name: str, of: str) -> bool:
    """Whether a file of this name is what a killed writer of ``of`` leaves."""
    middle = name.removeprefix(f".{of}.").removesuffix(PART)
    return name.startswith(f".{of}.") and name.endswith(PART) and _is_random(middle)


@contextmanager
def the_error_in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Obstructed(f"Cannot write {path}: {error.strerror or error}.") from error
    except SafetensorError as error:  # its own writer's, of a disk that is full
        raise Obstructed(f"Cannot write {path}: {error}.") from error


def _is_random(middle: str) -> bool:
    return re.fullmatch(r"[a-z0-9_]{8}\.", middle) is not None  # as mkstemp names


def _check_target(path: Path) -> None:
    """A link is replaced; a folder or a device is not replaced."""
    about = _about(path)
    if about is None or stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode):
        return
    what = "a folder" if stat.S_ISDIR(about.st_mode) else "no ordinary file"
    raise InvalidInput(f"Cannot write {path}: it is {what}; move it away, or give another name.")


def _about(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
