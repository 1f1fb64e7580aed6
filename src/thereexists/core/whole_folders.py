"""A folder of many files, written whole or not at all: filled beside under a fresh name, then renamed.

Only an empty folder is replaced, or one that carries the same mark (a file that every folder of its kind has, with the
SHA-256 of each of the others), no other file, and every file as it was written: what somebody changed or added is kept.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeVar

from thereexists.core.atomic_files import no_empty_folders, the_error_in_words
from thereexists.core.errors import InvalidInput
from thereexists.core.modes import as_the_umask_says
from thereexists.core.one_writer import one_writer
from thereexists.core.regular_files import file_sha256, read_regular
from thereexists.core.replaced_folders import fresh_beside, put_in_place, recover
from thereexists.core.storage import check_elsewhere, check_place

T = TypeVar("T")
MOST_FILES, MOST_MARK = 1 << 20, 1 << 28  # that are looked at


def check_free(folder: Path, mark: str, what: str) -> None:
    """Whether ``folder`` may be written, before any work; ``what``: "an export", "a suite"."""
    recover(folder, lambda old: (old / mark).is_file(), what.split()[-1])
    check_elsewhere(folder)
    _refuse_strange(folder, mark, what)
    check_place(folder)


def _refuse_strange(folder: Path, mark: str, what: str) -> None:
    if os.path.lexists(folder):
        strange = _strange(folder, mark) if folder.is_dir() else "is a file"
        if strange is not None:
            raise InvalidInput(
                f"{folder} is not {what} as it was written: it {strange}; it is left alone. Choose another folder with "
                "--out, or move this one away."
            )


def _strange(folder: Path, mark: str) -> str | None:
    """What is wrong with replacing a folder: it has to be empty, or to hold what the mark lists, unchanged."""
    below = (file for file in folder.rglob("*") if file.is_symlink() or not file.is_dir())
    found = {file.relative_to(folder).as_posix() for file in itertools.islice(below, MOST_FILES)}
    if mark in found:  # Python, which has run a script of ours there, may have left its own
        found = {name for name in found if not fnmatch(name, "*__pycache__/*.pyc")}
    if mark not in found:
        return f"holds {min(found)}" if found else None
    try:
        listed = dict(json.loads(read_regular(folder / mark, MOST_MARK, InvalidInput))["files"])
    except (InvalidInput, ValueError, KeyError, TypeError, RecursionError):
        return f"holds a {mark} that does not list its files and their SHA-256"
    more = found - listed.keys() - {mark}
    if more:
        return f"also holds {min(more)}"
    changed = [name for name in found - {mark} if _hash(folder / name) != listed[name]]
    return f"holds {min(changed)}, which was changed since" if changed else None


def _hash(file: Path) -> str | None:
    """None of what cannot be read: a link that leads nowhere, a pipe."""
    try:
        return None if file.is_symlink() else file_sha256(file, InvalidInput)
    except InvalidInput:
        return None


def appears(folder: Path, mark: str, what: str, fill: Callable[[Path], T]) -> T:
    """What ``fill`` says of the folder that it filled; the folder is there when it is complete.

    The place is ours from before the work to its end, and is looked at again then: minutes may have passed.
    """
    with no_empty_folders(folder):
        check_free(folder, mark, what)
        with one_writer(folder), the_error_in_words(folder), fresh_beside(folder) as beside:
            said = fill(beside)
            as_the_umask_says(beside)
            _refuse_strange(folder, mark, what)
            put_in_place(beside, folder)
    return said
