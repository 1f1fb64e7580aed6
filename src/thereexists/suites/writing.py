"""The folder of a suite as we write it: it appears when all of it is there, and its record comes last."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from thereexists._version import __version__
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import seed_from, whole
from thereexists.core.whole_folders import appears
from thereexists.suites.folders import MARK, MOST, VERSION
from thereexists.suites.hashes import sha256

MOST_WORKERS = 1024  # processes of this machine


def suite_appears(
    folder: Path, what: str, count: int, seed: int, workers: int, fill: Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    """A suite of ``count`` things, each called ``what``; ``fill(beside, count, seed)`` writes it and sums it up."""
    whole(workers, "'workers'", 1, MOST_WORKERS)
    count, seed = whole(count, "'count'"), seed_from(seed)
    if not 1 <= count <= MOST:
        raise InvalidInput(f"A suite needs at least 1 {what}, and at most {MOST:,}; got {count:,}.")
    return appears(folder, MARK, "a suite", partial(fill, count=count, seed=seed))


def seal(beside: Path, texts: dict[str, str], form: str, seed: int, count: int, own: dict[str, Any]) -> dict[str, Any]:
    """The pages that every suite of this form has, then the record: its ``own`` entries, and the hash of every file."""
    for name, text in texts.items():
        (beside / name).write_text(text, encoding="utf-8")
    names = sorted(file.relative_to(beside).as_posix() for file in beside.rglob("*") if file.is_file())
    made = {"format": form, "version": VERSION, "package_version": __version__, "seed": seed, "count": count}
    record = made | own | {"files": {name: sha256(beside / name) for name in names}}
    (beside / MARK).write_text(json.dumps(record, indent=1) + "\n")
    return record
