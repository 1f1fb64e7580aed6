"""Pictures of a pattern: PNG or SVG for any n (a density map when n is large), and text for a terminal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.atomic_files import write_beside
from thereexists.core.drawing import drawing, new_figure
from thereexists.core.errors import InvalidInput
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step

TERMINAL_TOKENS = 64
_BLOCKS = np.array([" ", "▀", "▄", "█"])


def terminal(pattern: Pattern) -> str:
    """Every step side by side, two rows of tokens in one line of text; a row is a token that attends,
    a column one that it attends to."""
    if pattern.n > TERMINAL_TOKENS:
        raise InvalidInput(
            f"A terminal picture needs n ≤ {TERMINAL_TOKENS}; '{pattern.name}' has {pattern.n} tokens. "
            "Write a PNG or SVG file instead, or use a smaller n."
        )
    columns = []
    for l, step in enumerate(pattern.steps):
        mask = np.pad(step.mask(), ((0, pattern.n % 2), (0, 0))).astype(int)
        lines = ["".join(_BLOCKS[row]) for row in mask[0::2] + 2 * mask[1::2]]
        columns.append([f"step {l}".ljust(max(pattern.n, 6)), *(line.ljust(max(pattern.n, 6)) for line in lines)])
    return "\n".join("  ".join(parts).rstrip() for parts in zip(*columns, strict=True))


def density(step: Step, cells: int) -> np.ndarray:
    """``(cells, cells)``: the share of the pairs of each cell that is connected, from samples of rows.

    Up to 8 rows of each band of rows are looked at, evenly spaced, so that the cost is O(cells · row length).
    """
    n = step.n
    cells = min(cells, n)
    edges = np.linspace(0, n, cells + 1).round().astype(np.int64)
    out = np.zeros((cells, cells))
    for i in range(cells):
        rows = np.unique(np.linspace(edges[i], edges[i + 1] - 1, min(8, edges[i + 1] - edges[i])).round().astype(int))
        _, columns = step.entries(rows)
        hits = np.bincount(np.searchsorted(edges, columns, "right") - 1, minlength=cells)
        out[i] = hits / (len(rows) * np.diff(edges))
    return out


@drawing()
def save(pattern: Pattern, path: str | Path, cells: int = 256, title: str | None = None) -> Path:
    """Write a PNG or SVG with one panel per step (at most six); dark = connected. Whole or not at all."""
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise InvalidInput(f"A picture's name must end in .png or .svg; got '{path.name}'.")
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise InvalidInput(f"The folder {path.parent} does not exist; create it first.")
    ending = path.suffix.lower().removeprefix(".")
    about = {"Date": None} if ending == "svg" else {"Software": None}
    figure = draw(pattern, cells, title)
    write_beside(path, lambda stream: figure.savefig(stream, format=ending, dpi=72, metadata=about))
    return path


@drawing()
def draw(pattern: Pattern, cells: int = 256, title: str | None = None) -> Any:
    """A matplotlib figure; thin lines of large patterns are kept visible by the square root of the density."""
    shown = pattern.steps[:6]
    figure = new_figure(figsize=(2.6 * len(shown) + 0.2, 3.0), layout="constrained")
    for l, (axes, step) in enumerate(zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True)):
        axes.imshow(np.sqrt(density(step, cells)), cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        if len(pattern.steps) > 1:
            axes.set_xlabel(f"step {l}" + (f" of {pattern.cycle}" if pattern.cycle > 6 and l == 5 else ""))
    figure.suptitle(title or f"{pattern.name}, n = {pattern.n:,}", fontsize=11)
    return figure
