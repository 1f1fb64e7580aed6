"""The proof, watched on one sequence: what every stage does to it, and every selective shift that moves a token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from thereexists.model import EmbeddedTransformer
from thereexists.witness import Witness


@dataclass(frozen=True)
class Move:
    """Layer ``layer`` of ``stage`` moved ``token`` from id ``before`` to id ``after`` (ids in units of a step)."""

    stage: str
    layer: int
    token: int
    before: float
    after: float


@dataclass(frozen=True)
class Trace:
    """``states``: the sequence (n, d) after every stage; ``moves``: what changed it in the context and value stages."""

    input: np.ndarray
    states: dict[str, np.ndarray]
    ids: dict[str, np.ndarray]
    moves: tuple[Move, ...]

    @property
    def output(self) -> np.ndarray:
        return list(self.states.values())[-1]

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


def trace(witness: Witness, x: Any) -> Trace:
    """Run one sequence (n, d) layer by layer and keep what changed."""
    X, _ = witness.checked_input(x)
    if isinstance(witness.network, EmbeddedTransformer):
        from thereexists.trace_compact import trace_compact

        return trace_compact(witness.network, X[:1])
    network, u, unit = witness.network, torch.from_numpy(witness.grid.u), witness.grid.unit
    states: dict[str, np.ndarray] = {}
    moves: list[Move] = []
    with torch.no_grad():
        Z = torch.from_numpy(X[:1])
        if network.E is not None:
            Z = Z + network.E
            states["encode"] = Z[0].numpy()
        for stage, index, layer in network.layers():
            before, Z = Z, layer(Z)
            if stage != "quantise":
                ids = [(before[0] @ u / unit).tolist(), (Z[0] @ u / unit).tolist()]
                changed = (before != Z).any(-1)[0].nonzero()[:, 0].tolist()
                moves += [Move(stage, index, token, ids[0][token], ids[1][token]) for token in changed]
            states[stage] = Z[0].numpy()
    ids = {name: state @ witness.grid.u / unit for name, state in states.items()}
    return Trace(X[0], states, ids, tuple(moves))
