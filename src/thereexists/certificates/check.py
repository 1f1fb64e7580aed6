"""What a verification is asked, what a certification is asked, and what a check answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput, Obstructed
from thereexists.core.plain_numbers import seed_from, share_of_one, shown, whole, whole_or_none
from thereexists.functions.target import Target
from thereexists.parallel import HERE, Workers
from thereexists.parallel.pools import check_workers

Progress = Callable[[int, int], None]


def untold(done: int, total: int) -> None:
    """The progress of nothing: called, and ignored."""


class Told:
    """The caller's own progress, and the error that it ended with: one of the caller's, which says nothing of files."""

    def __init__(self, progress: Progress):
        self._progress = progress
        self.error: Exception | None = None

    def __call__(self, done: int, total: int) -> None:
        try:
            self._progress(done, total)
        except Exception as error:
            self.error = error
            raise


@dataclass(frozen=True)
class Check:
    """One named check of a verification: an entry of the evidence of ``te.verify``.

        witness = te.build(te.Table([[0, 1], [1, 0]], [[1, 1], [0, 0]]))
        witness.save("t")
        te.verify("t").evidence[0].detail

    Attributes:
        name: what was checked.
        passed: True, False, or None if the check could not be made.
        detail: what was found, in words.
    """

    name: str
    passed: bool | None
    detail: str


def as_claimed(claimed: Any, found: Any) -> str:
    """What was claimed and what was found, in words; once, where they are the same."""
    return f"{_words(found)}, as claimed" if claimed == found else f"claimed {_words(claimed)}, found {_words(found)}"


def _words(value: Any) -> str:
    """A small table as ``h = 2, m = 1``; anything else as it is."""
    if isinstance(value, dict):
        return ", ".join(f"{name} = {_words(part)}" for name, part in value.items()) or "nothing"
    return {True: "yes", False: "no", None: "nothing"}[value] if value is None or type(value) is bool else str(value)


SAMPLE = "sample"  # the check that makes a verdict undecided


class NoFunctionWanted(Obstructed):
    """The caller's mistake, and no fault of the files."""


@dataclass(frozen=True)
class How:
    """How the cubes are gone through: who computes, which share of the blocks, where finished chunks are kept."""

    workers: Workers = HERE
    sample: float | None = None
    job: Path | None = None
    progress: Progress = untold


@dataclass(frozen=True)
class Asked:
    """A verification: the folder, what was read of it, and the function where the caller gives it again."""

    folder: Path
    record: dict[str, Any]
    weights: dict[str, Any]
    target: Target | None = None
    opinions: int | None = None
    how: How = field(default_factory=How)

    def without_a_function(self) -> None:
        """For a witness that holds what it computes."""
        if self.target is not None:
            raise NoFunctionWanted(
                f"{self.folder} is a witness of a program, an automaton, a table or a data set, which the folder "
                "itself holds: the function that was given would not be compared with anything. Verify it without a "
                "function."
            )


def checked_opinions(opinions: Any) -> int | None:
    """How many cubes are asked about: one at least, or as many as a second or two allow."""
    return whole_or_none(opinions, "'opinions'", 1)


def check_crew(workers: Any, progress: Any) -> None:
    """Who computes, and who is told."""
    check_workers(workers)
    if not callable(progress):
        raise InvalidInput(f"'progress' must be called as progress(done, total); got {shown(progress)} instead.")


CONFIDENCE = 0.99
SAMPLES = 20_000


@dataclass(frozen=True)
class Wanted:
    """A certification: the p of d_p, the function if it is not the witness's own, and how to go about it.

    ``confidence`` and ``samples`` are for statistical certificates, ``opinions`` is how many cubes Arb is asked about
    (None: as many as a second or two allow). With ``folder``, the witness's own, an interrupted run resumes.
    """

    p: float = 1.0
    target: Target | None = None
    seed: int = 0
    confidence: float = CONFIDENCE
    samples: int = SAMPLES
    opinions: int | None = None
    folder: Path | None = None
    progress: Progress = untold
    workers: Workers = HERE

    def __post_init__(self) -> None:
        check_crew(self.workers, self.progress)
        plain = {
            "opinions": checked_opinions(self.opinions),
            "seed": seed_from(self.seed),
            "samples": whole(self.samples, "'samples'", 2),
            "confidence": share_of_one(self.confidence, "'confidence'", whole_too=False),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
