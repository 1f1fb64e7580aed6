"""A module-level program of a Python file: ``prog.py:smooth``."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import redirect_stdout
from pathlib import Path

from thereexists.errors import InvalidInput, InvalidTarget, ThereExistsError
from thereexists.program.graph import Value


def from_file(reference: str) -> Value:
    """Runs the file, as every import does; what it prints goes to stderr."""
    path_text, _, name = reference.rpartition(":")
    path = Path(path_text)
    if not path_text or not name:
        raise InvalidInput(f"A program is named as file.py:name; got {reference!r} instead.")
    if not path.is_file():
        raise InvalidInput(f"There is no file {path_text!r} to take the program {name!r} from.")
    spec = importlib.util.spec_from_file_location(f"_thereexists_program_{path.stem}", path)
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
    if not hasattr(module, name):
        raise InvalidInput(f"{path_text} has no program {name!r}.")
    found = getattr(module, name)
    if not isinstance(found, Value):
        what = "a function: say how many tokens it takes with --n" if callable(found) else f"a {type(found).__name__}"
        raise InvalidInput(f"{name!r} of {path_text} is {what}; a program is a value such as P.sort(P.tokens(8)).")
    return found
