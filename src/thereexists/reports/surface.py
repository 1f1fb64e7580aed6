"""Pictures of a function of two numbers: a surface seen from above a corner, and a map of the same square.

Both are inline SVG. Heights and colours share one scale, so that target and network can be compared by eye; the ramp of
colours goes from dark to light in even steps of lightness, which every kind of colour vision can tell apart.
"""

from __future__ import annotations

import math
from itertools import groupby

import numpy as np

from thereexists.reports.html import Markup, join, measured, text
from thereexists.reports.svg import _in_line, _svg

LEVELS = 10  # of the ramp: the classes r0 … r9 of the page
_WIDTH, _HEIGHT, _RISE, _DEPTH = 1000.0, 800.0, 280.0, 470.0


def surface(values: np.ndarray, low: float, high: float, title: str, names: tuple[str, str]) -> Markup:
    """values[i, j] over (x_i, y_j): x grows to the front, y to the right, heights from ``low`` to ``high``."""
    m, k = values.shape
    share = _share(values, low, high)
    i, j = np.meshgrid(np.linspace(0, 1, m), np.linspace(0, 1, k), indexing="ij")
    px = _WIDTH / 2 + (i + j - 1) * (_WIDTH / 2 - 30)
    py = 30 + _RISE + (i + 1 - j) * _DEPTH / 2 - share * _RISE
    quads = sorted((a - b, a, b) for a in range(m - 1) for b in range(k - 1))  # the far ones first
    drawn = []
    mean = (share[1:, 1:] + share[1:, :-1] + share[:-1, 1:] + share[:-1, :-1]) / 4
    level = np.minimum((mean * LEVELS).astype(int), LEVELS - 1)
    for colour, group in groupby(quads, key=lambda quad: int(level[quad[1], quad[2]])):
        d = "".join(_quad(px, py, a, b) for _, a, b in group)
        drawn.append(Markup(f'<path class="mesh r{colour}" d="{d}"/>'))
    labels = [_corner(_WIDTH * 0.24, f"{names[0]} →", "end"), _corner(_WIDTH * 0.76, f"{names[1]} →", "start")]
    top = max(0.0, math.floor(float(py.min())) - 20.0)  # what lies above is empty
    return _svg(_WIDTH, _HEIGHT, title, join([_floor(), *drawn, *labels]), 'class="surface"', top)


def field(
    values: np.ndarray, low: float, high: float, title: str, names: tuple[str, str], error: bool = False
) -> Markup:
    """values[i, j] over (x_i, y_j) as a map, x to the right and y upwards; an ``error`` is blank at ``low``."""
    m, k = values.shape
    side, left, top = 300.0, 34.0, 12.0
    width, height = side / m, side / k
    level = np.minimum((_share(values, low, high) * LEVELS).astype(int), LEVELS - 1)
    paths: dict[int, list[str]] = {}
    for j in range(k):
        y = top + side - (j + 1) * height
        for colour, run in groupby(range(m), key=lambda i: int(level[i, j])):
            cells = list(run)
            x, wide = left + cells[0] * width, len(cells) * width
            paths.setdefault(colour, []).append(f"M{x:.1f},{y:.1f}h{wide:.1f}v{height:.1f}h-{wide:.1f}z")
    kind = "e" if error else "r"
    drawn = [Markup(f'<path class="{kind}{c}" d="{"".join(d)}"/>') for c, d in sorted(paths.items())]
    frame = Markup(f'<rect class="axis" x="{left}" y="{top}" width="{side}" height="{side}"/>')
    across = f'<text x="{left + side / 2}" y="{top + side + 18}" text-anchor="middle">{text(names[0])} →</text>'
    turned = f'transform="translate({left - 10},{top + side / 2}) rotate(-90)"'
    up = f'<text {turned} text-anchor="middle">{text(names[1])} →</text>'
    legend = _legend(kind, low, high, left, top + side + 30, side)
    body = join([*drawn, frame, Markup(across), Markup(up), legend])
    return _svg(side + left + 12, side + top + 66, title, body, 'class="field"')


def heights(low: float, high: float) -> Markup:
    """The key of the ramp, within a line of text."""
    patches = "".join(f'<rect class="r{c}" x="{12 * c}" y="0" width="12" height="12"/>' for c in range(LEVELS))
    return _in_line(12 * LEVELS, patches, f"output {measured(float(low))}", measured(float(high)))


def _legend(kind: str, low: float, high: float, x: float, y: float, width: float) -> Markup:
    """The ramp with its two ends."""
    step = width / LEVELS
    patches = "".join(
        f'<rect class="{kind}{c}" x="{x + c * step:.1f}" y="{y}" width="{step:.1f}" height="9"/>' for c in range(LEVELS)
    )
    ends = (
        f'<text x="{x}" y="{y + 22}">{measured(float(low))}</text>'
        f'<text x="{x + width}" y="{y + 22}" text-anchor="end">{measured(float(high))}</text>'
    )
    return Markup(patches + ends)


def _share(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """values as shares of [low, high]; what lies outside, or is not a number, is put to the nearer end or to 0."""
    spread = high - low
    if not math.isfinite(spread) or spread <= 0:
        return np.zeros(values.shape)
    return np.clip(np.nan_to_num((values - low) / spread, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)


def _quad(px: np.ndarray, py: np.ndarray, a: int, b: int) -> str:
    corners = ((a, b), (a + 1, b), (a + 1, b + 1), (a, b + 1))
    return "M" + "L".join(f"{px[c]:.0f},{py[c]:.0f}" for c in corners) + "z"


def _floor() -> Markup:
    """The square below the surface, where the output is ``low``."""
    corners = ((0, 0), (1, 0), (1, 1), (0, 1))
    ends = (
        f"{_WIDTH / 2 + (i + j - 1) * (_WIDTH / 2 - 30):.0f},{30 + _RISE + (i + 1 - j) * _DEPTH / 2:.0f}"
        for i, j in corners
    )
    return Markup(f'<path class="axis" style="stroke-width:3" d="M{"L".join(ends)}z"/>')


def _corner(x: float, label: str, anchor: str) -> Markup:
    return Markup(f'<text class="big" x="{x:.0f}" y="{_HEIGHT - 30:.0f}" text-anchor="{anchor}">{text(label)}</text>')
