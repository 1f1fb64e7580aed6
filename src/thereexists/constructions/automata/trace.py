"""One string on its way through the doubling: after block t every position holds the map of its last 2^t symbols."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import nn

from thereexists.certificates.automaton_maps import Maps
from thereexists.model import EmbeddedTransformer
from thereexists.witness.trace import Trace


@dataclass(frozen=True)
class Held:
    """After a block, position j holds the map of the symbols ``first`` to ``last`` (counted from 1; none: 1 to 0).

    ``map``: for every state the state that it is led to, None for the dead one; ``fetched``: the position it came from.
    """

    position: int
    first: int
    last: int
    fetched: int | None
    map: list[int | None]


@dataclass(frozen=True, repr=False)
class MachineTrace(Trace):
    """What every trace of an automaton has, however its network is built: the states of a word, and the answer."""

    word: list[Any]
    states: list[int]
    answer: Any

    @property
    def output(self) -> Any:
        return self.answer

    @abstractmethod
    def inside(self) -> dict[str, Any]:
        """What the network holds on the way, as plain data."""

    def describe(self) -> dict[str, Any]:
        answer = self.answer.tolist() if isinstance(self.answer, np.generic) else self.answer
        return {"word": self.word, **self.inside(), "states": self.states, "output": answer}


@final
@dataclass(frozen=True, repr=False)
class AutomatonTrace(MachineTrace):
    """``blocks``: what every position holds after the embedding and after each block."""

    blocks: tuple[tuple[Held, ...], ...]

    def facts(self) -> list[str]:
        return [f"{len(self.word):,} symbols, {len(self.blocks) - 1} blocks"]

    def inside(self) -> dict[str, Any]:
        return {"blocks": [[vars(held) for held in block] for block in self.blocks]}


def held_maps(network: EmbeddedTransformer, maps: Maps, tokens: np.ndarray) -> tuple[list[tuple[Held, ...]], list[Any]]:
    """What the network's rows say, block by block, for one string (length + 1,); and the attention of each block."""
    found, heads = [], []
    with torch.no_grad():
        Z = nn.functional.embedding(torch.from_numpy(tokens)[None], network.embedding)  # pyright: ignore
        Z = Z + network.E[: len(tokens)]  # pyright: ignore[reportOptionalSubscript]
        found.append(_held(Z, maps, 1, None))
        for t, (_, _, layer) in enumerate(network.layers()):
            attention = layer.attention_weights(Z)
            assert attention is not None
            heads.append(attention[0].double().numpy())
            Z = layer(Z)
            found.append(_held(Z, maps, 2 ** (t + 1), heads[-1][0].argmax(axis=1)))
    return found, heads


def _held(Z: torch.Tensor, maps: Maps, reach: int, fetched: np.ndarray | None) -> tuple[Held, ...]:
    targets = maps.map_of(Z[0, :, : maps.own].double().numpy())  # (length + 1, states)
    states = np.where(targets < 0, -1, maps.targets[targets, 0])
    return tuple(
        Held(
            position=j,
            first=max(1, j - reach + 1),
            last=j,
            fetched=None if fetched is None else int(fetched[j]),
            map=[None if r < 0 else r for r in row],
        )
        for j, row in enumerate(states.tolist())
    )
