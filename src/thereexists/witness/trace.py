"""One sequence on its way through a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.core.plain_text import brief


class Trace(ABC):
    """What a network does to one sequence, step by step."""

    @property
    @abstractmethod
    def output(self) -> Any:
        """What the network answers."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The trace as plain data, as ``trace --json`` gives it."""

    @abstractmethod
    def facts(self) -> list[str]:
        """At most three lines, for ``repr``: what went in, and how much happened."""

    def __repr__(self) -> str:
        return brief(type(self).__name__, *self.facts(), f"output {numbers(self.output)}")


def numbers(x: Any) -> str:
    """A sequence on one line: the tokens, or their number where there are many."""
    x = np.asarray(x)
    return f"of the shape {x.shape}" if x.size > 16 else str(x.tolist())


@dataclass(frozen=True)
class Move:
    """Layer ``layer`` of ``stage``, counted from 1, moved ``token`` from id ``before`` to id ``after``.

    Ids are in steps of the grid; ``column`` is the token itself after the move, in the units of the input. In a
    network of blocks ``layer`` is the index of the hidden unit that wrote, and the ids are the first output row.
    """

    stage: str
    layer: int
    token: int
    before: float
    after: float
    column: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class StageTrace(Trace):
    """``states``: the sequence (n, d) after every stage; ``moves``: what changed it.

    ``ids``: of every token, its id; in a network of blocks, how many hidden units are active.
    """

    input: np.ndarray
    states: dict[str, np.ndarray]
    ids: dict[str, np.ndarray]
    moves: tuple[Move, ...]

    @property
    def output(self) -> np.ndarray:
        return list(self.states.values())[-1]

    def facts(self) -> list[str]:
        return [f"input {numbers(self.input)}", f"{len(self.states)} states, {len(self.moves):,} moves"]

    def describe(self) -> dict[str, Any]:
        return {
            "input": self.input.tolist(),
            "stages": [
                {"stage": name, "sequence": state.tolist(), "ids": self.ids[name].tolist()}
                for name, state in self.states.items()
            ],
            "moves": [vars(move) for move in self.moves],
            "output": self.output.tolist(),
        }
