"""The compact network, watched on one sequence: what each block writes, and which memory unit answers which token."""

from __future__ import annotations

import numpy as np
import torch

from thereexists.model import EmbeddedTransformer
from thereexists.trace import Move, Trace


def trace_compact(network: EmbeddedTransformer, X: np.ndarray) -> Trace:
    """``ids``: how many hidden units of the block are active at each token; ``moves``: the units that wrote outputs."""
    states: dict[str, np.ndarray] = {}
    ids: dict[str, np.ndarray] = {}
    moves: list[Move] = []
    out = torch.from_numpy(np.flatnonzero(network.W_out.detach().numpy().any(axis=0)))
    with torch.no_grad():
        Z = network.embed(torch.from_numpy(X).to(network.dtype))
        for name, _, layer in network.layers():
            before = Z @ network.W_out.T
            read = Z if layer.attention is None else type(layer)(layer.rho, layer.attention, None)(Z)
            W_1, b_1, W_2, _, _ = layer.feed_forward or (None,) * 5
            active = torch.relu(read[0] @ W_1.T + b_1) > 0  # pyright: ignore[reportOptionalMemberAccess]
            Z = layer(Z)
            after = Z @ network.W_out.T
            writes = active & W_2[out].any(dim=0)  # pyright: ignore[reportOptionalSubscript]
            for token, unit in writes.nonzero().tolist():
                moves.append(Move(name, unit, token, float(before[0, token, 0]), float(after[0, token, 0])))
            states[name], ids[name] = after[0].double().numpy(), active.sum(dim=1).numpy()
    return Trace(X[0], states, ids, tuple(moves))
