"""The report of a network that counts: the machine, what every position counted, what is proved, how to check it."""

from __future__ import annotations

from typing import Any

from thereexists.constructions.counting.witness import CountingWitness
from thereexists.reports.artefact import Found
from thereexists.reports.automaton_pictures import lively_string
from thereexists.reports.html import Markup, Page, Section, join, paragraph, table
from thereexists.reports.witness.automaton import SHOWN_SYMBOLS, machine_page
from thereexists.witness.load import load as read_witness


def page(found: Found, record: dict[str, Any]) -> Page:
    witness = read_witness(found.path)
    heads = witness.network.shape()["h"]
    counters = "one counter" if heads == 1 else f"{heads} counters"
    how = Section("counting", "What is counted", _counts(witness))
    method = {"counting": f"a commutative group: {counters}, two blocks at every length"}
    return machine_page(found.path, witness, record, method, how)


def _counts(witness: CountingWitness) -> Markup:
    traced = witness.trace([lively_string(witness.automaton, min(witness.n, SHOWN_SYMBOLS), seed=0)])
    A = len(traced.positions[0].counts)
    words = (
        "A random string. Block 1 averages over the position and all before it, including the first (0): it finds "
        "the share of every counter, and 1/(position + 1). In block 2 one head for each counter looks up the position "
        "whose number is the count, and fetches what is stored there; the sum gives the state."
    )
    head = ["position", "symbol", *(f"mean {g + 1}" for g in range(A)), "1/(position + 1)"]
    head += [*(f"count {g + 1}" for g in range(A)), "sum", "state"]
    rows = [
        [held.position, str(symbol), *(f"{x:.4g}" for x in held.means), *held.counts, held.sum, held.state]
        for held, symbol in zip(traced.positions, ["", *traced.word], strict=True)
    ]
    return join([paragraph(words), table(head, rows)])
