"""A name of a user's Python file, ``path/to/file.py:name``: what both functions and programs are given by.

The file is read once. Its bytes are what is hashed, what is compiled here, and what a worker compiles: a file that is
moved, or that rewrites itself while it runs, cannot make these three differ. Only a name that the user gave leads here;
a name that stands in somebody's record is text to print.
"""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from thereexists.core.errors import InvalidInput, InvalidTarget, ThereExistsError
from thereexists.core.printed import printed_to_stderr


@dataclass(frozen=True)
class UserFile:
    """The bytes of a file that the user named, and where they were read; ``what`` is wanted of it, in a word."""

    path: str
    source: bytes
    what: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.source).hexdigest()

    def run(self) -> ModuleType:
        """A module made of these bytes (what they print goes to stderr); the file is not opened again."""
        spec = importlib.util.spec_from_file_location(f"_thereexists_{self.what}_{Path(self.path).stem}", self.path)
        assert spec is not None  # the name ends in .py
        module = importlib.util.module_from_spec(spec)
        try:
            code = compile(self.source, self.path, "exec", dont_inherit=True)
            with printed_to_stderr():
                exec(code, module.__dict__)
        except ThereExistsError:
            raise
        except (Exception, SystemExit) as error:
            raise InvalidTarget(f"{self.path} cannot be imported: {type(error).__name__}: {error}") from error
        return module


@dataclass(frozen=True)
class FileFunction:
    """A function of a user's file. It travels as the bytes of that file, which the receiver compiles."""

    file: UserFile
    name: str
    function: Any

    def __call__(self, X: Any) -> Any:
        return self.function(X)

    def __reduce__(self) -> tuple[Any, ...]:
        return function_of, (self.file, self.name)


def function_of(file: UserFile, name: str) -> FileFunction:
    """Runs the file, as every import does."""
    function = getattr(file.run(), name, None)
    if not callable(function):
        raise InvalidInput(f"{file.path} has no function {name!r}.")
    return FileFunction(file, name, function)


def name_in_file(reference: Any) -> str:
    """Of ``file.py:name``, the name: wherever the file lies, that tells apart what it makes."""
    return str(reference).rpartition(":")[2]


def read_user_file(reference: str, what: str) -> tuple[UserFile, str]:
    """The file of ``path/to/file.py:name``, read but not run, and the name."""
    path_text, _, name = reference.rpartition(":")
    path = Path(path_text)
    if not path_text or not name:
        raise InvalidInput(f"A {what} is named as file.py:{what}; got {reference!r} instead.")
    if not path.is_file():
        raise InvalidInput(f"There is no file {path_text!r} to take the {what} {name!r} from.")
    if path.suffix != ".py":
        raise InvalidInput(f"{path_text!r} is not a Python file (its name must end in .py).")
    try:
        return UserFile(str(path.absolute()), path.read_bytes(), what), name
    except OSError as error:
        raise InvalidInput(f"{path_text!r} cannot be read: {error.strerror}.") from error
