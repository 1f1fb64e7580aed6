"""One sequence through a program's network: what every operation leaves in its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import torch

from thereexists.functions.target import Array
from thereexists.model.transformer import Block
from thereexists.witness.trace import Trace, numbers


@dataclass(frozen=True)
class Written:
    """``values``, one for each token, that ``operation`` left in ``row``."""

    where: str
    row: int
    operation: str
    values: list[float]


@final
@dataclass(frozen=True, repr=False)
class ProgramTrace(Trace):
    """What was written, in order, and the output (n, d)."""

    input: Array
    steps: tuple[Written, ...]
    answer: Array

    @property
    def output(self) -> Array:
        return self.answer

    def facts(self) -> list[str]:
        return [f"input {numbers(self.input)}", f"{len(self.steps):,} values written"]

    def describe(self) -> dict[str, Any]:
        steps = [vars(step) for step in self.steps]
        return {"input": self.input.tolist(), "steps": steps, "output": self.answer.tolist()}


def trace_rows(witness: Any, X: Array) -> ProgramTrace:
    """``X`` (n, d), checked. Rows are read right after the half block that writes them."""
    made: dict[tuple[int, str], list[list[Any]]] = {(p["block"], p["half"]): p["made"] for p in witness.places}
    network = witness.network
    steps: list[Written] = []

    def look(Z: torch.Tensor, block: int, half: str) -> None:
        where = "embedding" if block == 0 else f"block {block} {half}"
        for operation, row in made.get((block, half), []):
            steps.append(Written(where, int(row), operation, Z[0, :, row].to(torch.float64).tolist()))

    with torch.no_grad():
        Z = network.embed(torch.from_numpy(witness.padded(X[None])).to(network.dtype))
        look(Z, 0, "embedding")
        for number, (_, _, layer) in enumerate(network.layers(), 1):
            Z = Block(layer.rho, layer.attention, None)(Z)
            look(Z, number, "attention")
            Z = Block(layer.rho, None, layer.feed_forward)(Z)
            look(Z, number, "feed-forward")
        answer = torch.nn.functional.linear(Z, network.W_out)[0, : len(X)].to(torch.float64).numpy()
    return ProgramTrace(X, tuple(steps), answer)
