"""A folder for work in progress that this user's own jobs have made, under a name that anybody can guess.

What is in such a folder is written over and removed. One that came with a download, or a link to somewhere else, is not
ours to touch: a folder of ours holds a mark with a code that only this user can make (``secret.py``), for this place.
"""

from __future__ import annotations

import hmac
import os
from pathlib import Path

from thereexists.core.atomic_files import write_beside
from thereexists.core.errors import BadWitnessFile, Obstructed
from thereexists.core.regular_files import read_regular
from thereexists.parallel.secret import code_of, job_key

MARK = "owner"


def own_folder(path: Path) -> Path:
    """The folder, made if it is not there; refused if it is a link, or was not made by us."""
    code = code_of(job_key(MARK), str(Path(os.path.realpath(path.parent)) / path.name))
    if path.is_symlink():
        raise Obstructed(f"{path}, where this work would be kept, is a link to somewhere else; remove it.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        empty = next(path.iterdir(), None) is None
    except OSError as error:
        raise Obstructed(f"{path}, where this work would be kept, cannot be used: {error.strerror}.") from error
    if empty:
        write_beside(path / MARK, code)
    elif not _is_marked(path / MARK, code):
        raise Obstructed(f"{path}, where this work would be kept, was not made by a job of yours; remove it.")
    return path


def _is_marked(file: Path, code: str) -> bool:
    try:
        return hmac.compare_digest(read_regular(file, len(code)), code.encode())
    except BadWitnessFile:  # it is not there, too long, or no ordinary file
        return False
