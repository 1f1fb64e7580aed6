"""A table of shares as a map: one row per name, one column per setting, the number in each cell, a key below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from thereexists.reports.html import Markup, join, text
from thereexists.reports.surface import LEVELS, _legend
from thereexists.reports.svg import _svg

_CELL, _PITCH, _LETTER, _TOP = 88.0, 30.0, 6.6, 22.0
_DARK = 5  # levels of the ramp below this one are dark: their numbers are light


def heat_map(
    names: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[str, str], tuple[float, str]],
    title: str,
    ends: tuple[float, float] = (0.0, 100.0),
) -> Markup:
    """``cells``: (name, column) -> value between ``ends`` and what is written there; a missing one stays blank."""
    if not all(math.isfinite(value) for value, _ in cells.values()):
        raise ValueError("a figure is not a finite number")
    left = 12.0 + _LETTER * max(map(len, names))
    width, height = left + len(columns) * _CELL, _TOP + len(names) * _PITCH
    pieces = [_text(left + (j + 0.5) * _CELL, _TOP - 8, column, "middle") for j, column in enumerate(columns)]
    for i, name in enumerate(names):
        y = _TOP + i * _PITCH
        pieces.append(_text(left - 8, y + 19, name, "end"))
        for j, column in enumerate(columns):
            if (name, column) in cells:
                pieces.append(_cell(left + j * _CELL, y, *cells[name, column], ends))
    key = _legend("r", *ends, left, height + 8, min(len(columns) * _CELL, 240.0))
    said = "; ".join(f"{name}, {column}: {words}" for (name, column), (_, words) in cells.items())
    return _svg(width, height + 34, f"{title}: {said}", join([*pieces, key]), f'style="max-width:{1.4 * width:.0f}px"')


def _cell(x: float, y: float, value: float, words: str, ends: tuple[float, float]) -> Markup:
    share = min(max((value - ends[0]) / (ends[1] - ends[0]), 0.0), 1.0)
    level = min(int(share * LEVELS), LEVELS - 1)
    ink = "#ffffff" if level < _DARK else "#1b1f24"
    return Markup(
        f'<rect class="r{level}" x="{x + 1:.1f}" y="{y + 1:.1f}" width="{_CELL - 2:.0f}" height="{_PITCH - 2:.0f}"/>'
        f'<text x="{x + _CELL / 2:.1f}" y="{y + 19:.1f}" text-anchor="middle" style="fill:{ink}">{text(words)}</text>'
    )


def _text(x: float, y: float, words: str, anchor: str) -> Markup:
    return Markup(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(words)}</text>')
