"""A name of a user's Python file, ``path/to/file.py:name``: what both functions and programs are given by."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

from thereexists.errors import InvalidInput, InvalidTarget, ThereExistsError


def load_user_file(reference: str, what: str) -> tuple[Path, ModuleType, str]:
    """Runs the file, as every import does (what it prints goes to stderr); ``what`` is wanted of it, in a word."""
    path_text, _, name = reference.rpartition(":")
    path = Path(path_text)
    if not path_text or not name:
        raise InvalidInput(f"A {what} is named as file.py:{what}; got {reference!r} instead.")
    if not path.is_file():
        raise InvalidInput(f"There is no file {path_text!r} to take the {what} {name!r} from.")
    spec = importlib.util.spec_from_file_location(f"_thereexists_{what}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{path_text!r} is not a Python file (its name must end in .py).")
    module = importlib.util.module_from_spec(spec)
    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except ThereExistsError:
        raise
    except (Exception, SystemExit) as error:
        raise InvalidTarget(f"{path_text} cannot be imported: {type(error).__name__}: {error}") from error
    return path, module, name
