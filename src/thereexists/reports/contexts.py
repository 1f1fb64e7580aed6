"""The contextual mapping as a picture: the ids of all cells on a log axis, before and after the context stage."""

from __future__ import annotations

import numpy as np

from thereexists.reports import svg
from thereexists.reports.html import Section, figure, join, keys, panels, paragraph
from thereexists.reports.measure import MOST_CELLS, MOST_LAYERS, Ids, context_ids
from thereexists.witness.function import FunctionWitness

COLOURS = 6  # the ranks of svg.rows_of_dots


def contexts_section(witness: FunctionWitness) -> Section | None:
    """None for networks without ids (the compact ones)."""
    if "context" not in witness.network.stages:
        return None
    found = context_ids(witness)
    if found is None:
        words = (
            f"The picture runs every layer up to the contextual mapping, and is left out beyond {MOST_LAYERS:,} layers."
        )
        return Section("contexts", "The contextual mapping", paragraph(words))
    which = "all" if found.complete else f"a random sample (seed 0, at most {MOST_CELLS:,}) of the"
    parts = [
        paragraph(
            f"The id uᵀz of every token, for {which} {witness.grid.cells:,} cubes, measured on the network: one row "
            "for each cube, one dot for each token, coloured by the rank of the cube's final ids. The axis is "
            "log(1 + id), in units of a grid step; the last picture enlarges the third one."
        )
    ]
    if found.verdict is not None:
        style = "good" if found.verdict.holds else "bad"
        sense = "A contextual mapping" if found.verdict.holds else "Not a contextual mapping"
        scope = "" if found.complete else " (on this sample)"
        parts.append(paragraph(f"{sense}{scope}: {found.verdict.reasons[0]}.", style))
    parts.append(paragraph(_interval(witness, found)))
    if not found.distinct.all():
        few = int((~found.distinct).sum())
        parts.append(
            paragraph(
                f"Grey: {few:,} of {len(found.distinct):,} cubes have equal columns. Theorem 1 says nothing about "
                "them, and the certificate charges for them."
            )
        )
    parts.append(keys([svg.ranks("smallest final ids", "largest")]))
    return Section("contexts", "The contextual mapping", join([*parts, panels(_pictures(found), pairs=True)]))


def _interval(witness: FunctionWitness, found: Ids) -> str:
    if found.interval is None:
        return "No cube has pairwise distinct columns: there are fewer cells than tokens."
    low, high = found.interval
    scope = "" if found.complete else " on the sample"
    words = f"The final ids lie in [t_l, t_r] = [{low:,.0f}, {high:,.0f}] (measured{scope}, dashed lines)"
    stated = theorem_interval(witness)
    if stated is None:
        return words + "."
    inside = "inside" if stated[0] <= round(low) and round(high) <= stated[1] else "NOT inside"
    return f"{words}, {inside} the interval [{stated[0]:,}, {stated[1]:,}] of the theorem."


def theorem_interval(witness: FunctionWitness) -> tuple[int, int] | None:
    """Lemma 6 of the ICLR 2020 paper, in units of a step: [K^{2n}(K − 1), K^{2n+1}(K − 1)], without positions."""
    grid = witness.grid
    if grid.positional:
        return None
    return grid.K ** (2 * grid.n) * (grid.K - 1), grid.K ** (2 * grid.n + 1) * (grid.K - 1)


def _pictures(found: Ids) -> list:
    last = list(found.stages.values())[-1]
    rank = np.argsort(np.argsort(last.max(axis=1), kind="stable"), kind="stable")
    colour = np.where(found.distinct, rank * COLOURS // max(len(rank), 1), -1)
    n = last.shape[1]
    logs = {name: np.log10(1 + np.maximum(ids, 0.0)) for name, ids in found.stages.items()}
    ends = (0.0, max(float(x.max()) for x in logs.values()) * 1.02 + 1e-9)
    rows = np.repeat(np.arange(len(last)), n)
    figures = []
    interval = () if found.interval is None else tuple(np.log10(1 + np.array(found.interval)).tolist())
    for i, (name, x) in enumerate(logs.items()):
        final = i == len(logs) - 1
        dots = (x.ravel(), rows, np.repeat(colour, n), f"Ids {name}")
        picture = svg.rows_of_dots(*dots, "1 + id", ends, interval if final else ())
        figures.append(figure(picture, f"Ids {name}."))
        if final and interval:
            low, high = interval
            margin = 0.03 * (high - low) + 1e-3
            inside = (dots[0] >= low - margin) & (dots[0] <= high + margin)
            shown = (dots[0][inside], rows[inside], dots[2][inside], dots[3] + ", from near")
            near = svg.rows_of_dots(*shown, "log10(1 + id)", (low - margin, high + margin), interval, decades=False)
            figures.append(figure(near, f"Ids {name}, enlarged: [t_l, t_r] lies between the dashed lines."))
    return figures
