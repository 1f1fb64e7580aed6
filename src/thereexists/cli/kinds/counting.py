"""Networks that count, on the command line: as every automaton, but for their trace."""

from __future__ import annotations

from typing import Any

from thereexists.cli.kinds.automata import MOST_SHOWN, AutomatonCommands


class CountingCommands(AutomatonCommands):
    def traced(self, traced: Any) -> Any:
        from rich.table import Table

        shown = traced.positions[1 : MOST_SHOWN + 1]
        table = Table("", *(f"{held.position}" for held in shown), box=None)
        table.add_row("symbol", *(str(symbol) for symbol in traced.word[:MOST_SHOWN]))
        for g in range(len(traced.positions[0].counts)):
            table.add_row(f"block 1: mean of counter {g + 1}", *(f"{held.means[g]:.3g}" for held in shown))
        table.add_row("block 1: 1/(position + 1)", *(f"{held.means[-1]:.3g}" for held in shown))
        for g in range(len(traced.positions[0].counts)):
            table.add_row(f"block 2: count {g + 1}", *(str(held.counts[g]) for held in shown))
        table.add_row("block 2: sum of values", *(str(held.sum) for held in shown))
        table.add_row("state", *(str(q) for q in traced.states[1 : MOST_SHOWN + 1]))
        return table


COUNTING = CountingCommands()
