"""Writing files so that an interrupt or a full disk leaves the previous ones whole: write beside, then rename."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from thereexists.core.atomic_files import filled_beside, the_error_in_words
from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import parse_json
from thereexists.core.modes import as_the_umask_says
from thereexists.core.regular_files import read_regular
from thereexists.core.replaced_folders import fresh_beside, put_in_place, recover

MOST_BYTES = 256 << 20  # of a file of records
RESULT = "result.json"  # of one training, beside its model


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """``write`` fills a file beside ``path``, which takes its place only when it is complete."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"Nothing can be written to the folder {path.parent}: {error.strerror}.") from error
    with the_error_in_words(path), filled_beside(path) as beside:
        write(beside)


def write_json(path: Path, record: dict[str, Any]) -> None:
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    # Half of a surrogate pair, which JSON may name, is not in UTF-8; it is written as JSON writes it.
    content = text.encode("utf-8", "backslashreplace")
    write_atomically(path, lambda beside: beside.write_bytes(content))


def read_json(path: Path) -> dict[str, Any]:
    record = parse_json(read_regular(path, MOST_BYTES, InvalidInput), str(path), InvalidInput, "a readable JSON file")
    if not isinstance(record, dict):
        raise InvalidInput(f"{path} must hold one JSON object; it holds a {type(record).__name__}.")
    return record


def replace_folder(path: Path, fill: Callable[[Path], Any]) -> None:
    """``fill`` writes a folder beside ``path``; only when it is complete does it take the place of the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with fresh_beside(path) as beside:
        fill(beside)
        as_the_umask_says(beside)
        put_in_place(beside, path)


def current(path: Path, mark: str) -> Path | None:
    """The last complete folder written by ``replace_folder``, in which ``mark`` is a file, or None."""
    recover(path, lambda old: (old / mark).is_file(), path.name)
    return path if path.is_dir() else None
