"""One sequence through a program's network: what every operation leaves in its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from thereexists.model.transformer import Block
from thereexists.target import Array


@dataclass(frozen=True)
class Step:
    where: str
    row: int
    operation: str
    values: list[float]  # one for each token


def trace(witness: Any, X: Array) -> list[Step]:
    """``X`` (n, d), checked. Rows are read right after the half block that writes them."""
    made: dict[tuple[int, str], list[list[Any]]] = {(p["block"], p["half"]): p["made"] for p in witness.places}
    network = witness.network
    steps: list[Step] = []

    def look(Z: torch.Tensor, block: int, half: str) -> None:
        where = "embedding" if block == 0 else f"block {block} {half}"
        for operation, row in made.get((block, half), []):
            steps.append(Step(where, int(row), operation, Z[0, :, row].to(torch.float64).tolist()))

    with torch.no_grad():
        Z = network.embed(torch.from_numpy(witness.padded(X[None])).to(network.dtype))
        look(Z, 0, "embedding")
        for number, (_, _, layer) in enumerate(network.layers(), 1):
            Z = Block(layer.rho, layer.attention, None)(Z)
            look(Z, number, "attention")
            Z = Block(layer.rho, None, layer.feed_forward)(Z)
            look(Z, number, "feed-forward")
    return steps
