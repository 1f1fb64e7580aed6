"""A target in, four blocks out: the same piecewise constant function as the faithful one, equal columns included."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from thereexists.certificates.safe_dtypes import verdicts
from thereexists.constructions.compact.blocks import compact_network
from thereexists.constructions.compact.plan import CompactPlan, Prepared, prepare, within
from thereexists.constructions.compact.witness import CompactWitness
from thereexists.constructions.faithful.plan import Request
from thereexists.constructions.within import Prove, prove, proved_within
from thereexists.core.errors import CannotBuild
from thereexists.functions.target import Target
from thereexists.witness.method import Method


@final
@dataclass(frozen=True)
class Compact(Method):
    """Four standard blocks over scratch rows, with softmax attention and ReLU.

        te.build(target, te.Compact(delta=1 / 8))  # the same as te.build(target, delta=1 / 8, construction="compact")

    Args:
        delta: the grid width, a number or a text such as ``"1/8"``.
        epsilon: in place of ``delta``: d_p ≤ epsilon, *proved*, as for ``te.Faithful``.
        p: the p of d_p.
        max_width: spreads the feed-forward units over more blocks, each of at most this many units.
        prove: makes the certificate for ``epsilon``; with None it is only predicted.
    """

    delta: float | str | Fraction | None = None
    epsilon: float | None = None
    p: float = 1.0
    max_width: int | None = None
    prove: Prove | None = prove

    def plan(self, target: Target) -> CompactPlan:
        return prepare(target, self._request, self.max_width)[0]

    def build(self, target: Target) -> CompactWitness:
        request = self._request
        if request.epsilon is None or self.prove is None:
            return self._made(target, prepare(target, self._request, self.max_width))
        found = within(target, request, self.max_width)
        make = functools.partial(self._made, target)
        return proved_within(found, request.epsilon, request.p, make, self.prove)

    def _made(self, target: Target, prepared: Prepared) -> CompactWitness:
        plan, memory = prepared
        network = compact_network(plan.grid, memory, self.max_width)
        found = verdicts(network, plan.grid)
        network.safe = tuple(name for name, verdict in found.items() if verdict.holds)
        if "float64" not in network.safe:
            raise CannotBuild(f"This grid is not safe even in float64: {found['float64'].reasons[0]}.")
        dtypes = {name: verdict.reasons[0] for name, verdict in found.items()}
        sizes = {**plan.sizes, "dtypes": dtypes, "safe": list(network.safe)}
        return CompactWitness(network=network, plan=dataclasses.replace(plan, sizes=sizes), target=target)

    @property
    def _request(self) -> Request:
        return Request(self.delta, self.epsilon, self.p)
