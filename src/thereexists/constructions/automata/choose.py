"""Which network an automaton gets by default: the one of fewer blocks that is proved.

Counting (``constructions/counting``) takes two blocks at every length, for commutative groups, and in the dtypes and to
the lengths that its proof reaches. Doubling takes ⌈log2 n⌉, for every automaton, in every dtype.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from thereexists.automata.automaton import Automaton
from thereexists.constructions.automata.build import Doubling
from thereexists.constructions.counting.build import Counting
from thereexists.constructions.counting.weights import BLOCKS
from thereexists.core.errors import CannotBuild
from thereexists.witness.method import Method
from thereexists.witness.plan import Plan
from thereexists.witness.witness import Witness


@final
@dataclass(frozen=True, kw_only=True)
class Shallowest(Method):
    """Strings of at most ``n`` symbols, weights in ``dtype`` (default float32).

    ``maps`` and ``saturating`` are options of ``Doubling``: whoever gives one of them gets that.
    """

    n: int | None = None
    dtype: Any = None
    maps: str = "auto"
    saturating: bool = False

    def plan(self, target: Automaton) -> Plan:
        return self.chosen(target).plan(target)

    def build(self, target: Automaton) -> Witness:
        return self.chosen(target).build(target)

    def chosen(self, target: Automaton) -> Method:
        """Counting where it has fewer blocks and is proved in this dtype, else doubling."""
        doubling = Doubling(n=self.n, dtype=self.dtype, maps=self.maps, saturating=self.saturating)
        asked = self.maps != "auto" or self.saturating
        if asked or not isinstance(self.n, int) or (self.n - 1).bit_length() <= BLOCKS:
            return doubling
        counting = Counting(n=self.n, dtype=self.dtype)
        try:
            counting.sizes(target)
        except CannotBuild:
            return doubling
        return counting
