"""Wide blocks, watched on one sequence: what each block writes, and which memory unit answers which token."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from thereexists.model import EmbeddedTransformer
from thereexists.model.transformer import Block
from thereexists.witness.trace import Move, StageTrace


def trace_blocks(
    network: EmbeddedTransformer, x: np.ndarray, Z: torch.Tensor, mask: torch.Tensor | None = None
) -> StageTrace:
    """``Z`` (1, n, d_model) is the embedded input ``x``; ``mask`` (1, n) is True at real tokens.

    ``ids``: how many hidden units of the block are active at each token; ``moves``: the units that wrote outputs.
    """
    states: dict[str, np.ndarray] = {}
    ids: dict[str, np.ndarray] = {}
    moves: list[Move] = []
    out = torch.from_numpy(np.flatnonzero(network.W_out.detach().to(torch.float64).numpy().any(axis=0)))
    with torch.no_grad():
        for name, _, layer in network.layers():
            if mask is not None and layer.attention is not None:
                layer = dataclasses.replace(layer, attention=(*layer.attention[:-1], mask[:, None, None, :]))
            before = Z @ network.W_out.T
            read = Block(layer.rho, layer.attention, None)(Z)
            active = writes = torch.zeros(read.shape[1], 0, dtype=torch.bool)  # of a block that is attention alone
            if layer.feed_forward is not None:
                W_1, b_1, W_2, _, _ = layer.feed_forward
                active = torch.relu(read[0] @ W_1.T + b_1) > 0
                writes = active & W_2[out].any(dim=0)
            Z = layer(Z)
            after = Z @ network.W_out.T
            for token, unit in writes.nonzero().tolist():
                column = tuple(after[0, token].tolist())
                moves.append(Move(name, unit, token, float(before[0, token, 0]), column[0], column))
            states[name], ids[name] = after[0].double().numpy(), active.sum(dim=1).numpy()
    return StageTrace(x, states, ids, tuple(moves))
