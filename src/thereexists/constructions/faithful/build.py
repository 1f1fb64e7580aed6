"""The main path: a target in, a witness out. The four steps of the proof, in order, each in a file of its own."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import torch

from thereexists.constructions.faithful.plan import DeepPlan, Prepared, Request, prepare, within
from thereexists.constructions.faithful.quantise import quantise
from thereexists.constructions.faithful.selective_shift import SelectiveShift
from thereexists.constructions.faithful.softmax_limit import softmax_limit
from thereexists.constructions.faithful.sparse_shift import SparseShift
from thereexists.constructions.faithful.value_mapping import Progress, ValueTable, value_mapping
from thereexists.constructions.faithful.witness import FaithfulWitness
from thereexists.constructions.within import Prove, prove, proved_within
from thereexists.core.errors import InvalidInput
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.model import Transformer
from thereexists.patterns import Pattern
from thereexists.witness.method import Method


@final
@dataclass(frozen=True)
class Faithful(Method):
    """As the proof does it. An equivariant target gets a network of T^{2,1,4} (Theorem 1), any other one of
    T_P^{2,1,4} with a positional encoding (Theorem 2).

        te.build(target, te.Faithful(delta=1 / 8))  # the same as te.build(target, delta=1 / 8)

    Args:
        delta: the grid width, a number or a text such as ``"1/8"``.
        epsilon: in place of ``delta``: d_p ≤ epsilon, *proved*. The grid is the coarsest power of two whose certificate
            says so, the witness comes with that certificate, and if there is no such grid the build is refused.
        p: the p of d_p.
        pattern: sparse attention, of ST^{2,1,4} (Theorem B).
        rho: the probability map: softmax or, with a pattern, sparsemax.
        modified: stop before the last step, at the modified class (hardmax, three-piece φ), which agrees with the
            standard network off the ramps. It has no certificate: with ``epsilon`` the error is only predicted.
        progress: called as ``progress(done, total)`` with the ids that have been tabulated.
        prove: makes the certificate for ``epsilon``; with None it is only predicted.
    """

    delta: float | str | Fraction | None = None
    epsilon: float | None = None
    p: float = 1.0
    pattern: Pattern | None = None
    rho: str = "softmax"
    modified: bool = False
    progress: Progress | None = None
    prove: Prove | None = prove

    def plan(self, target: Target) -> DeepPlan:
        return self._prepared(target).plan

    def build(self, target: Target) -> FaithfulWitness:
        request = self._request
        if request.epsilon is None or self.modified or self.prove is None:
            return self._made(target, self._prepared(target))
        found = within(target, request, self.pattern, self.progress)
        make = functools.partial(self._made, target)
        return proved_within(found, request.epsilon, request.p, make, self.prove)

    def _made(self, target: Target, prepared: Prepared) -> FaithfulWitness:
        plan, mapping, table = prepared
        hard = modified_network(mapping, table, plan.grid)
        network = hard if self.modified else softmax_limit(hard, table, plan.grid, self.rho)
        return FaithfulWitness(network=network, plan=plan, target=target)

    def _prepared(self, target: Target) -> Prepared:
        found = prepare(target, self._request, self.pattern, self.progress)
        return found._replace(plan=found.plan.before_the_last_step()) if self.modified else found

    @property
    def _request(self) -> Request:
        if self.rho not in ("softmax", "sparsemax"):
            raise InvalidInput(f"'rho' must be softmax or sparsemax; got {self.rho!r} instead.")
        return Request(self.delta, self.epsilon, self.p)


def modified_network(mapping: SelectiveShift | SparseShift, table: ValueTable, grid: Grid) -> Transformer:
    """Steps 1 to 3: quantise, map contexts to ids, map ids to values; hardmax and three-piece functions."""
    E = grid.encoding
    return Transformer(
        {"quantise": quantise(grid), "context": mapping.stage(), "value": value_mapping(table, grid)},
        rho="hardmax",
        E=None if E is None else torch.from_numpy(E),
        needs=torch.float64,
    )
