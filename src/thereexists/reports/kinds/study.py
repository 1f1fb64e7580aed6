"""The report of ``heads study``: the smallest working hidden size against the length, method by method."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from thereexists.core.authors_word import WORDS
from thereexists.reports import stated, svg
from thereexists.reports.artefact import Found, Kind
from thereexists.reports.first_screen import PAPERS, Number, first_screen
from thereexists.reports.html import (
    Markup,
    Page,
    Section,
    figure,
    join,
    key,
    measured,
    number,
    panels,
    paragraph,
)

MOST_LENGTHS = 24  # columns of the table
MOST_CURVES = 24  # of a picture, and as many pictures


def _page(found: Found) -> Page:
    record = found.record
    rows = record["table"]
    made = {"command": record.get("command") or None}
    made |= {str(k).replace("_", " "): v for k, v in record["settings"].items()}
    sections = (
        Section("sizes", "Smallest hidden size", _table(rows)),
        Section("slopes", "Fitted lines", _lines(record["lines"])),
        Section("reproduce", "How to reproduce it", stated.facts(made)),
    )
    lead = (
        "The smallest d at which a fixed head shows a random sparse matrix within the tolerances, against its length."
    )
    source = f"The methods, and the theorem behind them: {PAPERS['heads']}."
    first = first_screen(_largest(rows), source, _pictures(rows))
    return Page("study", "How small can an attention head be?", lead, sections, first)


def _largest(rows: list[dict[str, Any]]) -> list[Number]:
    """The longest target, the smallest head that shows it, and what the figures are worth."""
    found = [row for row in rows if row["hidden_size"] is not None]
    state = ("not verified", f"for this page; what the file says, {WORDS}")
    if not found:
        return [(len(rows), "targets"), ("none worked", "no hidden size was found"), state]
    longest = max(row["length"] for row in found)
    best = min((row for row in found if row["length"] == longest), key=lambda row: row["hidden_size"])
    size = (
        Markup(f"d = {number(best['hidden_size'])}"),
        f"is enough there, by {best['method']}, k = {number(best['k'])}: {WORDS}",
    )
    return [(longest, "tokens of the longest target"), size, state]


def _pictures(rows: list[dict[str, Any]]) -> Markup:
    methods = list(dict.fromkeys(str(row["method"]) for row in rows))[:MOST_CURVES]
    figures = []
    sizes = [(float(r["length"]), float(r["hidden_size"])) for r in rows if r["hidden_size"] is not None]
    if not all(v > 0 and math.isfinite(v) for size in sizes for v in size):
        raise ValueError("a length or a size is not a positive number")
    ends = tuple((math.log2(min(axis)), math.log2(max(axis))) for axis in zip(*sizes, strict=True))
    for k in sorted({int(row["k"]) for row in rows})[:MOST_CURVES]:
        curves = []
        for colour, method in enumerate(methods):
            points = [(r["length"], r["hidden_size"]) for r in rows if r["k"] == k and r["method"] == method]
            points = sorted((float(L), float(d)) for L, d in points if d is not None)
            if points:
                x, y = np.log2(np.array(points).T)
                curves.append((colour, False, x, y))
        if curves:
            title = f"k = {k} non-zeros in a row"
            drawn = svg.log_lines(curves, title, ("length L", "hidden size d"), ends)  # pyright: ignore[reportArgumentType]
            figures.append(figure(drawn, f"{title}; both axes logarithmic."))
    legend = Markup(" &emsp; ".join(key(i, method) for i, method in enumerate(methods)))
    return join([paragraph(legend), panels(figures, style="three")])


def _table(rows: list[dict[str, Any]]) -> Markup:
    """A row for every method and k, a column for every length."""
    lengths = sorted({int(row["length"]) for row in rows})[:MOST_LENGTHS]
    made: dict[tuple[str, int], dict[int, str]] = {}
    for row in rows:
        size = "none" if row["hidden_size"] is None else f"{number(row['hidden_size'])}{'*' if row['trivial'] else ''}"
        made.setdefault((str(row["method"]), int(row["k"])), {})[int(row["length"])] = size
    lines = [[method, k, *(sizes.get(L, "") for L in lengths)] for (method, k), sizes in list(made.items())[:400]]
    words = "The smallest d that worked, for each length L in the head of the table. *: no smaller than the trivial 2L."
    head = ["method", "k", *(f"{L:,}" for L in lengths)]
    return join([paragraph(f"{words} Blank: not tried."), stated.table(head, lines)])


def _lines(lines: list[dict[str, Any]]) -> Markup:
    fitted = [
        [
            str(one["method"]),
            one["k"],
            *(("–",) * 3 if one["slope"] is None else (measured(one[f]) for f in ("slope", "intercept", "r2"))),
        ]
        for one in lines
    ]
    words = "d = slope · ln L + intercept, fitted to the sizes that are not trivial (d < 2L)."
    return join([paragraph(words), stated.table(["method", "k", "slope", "intercept", "R²"], fitted)])


KIND = Kind(
    "study",
    "the JSON of heads study",
    lambda found: found.has("table", "lines", "settings"),
    _page,
)
