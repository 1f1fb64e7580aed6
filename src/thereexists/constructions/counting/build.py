"""The main path of a commutative group: find its counters, write the weights, prove them.

witness = te.build(te.automata.regex("(b|ab*a)*", "ab"), n=1024)                 # parity: two blocks, chosen by itself
witness = te.build(parity, n=1024, dtype="float64", construction="counting")     # or nothing
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, final

from thereexists.automata.automaton import Automaton
from thereexists.certificates.automaton_certificate import certify_automaton
from thereexists.constructions.counting.groups import counters_of
from thereexists.constructions.counting.plan import CountingPlan, verdicts_of
from thereexists.constructions.counting.weights import CountingSizes, counting_network, scale_for
from thereexists.constructions.counting.witness import CountingWitness
from thereexists.core.dtypes import as_dtype, dtype_name
from thereexists.core.errors import CannotBuild
from thereexists.core.plain_numbers import whole
from thereexists.witness.method import Method

MOST_COUNTED = 1 << 13  # symbols: the mask is a table of all pairs of positions, 64 MiB


@final
@dataclass(frozen=True, kw_only=True)
class Counting(Method):
    """Strings of at most ``n`` symbols, weights in ``dtype`` (default float32), for commutative groups only."""

    n: int | None = None
    dtype: Any = None

    def plan(self, target: Automaton) -> CountingPlan:
        return CountingPlan.of(self.sizes(target))

    def build(self, target: Automaton) -> CountingWitness:
        """Every build is proved: what cannot be is not a witness."""
        sizes = self.sizes(target)
        witness = CountingWitness(counting_network(sizes, as_dtype(self.dtype or "float32")), target, sizes.n)
        return dataclasses.replace(witness, made=certify_automaton(witness.stored))

    def sizes(self, target: Automaton) -> CountingSizes:
        """All sizes, if the automaton is such a group and the dtype carries it; else ``CannotBuild`` says what not."""
        n = whole(self.n, "'n', the most symbols of a string,", 1)
        name = dtype_name(as_dtype(self.dtype or "float32"))
        counters = counters_of(target)
        if n > MOST_COUNTED:
            raise CannotBuild(
                f"Counting needs a mask of all pairs of positions, so it is built for at most {MOST_COUNTED:,} "
                f"symbols; got {n:,}. construction='doubling' goes further."
            )
        sizes = CountingSizes(n, counters, scale_for(n))
        verdict = verdicts_of(sizes)[name]
        if not verdict.holds:
            raise CannotBuild(
                f"Counting to {n:,} is not proved in {name} ({verdict.reasons[0]}): build it in float64, or with "
                "construction='doubling', which is exact in every dtype."
            )
        return sizes
