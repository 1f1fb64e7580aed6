"""What the command line does with a witness, one file for each kind of it (``core/kinds.py``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from thereexists.cli._applies import take_only
from thereexists.cli._output import bold, print_facts, print_json
from thereexists.core.authors_word import as_its_author_says


@dataclass(frozen=True)
class RunRequest:
    """``run``: the input as it was typed or a file's name, where to write the output, and by which engine."""

    text: str
    out: Path | None = None
    engine: str = "auto"


CREW = ("workers", "pool", "address")  # who goes through the cubes


class Commands(ABC):
    """The commands that print differently for each kind.

    ``takes``: the options that it has a use for, by command, but those that its own code refuses in its own words;
    ``because``: why it has none for the others.
    """

    takes: ClassVar[Mapping[str, Collection[str]]]
    because: ClassVar[str]

    def refuse_others(self, command: str) -> None:
        """What was said to a command and means nothing for this kind."""
        take_only((*self.takes[command], "witness"), self.because)

    def check_certify(self, witness: Any, target: Any) -> None:
        """What was said to ``certify`` and means nothing for this very witness."""
        self.refuse_others("certify")

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


def print_claim(certificate: Any, as_json: bool) -> None:
    """A certificate that says in which dtypes something is right, and why not in others."""
    if as_json:
        print_json(certificate.describe())
        return
    why_not = {f"not in {name}": reason for name, reason in certificate.reasons.items()}
    print_facts({"proved": bold(certificate.claim()), **why_not, "assuming": list(certificate.assumptions)})


def print_stated(lines: dict[str, Any], stated: bool, words: set[str], assumptions: Any) -> None:
    """A summary; of a file (``stated``), what is its author's word is marked: the lines ``words``, the assumptions."""
    said = {key: as_its_author_says(text) if stated and key in words else text for key, text in lines.items() if text}
    if "proved" in said:
        said["proved"] = bold(said["proved"])
    print_facts(said | {"assuming": [as_its_author_says(text) if stated else str(text) for text in assumptions]})


def print_numbers(Y: Any) -> None:
    """Sequences of numbers, one a line, tokens between semicolons."""
    import numpy as np

    for sequence in Y:
        print("; ".join(" ".join(f"{value:.6g}" for value in np.atleast_1d(token)) for token in sequence))


def save_array(path: Path, array: Any) -> None:
    import numpy as np

    from thereexists.core.atomic_files import write_beside

    write_beside(path, lambda stream: np.save(stream, array))
