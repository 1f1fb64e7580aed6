"""What the command line does with a witness, one file for each kind of it (``core/kinds.py``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RunRequest:
    """``run``: the input as it was typed or a file's name, where to write the output, and by which engine."""

    text: str
    out: Path | None = None
    engine: str = "auto"


class Commands(ABC):
    """The commands that print differently for each kind."""

    @abstractmethod
    def run(self, witness: Any, asked: RunRequest, as_json: bool) -> None:
        """The answer to an input."""

    @abstractmethod
    def show(self, folder: Path, witness: Any, record: dict[str, Any], as_json: bool) -> None:
        """What it is made of."""

    @abstractmethod
    def trace(self, witness: Any, text: str, as_json: bool) -> None:
        """One input on its way through."""

    @abstractmethod
    def certified(self, certificate: Any, as_json: bool) -> None:
        """A certificate that was just made."""


def print_numbers(Y: Any) -> None:
    """Sequences of numbers, one a line, tokens between semicolons."""
    import numpy as np

    for sequence in Y:
        print("; ".join(" ".join(f"{value:.6g}" for value in np.atleast_1d(token)) for token in sequence))


def save_array(path: Path, array: Any) -> None:
    import numpy as np

    from thereexists.core.atomic_files import write_beside

    write_beside(path, lambda stream: np.save(stream, array))
