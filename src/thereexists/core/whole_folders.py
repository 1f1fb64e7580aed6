"""A folder of many files, written whole or not at all: filled beside under a fresh name, then renamed.

Only an empty folder, or one that carries the same mark (a file that every folder of its kind has), is replaced.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from thereexists.core.atomic_files import the_error_in_words
from thereexists.core.errors import InvalidInput
from thereexists.core.storage import check_place

T = TypeVar("T")


def check_free(folder: Path, mark: str, what: str) -> None:
    """Whether ``folder`` may be written, before any work; ``what``: "an export", "a suite"."""
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / mark).is_file())):
        raise InvalidInput(f"{folder} exists and is not {what}; it is left alone. Choose another folder with --out.")
    check_place(folder)


def appears(folder: Path, fill: Callable[[Path], T]) -> T:
    """What ``fill`` says of the folder that it filled; the folder is there when it is complete."""
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        with the_error_in_words(folder):
            said = fill(beside)
            os.chmod(beside, 0o755)
            if folder.exists():
                shutil.rmtree(folder)
            beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return said
