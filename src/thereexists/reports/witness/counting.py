"""The report of a network that counts: the machine, what every position counted, what is proved, how to check it."""

from __future__ import annotations

from typing import Any

import numpy as np

from thereexists.constructions.counting.witness import CountingWitness
from thereexists.reports import svg
from thereexists.reports.artefact import Found
from thereexists.reports.automaton_pictures import lively_string
from thereexists.reports.html import Markup, Page, Section, figure, join, key, keys, paragraph, table
from thereexists.reports.witness.automaton import SHOWN_SYMBOLS, machine_page
from thereexists.witness.load import load as read_witness

MOST_CURVES = 5  # colours beside that of the automaton


def page(found: Found, record: dict[str, Any]) -> Page:
    witness = read_witness(found.path)
    heads = witness.network.shape()["h"]
    counters = "one counter" if heads == 1 else f"{heads} counters"
    picture, rows = _counts(witness)
    how = Section("counting", "What is counted", rows)
    method = {"counting": f"a commutative group: {counters}, two blocks at every length"}
    return machine_page(found.path, witness, record, method, how, picture)


def _counts(witness: CountingWitness) -> tuple[Markup, Markup]:
    """The picture, and the numbers behind it."""
    traced = witness.trace([lively_string(witness.automaton, min(witness.n, SHOWN_SYMBOLS), seed=0)])
    A = len(traced.positions[0].counts)
    words = (
        "The picture above is of a random string. Block 1 averages over the position and all before it, the first "
        "one (0) included: it knows the share of every counter, and 1/(position + 1). In block 2 one head for each "
        "counter looks up the position whose number is the count, and fetches what is there; the sum gives the state."
    )
    head = ["position", "symbol", *(f"mean {g + 1}" for g in range(A)), "1/(position + 1)"]
    head += [*(f"count {g + 1}" for g in range(A)), "sum", "state"]
    rows = [
        [held.position, str(symbol), *(f"{x:.4g}" for x in held.means), *held.counts, held.sum, held.state]
        for held, symbol in zip(traced.positions, ["", *traced.word], strict=True)
    ]
    counts = np.array([held.counts for held in traced.positions], dtype=float)  # (positions, counters)
    shown = min(A, MOST_CURVES)
    curves = [(svg.NETWORK + g, False, counts[:, g]) for g in range(shown)]
    drawn = svg.lines(np.arange(len(counts), dtype=float), curves, "Counters along a string", "position")
    legend = keys(key(svg.NETWORK + g, f"counter {g + 1}") for g in range(shown))
    more = f", the first {shown} of {A} counters" if shown < A else ""
    picture = figure(
        join([drawn, legend]), f"The counters at every position of the string {' '.join(map(str, traced.word))}{more}."
    )
    return picture, join([paragraph(words), table(head, rows)])
