"""Watching a network that counts: the means of block 1, then which position every head looks up."""

from __future__ import annotations

from typing import Any

import numpy as np

from thereexists.certificates.automaton_proof import FIRST, SYMBOLS
from thereexists.constructions.counting.trace import counted
from thereexists.constructions.counting.witness import CountingWitness
from thereexists.reports.automaton_pictures import symbols_in_words
from thereexists.reports.explore.automata import Machines

MOST_NAMED = 8  # counters whose letters are named

_SAYS = (
    "Every position holds its own symbol; position 0 is flagged.",
    "Block 1 of 2: every position averages over itself and all before it: the share of each counter, and of the flag.",
    "Block 2 of 2: each head looks up the position whose number is the count, and fetches what is there.",
)


class Counts(Machines):
    """A mark for every counter: its share of the positions so far, then the position that is its count."""

    kind = "counting"
    says = "Letters are counted, and the counts looked up: two blocks at every length."
    witness: CountingWitness

    def chapters(self) -> list[dict[str, str]]:
        shares = "An average is a count over a length: attention knows the share of every counter, wherever it stands."
        counts = "A share says how many; a look-up turns it into the state, whatever the length."
        return [{"name": "Shares", "says": shares}, {"name": "Counts", "says": counts}]

    def more_facts(self) -> dict[str, Any]:
        machine, letters = self.witness.automaton, self.witness.letters
        said = (
            symbols_in_words([machine.alphabet[a] for a in np.flatnonzero(letters == g)])
            for g in range(min(letters.max() + 1, MOST_NAMED))
        )
        return {"counts of": "; ".join(said) + ("; …" if letters.max() >= MOST_NAMED else "")}

    def frames(self, ids: np.ndarray) -> list[dict[str, Any]]:
        positions, heads = counted(self.network, self.witness.automaton.size, np.concatenate([[FIRST], ids + SYMBOLS]))
        length = max(1, len(ids))
        lanes = [
            [{"marks": [], "text": ""} for _ in positions],
            [{"marks": p.means[:-1], "text": " ".join(f"{x:.3g}" for x in p.means)} for p in positions],
            [
                {"marks": [c / length for c in p.counts], "text": f"{' '.join(map(str, p.counts))} → state {p.state}"}
                for p in positions
            ],
        ]
        states = [p.state for p in positions]
        return [
            {
                "layer": t,
                "stage": "counting" if t else "input",
                "index": max(t - 1, 0),
                "lanes": lane,
                "states": states,
                "moved": [p.position for p in positions],
                "says": says,
                "attention": heads[t - 1] if t else None,
            }
            for t, (lane, says) in enumerate(zip(lanes, _SAYS, strict=True))
        ]


def counting_viewer(witness: CountingWitness, target: None) -> Counts:
    return Counts(witness)
