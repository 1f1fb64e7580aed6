"""The proof, watched on one sequence: what every stage does to it, and every selective shift that moves a token."""

from __future__ import annotations

import numpy as np
import torch

from thereexists.functions.grid import Grid
from thereexists.model import Transformer
from thereexists.witness.trace import Move, StageTrace


def trace_columns(network: Transformer, grid: Grid, x: np.ndarray) -> StageTrace:
    """Run one sequence (n, d) layer by layer and keep what changed."""
    u, unit = torch.from_numpy(grid.u), grid.unit
    states: dict[str, np.ndarray] = {}
    moves: list[Move] = []
    with torch.no_grad():
        Z = torch.from_numpy(x[None])
        if network.E is not None:
            Z = Z + network.E
            states["encode"] = Z[0].numpy()
        for stage, index, layer in network.layers():
            before, Z = Z, layer(Z)
            if stage not in ("guard", "quantise"):
                ids = [(before[0] @ u / unit).tolist(), (Z[0] @ u / unit).tolist()]
                changed = (before != Z).any(-1)[0].nonzero()[:, 0].tolist()
                columns = Z[0].tolist()
                moves += [
                    Move(stage, index + 1, token, ids[0][token], ids[1][token], tuple(columns[token]))
                    for token in changed
                ]
            states[stage] = Z[0].numpy()
    with np.errstate(over="ignore", invalid="ignore"):  # weights may be any numbers: what they do is shown
        ids = {name: state @ grid.u / unit for name, state in states.items()}
    return StageTrace(x, states, ids, tuple(moves))
