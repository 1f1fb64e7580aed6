"""The sparse part of a report: the pattern, the path through it, and the receptive field growing layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from thereexists.core.authors_word import as_its_author_says
from thereexists.core.errors import BadWitnessFile
from thereexists.core.rounded_figures import rounded_down
from thereexists.reports import svg
from thereexists.reports.html import Markup, Section, facts, figure, join, key, keys, panels, paragraph
from thereexists.reports.measure import receptive_fields
from thereexists.witness.function import FunctionWitness

MOST_TOKENS = 128
MOST_STEPS = 6
MOST_FIELDS = 12


def pattern_section(witness: FunctionWitness) -> Section | None:
    """The pattern that is stored with the weights; None for dense attention."""
    attention = next((s.attention for s in witness.network.stages.values() if s.attention is not None), None)
    if attention is None or attention.pattern is None:
        return None
    stored = witness.plan.stated_pattern()
    masks = attention.pattern.numpy()
    if stored is None or masks.shape[1:] != (witness.grid.n, witness.grid.n):
        raise BadWitnessFile("The stored pattern does not fit the record of this witness.")
    if stored["depth"] != len(receptive_fields(masks, most=2 * masks.shape[1] * len(masks))):
        raise BadWitnessFile(f"The stored pattern does not have the receptive depth {stored['depth']} of its record.")
    return Section("pattern", "The pattern", pattern_pictures(masks, str(stored["name"]), stored["path"], stated=True))


def pattern_pictures(masks: np.ndarray, name: str, path: Any, stated: bool = False) -> Markup:
    """Masks (p, n, n) with the path γ on them, and the fields S^1, S^2, …; the path is checked before it is drawn."""
    p, n, _ = masks.shape
    if n > MOST_TOKENS:
        return paragraph(f"{name} has {n:,} tokens; patterns are drawn up to {MOST_TOKENS}.")
    edges = path_edges(masks, path)
    fields = receptive_fields(masks, most=2 * n * p)
    whole = bool(fields[-1].all())
    opening = join(
        [
            facts(
                {
                    "pattern": as_its_author_says(name) if stated else name,
                    "steps": f"{p}, repeated from layer to layer",
                    "connections": ", ".join(f"{int(mask.sum()):,} of {n * n:,}" for mask in masks[:MOST_STEPS]),
                    "path γ": "none"
                    if edges is None
                    else f"{_in_short([int(k) for k in path])} (every edge is in the pattern: checked)",
                    "receptive depth": f"s = {len(fields)}: after this many layers every token has seen every other"
                    if whole
                    else "the field stops growing before it is full",
                }
            ),
            paragraph(
                "Rows are the tokens that attend, columns the tokens they attend to. "
                "Along the path, circle i marks the cell (γ(i+1), γ(i)): token "
                "γ(i+1) reads token γ(i) there, and so on until the last one knows the whole sequence. A circle is "
                "drawn in every step that has the cell."
            ),
        ]
    )
    steps = []
    for l, mask in enumerate(masks[:MOST_STEPS]):
        here = [(i, *edge) for i, edge in enumerate(edges or [], 1) if mask[edge]]
        picture = svg.cells(mask, f"Step {l + 1} of {as_its_author_says(name) if stated else name}", here)
        steps.append(figure(picture, f"Step {l + 1}: {int(mask.sum()):,} connections."))
    growth = []
    for t, field in enumerate(fields[:MOST_FIELDS], 1):
        picture = svg.cells(field, f"Receptive field after {t} layers", colour=svg.FIELD)
        share = f"{rounded_down(100 * field.mean(), 3)}% of all pairs"
        growth.append(figure(picture, f"After {t} layer{'s' if t > 1 else ''}: S_k has {share}."))
    more = len(fields) - len(growth)
    rest = paragraph(f"{more} more layers are not drawn.", "soft") if more > 0 else Markup("")
    title = Markup("<h3>The receptive field, layer by layer</h3>")
    cell = Markup('<span class="label"><span class="key s5"></span>connected</span>')
    path_key = [] if edges is None else [key(svg.PATH, "the path γ")]
    seen = keys([key(svg.FIELD, "seen after this many layers")])
    return join([opening, panels(steps), keys([cell, *path_key]), title, panels(growth), seen, rest])


def _in_short(path: list[int]) -> str:
    """The path, or its two ends where it is long."""
    shown = path if len(path) <= 24 else [*path[:12], "…", *path[-4:]]
    return " → ".join(map(str, shown))


def path_edges(masks: np.ndarray, path: Any) -> list[tuple[int, int]] | None:
    """Cells (γ(i+1), γ(i)) of a Hamiltonian path, or a refusal if it is none in the union of the masks."""
    if path is None:
        return None
    n = masks.shape[1]
    whole = isinstance(path, list | tuple) and all(type(k) is int for k in path) and sorted(path) == list(range(n))
    edges = list(zip(path[1:], path[:-1], strict=True)) if whole else []
    union = np.asarray(masks.any(axis=0))
    if not whole or not all(bool(union[i, j]) for i, j in edges):
        raise BadWitnessFile("The stored path is not a Hamiltonian path of the stored pattern.")
    return edges
