"""The files a command writes: the folder is made, and nothing that is there is replaced unless ``--force`` says so.

Asked before the work begins: minutes must not be lost to a name. A folder that was made for a file is taken away again
if the command ends without writing into it. (A folder of ours, a witness or a head, is replaced by another of its kind,
and by nothing else: ``core/storage.py``.)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from thereexists.cli._applies import at_the_end
from thereexists.core.atomic_files import missing_above, remove_empty
from thereexists.core.errors import InvalidInput

Force = Annotated[bool, typer.Option("--force", help="Replace an output file that exists.")]


def file_to_write(path: Path | None, force: bool, endings: tuple[str, ...] = ()) -> Path | None:
    """The name as it was given, once it can be written; None stays None."""
    if path is None:
        return None
    if endings and path.suffix.lower() not in endings:
        raise InvalidInput(f"The name of this file must end in {' or '.join(endings)}; got '{path}' instead.")
    try:
        if path.is_dir():
            raise InvalidInput(f"'{path}' is a folder; name a file to write.")
        if not force and os.path.lexists(path):
            raise InvalidInput(f"{path} exists; add --force to replace it, or choose another name.")
        new = missing_above(path)
        at_the_end(lambda: remove_empty(new))
        path.parent.mkdir(parents=True, exist_ok=True)
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:
        raise InvalidInput(f"Cannot write {path}: {getattr(error, 'strerror', None) or error}.") from error
    return path


def files_to_write(force: bool, *paths: tuple[Path | None, tuple[str, ...]]) -> None:
    """All files of a command, each with the endings that its name may have; ``--force`` is for one of them."""
    if force and all(path is None for path, _ in paths):
        raise InvalidInput(
            "--force does not apply here: it replaces an output file, and none is named (a folder of ours is replaced "
            "without it); leave it out."
        )
    for path, endings in paths:
        file_to_write(path, force, endings)
