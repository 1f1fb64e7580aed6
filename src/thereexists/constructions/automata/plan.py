"""The sizes of an automaton's network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from thereexists.certificates.automaton_exact import Sum, verdicts
from thereexists.certificates.automaton_maps import KIND_NAMES
from thereexists.constructions.automata.weights import LAMBDA, Sizes
from thereexists.witness.plan import BlocksPlan


@final
@dataclass(frozen=True, repr=False, kw_only=True)
class AutomatonPlan(BlocksPlan):
    """``maps``: how maps of states are written into rows; ``dtypes``: in which the network will be right."""

    n: int
    states: int
    states_before: int
    symbols: int
    maps: str
    map_rows: int
    moduli: tuple[int, ...]
    dtypes: tuple[str, ...]

    @classmethod
    def of(cls, sizes: Sizes) -> AutomatonPlan:
        machine = sizes.maps.automaton
        # Logits go up to Kλ in steps of λ/2, and no other sum is larger than a few bits.
        largest = [Sum("logits", LAMBDA / 2, len(sizes.moduli) * LAMBDA)]
        return cls(
            n=sizes.n,
            states=machine.size,
            states_before=machine.before,
            symbols=len(machine.alphabet),
            maps=KIND_NAMES[type(sizes.maps)],
            map_rows=sizes.maps.own,
            moduli=sizes.moduli,
            layers={"doubling": sizes.blocks, "total": sizes.blocks},
            d_model=sizes.d_model,
            heads=1,
            head_size=sizes.head,
            width=sizes.width,
            parameters=sizes.parameters,
            dtypes=tuple(name for name, verdict in verdicts(largest).items() if verdict.holds),
        )

    def facts(self) -> list[str]:
        return [
            f"{self.states} states, {self.symbols} symbols, strings of at most {self.n:,} symbols",
            f"{self.d_model} rows, one head of size {self.head_size}, width {self.width}",
            f"exact in {', '.join(self.dtypes)}",
        ]

    def describe(self) -> dict[str, Any]:
        return {**vars(self), "moduli": list(self.moduli), "dtypes": list(self.dtypes), "construction": "automaton"}
