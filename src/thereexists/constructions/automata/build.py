"""The main path of an automaton: choose the rows of its maps, write the weights, prove them.

witness = te.build(te.automata.regex(r"(ab|ba)*", alphabet="ab"), n=1024)
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, final

from thereexists.automata.automaton import Automaton
from thereexists.certificates.automaton_certificate import certify_automaton
from thereexists.certificates.automaton_maps import MOST_ROWS
from thereexists.certificates.llama.automata import AutomatonClaim
from thereexists.certificates.stored_automaton import MOST_SYMBOLS
from thereexists.constructions.automata.maps import choose_maps
from thereexists.constructions.automata.plan import AutomatonPlan
from thereexists.constructions.automata.weights import Sizes, network_of
from thereexists.constructions.automata.witness import AutomatonWitness
from thereexists.core.dtypes import as_dtype, dtype_name
from thereexists.core.errors import CannotBuild
from thereexists.core.plain_numbers import whole
from thereexists.witness.method import Method

MOST_PARAMETERS = 1 << 29  # 2 GB in float32


@final
@dataclass(frozen=True, kw_only=True)
class Doubling(Method):
    """Strings of at most ``n`` symbols, weights in ``dtype`` (default float32).

    ``maps``: how the map of a string is written into rows, states or monoid; by default the smaller. ``saturating``:
    twice the units, which forgive errors of up to 1/8 (see ``weights.py``).
    """

    n: int | None = None
    dtype: Any = None
    maps: str = "auto"
    saturating: bool = False

    def plan(self, target: Automaton) -> AutomatonPlan:
        return AutomatonPlan.of(self._sizes(target))

    def build(self, target: Automaton) -> AutomatonWitness:
        """Every build is proved: what cannot be is not a witness."""
        dtype = as_dtype(self.dtype or "float32")
        sizes = self._sizes(target)
        planned = AutomatonPlan.of(sizes)
        if dtype_name(dtype) not in planned.dtypes:
            raise CannotBuild(
                f"This automaton is not right in {dtype_name(dtype)}; it is right in {', '.join(planned.dtypes)}."
            )
        witness = AutomatonWitness(network_of(sizes, dtype), sizes.maps, sizes.n, sizes.moduli)
        return dataclasses.replace(witness, made=certify_automaton(witness.stored))

    def lowerable(self, target: Automaton) -> AutomatonClaim:
        """What a stock checkpoint of it claims; nothing is built."""
        sizes = self._sizes(target)
        return AutomatonClaim(sizes.maps, sizes.n)

    def _sizes(self, target: Automaton) -> Sizes:
        n = whole(self.n, "'n', the most symbols of a string,", 1, MOST_SYMBOLS - 1)
        Q = target.size - (target.dead is not None)
        remedy = (
            "Fewer states help most (the automaton is minimal already): split the pattern into several, lower the "
            "bounds of its repetitions, or count modulo less."
        )
        if Q * Q > MOST_ROWS and self.maps != "monoid":  # said before any table of that size is made
            raise CannotBuild(
                f"{Q} live states take up to {Q * Q:,} rows and {Q**3:,} units in every block; up to {MOST_ROWS:,} "
                f"rows are built. {remedy} If strings act in few ways, maps='monoid' may do."
            )
        sizes = Sizes.of(choose_maps(target, self.maps), n, self.saturating)
        if sizes.parameters > MOST_PARAMETERS:
            raise CannotBuild(
                f"{Q} live states take {sizes.width:,} units in each of {sizes.blocks} blocks: {sizes.parameters:,} "
                f"parameters, {4 * sizes.parameters / 1e9:.1f} GB in float32; up to {MOST_PARAMETERS:,} are built. "
                f"{remedy}"
            )
        return sizes
