"""What a family of verification problems is: networks with a dial, the function they compute, its exact extremes.

Six answers, each a method: which parameters at a level (``draw``), what the proofs assume of them (``hypotheses``), the
network and how far it may be from the function (``build``), the function itself in NumPy (``reference``), a box to ask
about (``ask``), and the largest value of an output over boxes with a point that has it (``extreme``), with its proof in
the docstring of the family. Parameters are plain data: what stands in the truth file is enough to find all of it out
again. It may be a stranger's file: ``require`` comes before every build and every extreme (``instance.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.functions.target import Array
from thereexists.suites.net import Net, net_of
from thereexists.suites.verifier.families.hypotheses import Hypotheses

Params = dict[str, Any]
Boxes = tuple[tuple[Array, Array], ...]
LEVELS = 5  # 1 easy … 5 hard
UNIT = 256  # ends of boxes are multiples of 1/256
SIDES = (8, 16, 32, 64, 128)  # of a box, at most, in these units: by level


@dataclass(frozen=True)
class Built:
    """``|network − function| ≤ bound`` in real arithmetic with the weights of the file, on all inputs asked about."""

    net: Net
    bound: float
    proof: str


@dataclass(frozen=True)
class Question:
    """Boxes, each a lower and an upper end (n, features); an output (token, feature); a sense, + for the largest."""

    boxes: Boxes
    output: tuple[int, int]
    sense: int


class Family(ABC):
    name: ClassVar[str]
    turns: ClassVar[bool] = True  # whether rotations and splits leave float32 runs accurate
    margins: ClassVar[tuple[float, ...]] = (2**-4, 2**-6, 2**-8)

    @abstractmethod
    def draw(self, rng: np.random.Generator, level: int) -> Params:
        """Parameters of a network at a level from 1 to 5."""

    @abstractmethod
    def hypotheses(self, params: Params) -> Hypotheses:
        """All that the proofs of this family assume of its parameters, and whether it is so."""

    def require(self, params: Params, boxes: Boxes = ()) -> None:
        """Refuse parameters that are not as the proofs assume, and boxes outside of [0, 1], where nothing is proved."""
        for statement, is_so in self.hypotheses(params):
            if not is_so:
                raise InvalidInput(
                    f"The proof for {self.name} assumes that {statement}; these parameters do not satisfy that."
                )
        for low, high in boxes:
            if not ((low >= 0) & (low <= high) & (high <= 1)).all():
                raise InvalidInput(
                    f"The proof for {self.name} assumes boxes in [0, 1] that are not empty; one of these is not such "
                    "a box."
                )

    @abstractmethod
    def build(self, params: Params) -> Built: ...

    @abstractmethod
    def reference(self, params: Params, X: Array) -> Array:
        """The function: (batch, n, features) → (batch, n, outputs)."""

    def covers(self, params: Params, X: Array) -> Array:
        """At which inputs the network is near the function; default: all of them."""
        return np.ones(len(X), dtype=bool)

    @abstractmethod
    def ask(self, params: Params, rng: np.random.Generator) -> Question: ...

    @abstractmethod
    def extreme(self, params: Params, question: Question) -> tuple[float, float, Array]:
        """The largest value of the output over the boxes (smallest, for the sense −): the number, by how much it may be

        off, and a point of a box that has it.
        """


def certified_program(value: Any) -> Built:
    """A program over the reals as a network, with its certificate: what it is off by without rounding."""
    from thereexists.constructions.build import build

    witness = build(value, dtype="float32")
    parts = witness.certificate.parts
    bound = parts["weights"] + parts["approximation"]
    proof = "certificate of a program: translation validation in rationals"
    return Built(net_of(witness.network), bound, proof)


def random_box(rng: np.random.Generator, shape: tuple[int, ...], level: int) -> tuple[Array, Array]:
    """A box in [0, 1], its ends multiples of 1/256; its sides grow with the level."""
    most = SIDES[level - 1]
    length = rng.integers(most // 2, most + 1, shape)
    low = rng.integers(0, UNIT - length + 1)
    return low / UNIT, (low + length) / UNIT


def any_output(rng: np.random.Generator, box: tuple[Array, Array]) -> Question:
    """The largest or the smallest value of the first feature of some token."""
    return Question((box,), (int(rng.integers(len(box[0]))), 0), int(rng.choice([-1, 1])))


def one_box(question: Question) -> tuple[Array, Array]:
    """Of a family that asks about one box only."""
    if len(question.boxes) != 1:
        raise CannotBuild(f"This family asks about one box; got {len(question.boxes)}.")
    return question.boxes[0]
