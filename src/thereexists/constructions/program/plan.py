"""The sizes of a compiled program, and its bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

from thereexists.certificates.program_certificate import CompiledCertificate
from thereexists.core.authors_word import as_its_author_says
from thereexists.core.rounded_figures import rounded_up
from thereexists.model import EmbeddedTransformer
from thereexists.witness.plan import BlocksPlan


@final
@dataclass(frozen=True, repr=False, kw_only=True)
class ProgramPlan(BlocksPlan):
    """``bounds``: of every dtype that has one, in the sup norm, rounding included; ``construction``: the kind."""

    bounds: dict[str, float]
    construction: str
    read: bool = field(default=False, compare=False)  # the bounds, from a certificate that somebody has written

    @classmethod
    def of(
        cls, network: EmbeddedTransformer, certificate: CompiledCertificate | None, construction: str = "program"
    ) -> ProgramPlan:
        shape = network.shape()
        bounds = {} if certificate is None else {name: part["bound"] for name, part in certificate.bounds.items()}
        layers = {name: stage.depth for name, stage in network.stages.items()} | {"total": network.depth}
        return cls(
            layers=layers,
            parameters=network.parameter_count,
            d_model=shape["d"],
            heads=shape["h"],
            head_size=shape["m"],
            width=shape["r"],
            bounds=bounds,
            construction=construction,
            read=certificate is not None and certificate.stated,
        )

    def facts(self) -> list[str]:
        bounds = ", ".join(f"{rounded_up(bound, 3)} in {dtype}" for dtype, bound in self.bounds.items())
        promise = f"sup norm ≤ {bounds}" if bounds else "no bounds"
        return [
            f"{self.d_model} rows, {self.heads} heads of size {self.head_size}, width {self.width}",
            as_its_author_says(promise) if self.read else promise,
        ]

    def describe(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "read"}
