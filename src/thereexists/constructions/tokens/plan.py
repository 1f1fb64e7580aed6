"""The sizes of a network that stores pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from thereexists.model import EmbeddedTransformer
from thereexists.witness.plan import Plan


@final
@dataclass(frozen=True, repr=False)
class TokensPlan(Plan):
    """``pairs`` stored in blocks over d_model rows; ``widths``: the hidden units of every block."""

    pairs: int
    layers: dict[str, int]
    widths: dict[str, int]
    d_model: int
    parameters: int

    @classmethod
    def of(cls, network: EmbeddedTransformer, pairs: int) -> TokensPlan:
        layers = {name: stage.depth for name, stage in network.stages.items()}
        widths = {k: s.feed_forward.W_1.shape[1] for k, s in network.stages.items() if s.feed_forward is not None}
        sizes = (widths, network.shape()["d"], network.parameter_count)
        return cls(pairs, layers | {"total": network.depth}, *sizes)

    def facts(self) -> list[str]:
        return [f"{self.pairs:,} pairs, {self.d_model} rows"]

    def describe(self) -> dict[str, Any]:
        return {**vars(self), "construction": "tokens"}
