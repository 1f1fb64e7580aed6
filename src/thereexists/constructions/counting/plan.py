"""The sizes of a network that counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from thereexists.certificates.automaton_exact import Exact, Sum, Weights, verdicts
from thereexists.certificates.counting_rounding import Lookup
from thereexists.constructions.counting.weights import BLOCKS, CountingSizes, table_units
from thereexists.witness.plan import BlocksPlan


@final
@dataclass(frozen=True, repr=False, kw_only=True)
class CountingPlan(BlocksPlan):
    """``counters``: letters that act differently; ``numbers``: that their values add up to; ``dtypes``: where right."""

    n: int
    states: int
    states_before: int
    symbols: int
    counters: int
    numbers: int
    dtypes: tuple[str, ...]

    @classmethod
    def of(cls, sizes: CountingSizes) -> CountingPlan:
        machine = sizes.counters.automaton
        return cls(
            n=sizes.n,
            states=machine.size,
            states_before=machine.before,
            symbols=len(machine.alphabet),
            counters=sizes.counters.count,
            numbers=sizes.counters.numbers,
            layers={"counting": BLOCKS, "total": BLOCKS},
            d_model=sizes.d_model,
            heads=sizes.counters.count,
            head_size=sizes.head,
            width=sizes.width,
            parameters=sizes.parameters,
            dtypes=tuple(name for name, verdict in verdicts_of(sizes).items() if verdict.holds),
        )

    def facts(self) -> list[str]:
        return [
            f"{self.states} states, {self.symbols} symbols, strings of at most {self.n:,} symbols",
            f"a commutative group: {self.counters} counters, so two blocks at every length",
            f"{self.d_model} rows, heads of size {self.head_size}, width {self.width}; "
            f"proved in {', '.join(self.dtypes) or 'no dtype'}",
        ]

    def describe(self) -> dict[str, Any]:
        return {**vars(self), "dtypes": list(self.dtypes), "construction": "counting"}


def verdicts_of(sizes: CountingSizes) -> dict[str, Any]:
    """In which dtypes it will be right: the conditions of the proof, foreseen."""
    import torch

    thresholds, bends, at_0 = table_units(sizes.counters)
    top = float(sizes.counters.numbers)
    written = np.abs(bends) @ np.maximum(top - 1 - thresholds, 0.0) + np.abs(at_0)
    squares = torch.arange(1, sizes.n + 1, dtype=torch.float64) ** 2
    conditions: list[Exact] = [
        Lookup("block 2, look-up", sizes.n, sizes.scale),
        Weights.of("E", squares),
        Sum("block 2, feed-forward", 1.0, float(written.max(initial=top))),
    ]
    return verdicts(conditions)
