"""The section on surfaces: target and network over two free entries of the input, and the error beside them."""

from __future__ import annotations

import numpy as np

from thereexists.reports.html import Markup, Section, figure, join, keys, measured, panels, paragraph, upper
from thereexists.reports.measure import Plane, inputs_within
from thereexists.reports.surface import field, heights, surface
from thereexists.witness.function import FunctionWitness

MOST_OUTPUTS = 4


def first_picture(plane: Plane, d: int) -> Markup:
    """The first output: the function, and the network for it."""
    g = plane.network[:, :, 0, 0]
    f = None if plane.target is None else plane.target[:, :, 0, 0]
    low, high = _ends(plane)
    drawn = (
        [] if f is None else [figure(surface(f, low, high, "The function", _names(d)), "The function, first output.")]
    )
    drawn.append(figure(surface(g, low, high, "The network", _names(d)), "The network, first output."))
    return join([panels(drawn, style="three"), keys([heights(low, high)])])


def _ends(plane: Plane) -> tuple[float, float]:
    """The lowest and the highest output, of target and network, over the whole plane: one scale for all pictures."""
    both = plane.network if plane.target is None else np.stack([plane.network, plane.target])
    return float(both.min()), float(both.max())


def _names(d: int) -> tuple[str, str]:
    return ("token 0", "token 1") if d == 1 else ("feature 0", "feature 1")


def surfaces_section(witness: FunctionWitness, plane: Plane | None) -> Section | None:
    """Target and network over two free entries, and the error; None where there is only one entry."""
    if plane is None:
        return None
    d = witness.grid.d
    names = _names(d)
    where = "the first two tokens" if d == 1 else "the first two features of token 0"
    others = [v for k, token in enumerate(plane.others) for i, v in enumerate(token) if (k, i) not in plane.free]
    rest = f" The other entries stay at {', '.join(f'{v:.4g}' for v in others)}." if others else ""
    points, within = len(plane.network), inputs_within(plane.others.size)
    parts = [
        paragraph(
            f"Outputs over {where}, each through its whole range: {points} × {points} points, each the mean of "
            f"{within} × {within} inputs around it, none of them on the edge of a cell.{rest} All heights and colours "
            "share a scale, and so do all errors; the steps of the network are the cells of the grid."
        )
    ]
    if not witness.grid.positional and not witness.answers_equal_columns:
        words = (
            "Where the network drops to 0, two tokens share a cell: Theorem 1 says nothing there, and the bound "
            "charges for it."
        )
        parts.append(paragraph(words))
    shown = [(k, i) for k in range(witness.grid.n) for i in range(d)][:MOST_OUTPUTS]
    low, high = _ends(plane)
    worst = 0.0 if plane.error is None else float(plane.error.max())
    for k, i in shown:
        name = f"output token {k}" if d == 1 else f"output token {k}, feature {i}"
        g = plane.network[:, :, k, i]
        f = None if plane.target is None else plane.target[:, :, k, i]
        figures = [] if f is None else [figure(surface(f, low, high, f"Target, {name}", names), f"Target, {name}.")]
        figures.append(figure(surface(g, low, high, f"Network, {name}", names), f"Network, {name}."))
        if plane.error is None or plane.largest is None:
            figures.append(figure(field(g, low, high, f"Network, {name}, as a map", names), f"Network, {name}."))
        else:
            gap = plane.error[:, :, k, i]
            caption = (
                f"|network − target|, {name}: {measured(float(gap.mean()))} on average over this plane, "
                f"{upper(float(plane.largest[k, i]))} at most at these inputs."
            )
            figures.append(figure(field(gap, 0.0, worst, f"Error, {name}", names, error=True), caption))
        parts.append(panels(figures, style="three"))
    parts.append(keys([heights(low, high)]))
    left = witness.grid.n * d - len(shown)
    parts += [paragraph(f"{left} more outputs are not drawn.", "soft")] if left else []
    return Section("surfaces", "Surfaces over two inputs" if d == 1 else "Slices over two features", join(parts))
