"""A program as a drawing, before it is compiled: a box for every operation, a line from every value to its uses.

A box stands one column to the right of the last value that it needs, so no line leads back.
"""

from __future__ import annotations

from typing import Any

from thereexists.core.authors_word import shortened
from thereexists.core.plain_text import in_full
from thereexists.reports.html import Markup, figure, join, text
from thereexists.reports.svg import _svg

MOST_BOXES = 40
_BOX, _COLUMN, _ROW, _HEIGHT = 112.0, 148.0, 34.0, 24.0


def program_graph(record: dict[str, Any]) -> Markup:
    """The drawing; nothing of a program with more operations than one can read."""
    nodes = record["nodes"]
    if len(nodes) > MOST_BOXES:
        return Markup("")
    columns: list[int] = []
    for node in nodes:
        columns.append(1 + max((columns[a] for a in node["arguments"]), default=-1))
    rows = [columns[:k].count(column) for k, column in enumerate(columns)]
    at = [(6 + c * _COLUMN, 6 + r * _ROW) for c, r in zip(columns, rows, strict=True)]
    lines = [_line(at[a], at[k]) for k, node in enumerate(nodes) for a in node["arguments"]]
    boxes = [
        _box(*place, name_of(node), k == len(nodes) - 1) for k, (place, node) in enumerate(zip(at, nodes, strict=True))
    ]
    width, height = max(columns) * _COLUMN + _BOX + 12, max(rows) * _ROW + _HEIGHT + 12
    title = "The operations of the program: " + ", ".join(map(name_of, nodes))
    style = f'style="min-width:{0.75 * width:.0f}px; max-width:{1.2 * width:.0f}px"'
    picture = _svg(width, height, title, join([*lines, *boxes]), style)
    return figure(Markup(f'<div class="wide">{picture}</div>'), "The operations, from the input to the output.")


def name_of(node: dict[str, Any]) -> str:
    """An operation in a word or two."""
    settings = node["settings"]
    if node["operation"] == "tokens":
        return "x"
    if node["operation"] == "linear":
        coefficients = list(settings["coefficients"])
        if "divisor" in settings:
            return f"÷ {in_full(settings['divisor'])}"
        if len(coefficients) == 1:
            return f"{in_full(coefficients[0])} ·"
        return {(1.0, 1.0): "sum", (1.0, -1.0): "difference"}.get(tuple(coefficients), "weighted sum")
    return str(settings.get("called") or settings.get("function") or node["operation"])


def _line(start: tuple[float, float], end: tuple[float, float]) -> Markup:
    a, b = start[0] + _BOX, start[1] + _HEIGHT / 2
    c, d = end[0], end[1] + _HEIGHT / 2
    if c - a > _COLUMN:  # past the boxes between them, not through
        b, d = b + 7, d + 7
    middle = (a + c) / 2
    return Markup(
        f'<path class="curve k0" d="M{a:.0f},{b:.0f}C{middle:.0f},{b:.0f} {middle:.0f},{d:.0f} {c:.0f},{d:.0f}"/>'
    )


def _box(x: float, y: float, name: str, last: bool) -> Markup:
    shown = shortened(name, 15)
    return Markup(
        f'<rect class="plate" x="{x:.0f}" y="{y:.0f}" width="{_BOX:.0f}" height="{_HEIGHT:.0f}" rx="4"/>'
        f'<rect class="f{1 if last else 0}" x="{x:.0f}" y="{y:.0f}" width="4" height="{_HEIGHT:.0f}"/>'
        f'<text x="{x + 11:.0f}" y="{y + 16:.0f}"><title>{text(name)}</title>{text(shown)}</text>'
    )
