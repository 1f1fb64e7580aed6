"""The keyed memory as a picture: which unit answers which token, measured on the network.

A unit of the memory stage fires at a token only if the whole key agrees (``constructions/keyed_memory.py``): its
pre-activation is then 1, and 0 or less on every other key. What is drawn are those pre-activations.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch

from thereexists.model import EmbeddedTransformer
from thereexists.reports import svg
from thereexists.reports.html import Markup, Section, figure, join, key, keys, measured, panels, paragraph, text, upper
from thereexists.reports.measure import MOST_CELLS, some_cells
from thereexists.reports.svg import _svg
from thereexists.witness.function import FunctionWitness

SHOWN = 36
MOST_NUMBERS = 1 << 23


@dataclass(frozen=True)
class Recall:
    """``before``: pre-activations (rows, units) of the rows and units that are drawn; a row is (input, token).

    ``most``: most units that fire at one token; ``lowest``/``highest``: of the pre-activations that fire; ``rest``: the
    largest of the others; ``answered``/``rows``: tokens at which a unit fires, and all that were looked at.
    """

    before: np.ndarray
    most: int
    lowest: float
    highest: float
    rest: float
    answered: int
    rows: int
    units: int

    def words(self) -> str:
        if self.answered == 0:
            return (
                f"None of the {self.units:,} memory units fires at any of the {self.rows:,} tokens that were examined."
            )
        return (
            f"{self.units:,} memory units, looked at on {self.rows:,} tokens: one of them fires at {self.answered:,} "
            f"tokens (the others keep the default), never more than {self.most}. What fires has a pre-activation "
            f"{self._fired()}, everything else at most {upper(self.rest)}."
        )

    def _fired(self) -> str:
        if self.lowest == self.highest:
            return f"of {measured(self.lowest)}"
        return f"between {measured(self.lowest)} and {measured(self.highest)}"


def memory_section(witness: FunctionWitness) -> Section | None:
    """The keyed memory of a compact witness; None for the faithful construction."""
    if not witness.network.wide:
        return None
    network, grid = cast(EmbeddedTransformer, witness.network), witness.grid
    rng = np.random.default_rng(0)
    complete = grid.cells <= MOST_CELLS
    cells = grid.cube(np.arange(grid.cells)) if complete else some_cells(grid, rng, MOST_CELLS)
    found = recall_of(network, torch.from_numpy(grid.centre(cells)).to(network.dtype))
    if found is None:
        return None
    scope = (
        f"All {grid.cells:,} cubes." if complete else f"{MOST_CELLS:,} random ones of {grid.cells:,} cubes (seed 0)."
    )
    return Section("memory", "The keyed memory", join([paragraph(f"{scope} {found.words()}"), memory_figure(found)]))


def recall_of(network: EmbeddedTransformer, X: torch.Tensor, mask: torch.Tensor | None = None) -> Recall | None:
    """The memory's pre-activations on inputs X; None for a network without a stage *recall*."""
    stages = [name for name in network.stages if name.startswith("recall")]
    if not stages:
        return None
    widest = max(s.feed_forward.W_1.shape[1] for s in network.stages.values() if s.feed_forward is not None)
    X = X[: max(1, MOST_NUMBERS // (widest * X.shape[1]))]
    mask = None if mask is None else mask[: len(X)]
    found = []
    with torch.no_grad():
        Z = network.embed(X)
        for name, _, layer in network.layers():
            if mask is not None and layer.attention is not None:
                layer = dataclasses.replace(layer, attention=(*layer.attention[:-1], mask[:, None, None, :]))
            if name in stages and layer.feed_forward is not None:
                W_1, b_1 = layer.feed_forward[:2]
                found.append(torch.nn.functional.linear(Z, W_1, b_1).flatten(0, 1).double().numpy())
            Z = layer(Z)
    every = np.concatenate(found, axis=1)  # (rows, units)
    fires = every > 0
    at = np.flatnonzero(fires.any(axis=1))
    chosen = at[:: max(1, len(at) // SHOWN)][:SHOWN]
    units = list(dict.fromkeys(fires[chosen].argmax(axis=1).tolist()))
    rest = every[~fires]
    return Recall(
        every[chosen][:, units],
        int(fires.sum(axis=1).max()),
        float(every[fires].min()) if len(at) else 0.0,
        float(every[fires].max()) if len(at) else 0.0,
        float(rest.max()) if rest.size else 0.0,
        len(at),
        *every.shape,
    )


def memory_figure(found: Recall) -> Markup:
    """The picture with its key."""
    picture = recall_picture(found, "Pre-activations of memory units")
    grey = Markup('<span class="label"><span class="key s5"></span>does not; the stronger, the closer it came</span>')
    legend = keys([key(svg.NETWORK, "the unit fires"), grey])
    return join([panels([figure(picture, "Some tokens, and the units that answer them.")]), legend])


def recall_picture(found: Recall, title: str) -> Markup:
    """One row for each token, one column for each unit: what fires is filled, the rest by how near it came."""
    rows, units = found.before.shape
    side, left, top = min(300.0 / max(rows, units, 1), 18.0), 26.0, 22.0
    height = max(top + rows * side + 8, 70.0)  # no less than its labels need
    depth = max(1.0, -float(found.before.min(initial=0.0)))
    pieces = [
        Markup(f'<rect class="axis" x="{left}" y="{top}" width="{units * side:.1f}" height="{rows * side:.1f}"/>')
    ]
    strengths = np.clip(8 * (1 + found.before / depth), 1, 8).astype(int)
    for level in range(1, 9):
        at = np.argwhere((strengths == level) & (found.before <= 0))
        pieces.append(
            Markup(f'<path class="near" fill-opacity="{0.05 + 0.05 * level:.2f}" d="{_cells(at, side, left, top)}"/>')
        )
    pieces.append(Markup(f'<path class="f1" d="{_cells(np.argwhere(found.before > 0), side, left, top)}"/>'))
    pieces.append(Markup(f'<text x="{left}" y="{top - 8}">memory unit →</text>'))
    pieces.append(Markup(f'<text transform="translate({left - 9},{top}) rotate(-90)" text-anchor="end">← token</text>'))
    return _svg(max(left + units * side + 8, 280.0), height, text(title), join(pieces), 'class="square"')


def _cells(at: np.ndarray, side: float, left: float, top: float) -> str:
    gap = 0.07 * side
    inner = side - 2 * gap
    return "".join(
        f"M{left + j * side + gap:.1f},{top + i * side + gap:.1f}h{inner:.1f}v{inner:.1f}h-{inner:.1f}z"
        for i, j in at.tolist()
    )
