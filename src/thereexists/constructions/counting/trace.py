"""One string on its way through the two blocks: the means, the counts that were looked up, and the states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import nn

from thereexists.constructions.automata.trace import MachineTrace
from thereexists.model import EmbeddedTransformer


@dataclass(frozen=True)
class Counted:
    """What a position holds: after block 1 the ``means``; after block 2 the ``counts`` it looked up, and their ``sum``.

    The last of the means is the flag's, 1/(j+1).
    """

    position: int
    means: list[float]
    counts: list[int]
    sum: int
    state: int


@final
@dataclass(frozen=True, repr=False)
class CountingTrace(MachineTrace):
    """``positions``: one for each symbol, and the first."""

    positions: tuple[Counted, ...]

    def facts(self) -> list[str]:
        return [f"{len(self.word):,} symbols, {len(self.positions[0].counts)} counters, 2 blocks"]

    def inside(self) -> dict[str, Any]:
        return {"positions": [vars(held) for held in self.positions]}


def counted(
    network: EmbeddedTransformer, size: int, tokens: np.ndarray
) -> tuple[tuple[Counted, ...], list[np.ndarray]]:
    """What the rows say at every position of one string (length + 1,); and the attention of both blocks."""
    A, heads, after = network.shape()["h"], [], []
    with torch.no_grad():
        Z = nn.functional.embedding(torch.from_numpy(tokens)[None], network.embedding)  # pyright: ignore
        Z = Z + network.E[: len(tokens)]  # pyright: ignore[reportOptionalSubscript]
        for _, _, layer in network.layers():
            mask = layer.attention[-1][: len(tokens), : len(tokens)]  # pyright: ignore[reportOptionalSubscript]
            layer = type(layer)(layer.rho, (*layer.attention[:-1], mask), layer.feed_forward)  # pyright: ignore
            heads.append(layer.attention_weights(Z)[0].double().numpy())  # pyright: ignore[reportOptionalSubscript]
            Z = layer(Z)
            after.append(Z[0].double().numpy())
        answers = nn.functional.linear(Z, network.W_out)[0].double().numpy()
    found = heads[1].argmax(axis=-1).T  # (length + 1, A)
    positions = tuple(
        Counted(j, mean.tolist(), counts.tolist(), int(total), int(answer[:size].argmax()))
        for j, (mean, counts, total, answer) in enumerate(
            zip(after[0][:, A : 2 * A + 1], found, after[1][:, 3 * A + 4], answers, strict=True)
        )
    )
    return positions, heads
