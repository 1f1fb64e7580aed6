"""The folder that somebody names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from thereexists.core.authors_word import shortened
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import shown
from thereexists.core.plain_text import is_text

MOST_BYTES = 255  # of a name, on every file system in use
MOST_IN_ALL = 4000  # Linux takes 4,095; the files inside have names too


def folder_named(given: Any) -> Path:
    """As a path; whatever names no folder is refused, a witness in place of its folder among it."""
    if not isinstance(given, str | os.PathLike):
        raise InvalidInput(f"A folder is named by a text or a path; got {shown(given)} instead.")
    path = Path(os.fsdecode(given))
    wrong = next((part for part in path.parts if _no_name(part)), None)
    if wrong is not None:
        raise InvalidInput(
            f"A name of a folder is valid text of at most {MOST_BYTES} bytes without the character NUL; got "
            f"{shown(shortened(wrong, 40))} instead."
        )
    if len(os.fspath(path).encode()) > MOST_IN_ALL:
        raise InvalidInput(
            f"The path of a folder has at most {MOST_IN_ALL:,} bytes; got {shown(os.fspath(path))} instead."
        )
    return path


def _no_name(part: str) -> bool:
    """Half of a surrogate pair may name a folder, but no file of weights can be read there."""
    return "\0" in part or not is_text(part) or len(part.encode()) > MOST_BYTES
