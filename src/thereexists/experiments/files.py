"""Writing files so that an interrupt or a full disk leaves the previous ones whole: write beside, then rename."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from thereexists.core.atomic_files import filled_beside, the_error_in_words
from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import parse_json
from thereexists.core.regular_files import read_regular

MOST_BYTES = 256 << 20  # of a file of records
RESULT = "result.json"  # of one training, beside its model


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """``write`` fills a file beside ``path``, which takes its place only when it is complete."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.rmdir(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
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
    """``fill`` writes a folder beside ``path``; only when it is complete does it take the place of the old one.

    Between the two renames the old folder is called ``path.previous``; a reader finds the good one with ``current``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    previous = _previous(path)
    try:
        fill(beside)
        os.chmod(beside, 0o755)
        if path.exists():
            shutil.rmtree(previous, ignore_errors=True)
            path.rename(previous)
        beside.rename(path)
        shutil.rmtree(previous, ignore_errors=True)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def current(path: Path) -> Path | None:
    """The last complete folder written by ``replace_folder``, or None."""
    return next((folder for folder in (path, _previous(path)) if folder.is_dir()), None)


def _previous(path: Path) -> Path:
    return path.with_name(path.name + ".previous")
