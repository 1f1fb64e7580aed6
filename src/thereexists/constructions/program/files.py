"""A module-level program of a Python file, over reals or over symbols: ``prog.py:smooth``."""

from __future__ import annotations

from thereexists.constructions.program.graph import Value
from thereexists.constructions.symbols.language import Symbols
from thereexists.core.errors import InvalidInput
from thereexists.core.user_file import read_user_file


def from_file(reference: str) -> Value | Symbols:
    file, name = read_user_file(reference, "program")
    module, path = file.run(), reference.rpartition(":")[0]
    if not hasattr(module, name):
        raise InvalidInput(f"{path} has no program {name!r}.")
    found = getattr(module, name)
    if not isinstance(found, Value | Symbols):
        what = "a function: say how many tokens it takes with --n" if callable(found) else f"a {type(found).__name__}"
        raise InvalidInput(f"{name!r} of {path} is {what}; a program is a value such as P.sort(P.tokens(8)).")
    return found
