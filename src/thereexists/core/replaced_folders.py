"""How a folder takes the place of another: filled beside under a fresh name, then renamed; kills lose nothing.

A folder that is being filled is called ``.name.xxxxxxxx.thereexists-new`` and held by its writer (``held.py``): one
that no writer holds is what a killed one has left, and the next writer of the same place removes it. A folder that has
to make room is ``.name.xxxxxxxx.thereexists-old/previous`` between two renames; whoever finds it there and nothing at
its place puts it back. The eight random letters stand between the name and its end, so that no folder beside it with a
longer name is taken for one of these; and no user ends a name so.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from thereexists.core.errors import InvalidInput, Recovered
from thereexists.core.held import held, let_go

_NEW, _OLD = "thereexists-new", "thereexists-old"
_RANDOM = re.compile(r"[a-z0-9_]{8}")  # as mkdtemp names
_ATTEMPTS = 8


@contextmanager
def fresh_beside(path: Path) -> Iterator[Path]:
    """An empty folder beside ``path`` to be filled; it is gone afterwards, unless it was put in its place."""
    remove_left(path)
    while True:
        beside = fresh_folder(path)
        with held(beside) as is_there:
            if not is_there:
                continue
            try:
                yield beside
            finally:
                shutil.rmtree(beside, ignore_errors=True)
            return


def fresh_folder(path: Path) -> Path:
    """Nobody holds it yet: whoever is killed now has left it."""
    return Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=f".{_NEW}", dir=path.parent))


def put_in_place(beside: Path, path: Path) -> None:
    """Rename ``beside`` to ``path``; what is already there steps aside first and comes back if the move fails.

    Should another process recover it between our two renames, the place is taken again, and we begin again.
    """
    for _ in range(_ATTEMPTS):
        old = None
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=f".{_OLD}", dir=path.parent))
            path.rename(old / "previous")
        try:
            beside.rename(path)
        except OSError:
            if path.exists():
                continue
            if old is not None:
                (old / "previous").rename(path)
                old.rmdir()
            raise
        for left in _beside(path, _OLD):
            _remove_old(left, path, mine=left == old)
        return
    raise InvalidInput(f"{path} is being written by another process; save again, or choose another folder.")


def _remove_old(left: Path, path: Path, mine: bool) -> None:
    """What has made room for ``path``: here, or (of the same kind, by a record that both have) in a writer that was
    killed. What one of another kind has set aside may be the only copy. The name goes first: half a folder is no copy.
    """
    names, previous = set(os.listdir(left)), left / "previous"
    if names - {"previous", "gone"}:
        return
    if "previous" in names:
        if not mine and not any((previous / record.name).is_file() for record in path.glob("*.json")):
            return
        previous.rename(left / "gone")
    shutil.rmtree(left, ignore_errors=True)


def recover(path: Path, is_ours: Callable[[Path], bool], what: str) -> None:
    """Put back what a writer that was killed between its two renames has left aside, and say so."""
    if path.exists() or not path.name:
        return
    hidden = [old for left in _beside(path, _OLD) if (old := left / "previous").exists()]
    for old in sorted(hidden, key=lambda folder: folder.lstat().st_mtime, reverse=True):
        if old.is_symlink() or not is_ours(old):
            continue
        try:
            old.rename(path)
            old.parent.rmdir()
        except OSError:
            if not path.exists():
                continue
        told = f"A save to {path} was interrupted; the {what} that was there before has been put back."
        warnings.warn(told, Recovered, stacklevel=4)
        return


def remove_left(path: Path) -> None:
    """The folders of killed writers of this place; nothing else has such a name, and no living writer lets it go."""
    for left in _beside(path, _NEW):
        with let_go(left) as is_left:
            if is_left:
                shutil.rmtree(left, ignore_errors=True)


def _beside(path: Path, end: str) -> list[Path]:
    """The folders ``.name.xxxxxxxx.end``, no link followed."""
    found = path.parent.glob(f"{glob.escape(f'.{path.name}.')}*.{end}")
    letters = slice(len(path.name) + 2, -len(end) - 1)
    return [left for left in found if _RANDOM.fullmatch(left.name[letters]) and not left.is_symlink() and left.is_dir()]
