"""A compiled program as a drawing: rows of the residual stream from left to right, operations where they are written.

Which operation stands where is the author's word (``places``); the arcs are not: they are read off the weights. A head
has an arc from every row that its values read to every row that it writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thereexists.core.authors_word import WORDS, shortened
from thereexists.reports.html import Markup, figure, join, key, keys, paragraph, text
from thereexists.reports.svg import _svg

MOST_COLUMNS, MOST_ROWS = 40, 96
_LEFT, _TOP, _COLUMN, _ROW, _BOX = 52.0, 46.0, 132.0, 20.0, 108.0


def schedule(places: Any, network: Any) -> Markup:
    """The drawing, or a sentence where it would be too large to read."""
    rows = sorted({row for place in places for _, row in place["made"]})
    if len(places) > MOST_COLUMNS or len(rows) > MOST_ROWS:
        return paragraph(
            f"{len(places):,} half blocks and {len(rows):,} rows are too many to draw: "
            f"up to {MOST_COLUMNS} and {MOST_ROWS} are drawn.",
            "soft",
        )
    at = {row: _TOP + (i + 0.5) * _ROW for i, row in enumerate(rows)}
    width, height = _LEFT + len(places) * _COLUMN, _TOP + len(rows) * _ROW + 8
    born: dict[int, float] = {}  # row -> where it was last written
    lanes, arcs, boxes = [_bands(places, height)], [], [_row_numbers(at)]
    for k, place in enumerate(places):
        x = _LEFT + k * _COLUMN
        boxes.append(_heading(x, place))
        if place["half"] == "attention":
            arcs += [_arc(x, at[a], at[b]) for a, b in _heads(network, place["block"]) if {a, b} <= {*at}]
        for name, row in place["made"]:
            if row in born:
                lanes.append(_lane(born[row], x, at[row]))
            born[row] = x + _BOX
            boxes.append(_box(x, at[row], name, place["half"]))
    lanes += [_lane(x, width, at[row]) for row, x in born.items()]
    title = f"{len(places)} half blocks, {len(rows)} rows; " + "; ".join(
        f"{_where(place)}: {', '.join(name for name, _ in place['made'])}" for place in places
    )
    picture = _svg(
        width,
        height,
        title,
        join([*lanes, *arcs, *boxes]),
        f'style="min-width:{width * 0.8:.0f}px; max-width:{width * 1.3:.0f}px"',
    )
    caption = (
        "The schedule: a plate for every block, a line for every row of the residual stream, from where it is written; "
        f"what is written there is called {WORDS}. An arc is a head, read off the weights: it carries a row of other "
        "tokens to the row that it writes."
    )
    legend = keys([key(0, "written by the embedding or a feed-forward half"), key(1, "by attention, and its heads")])
    return figure(Markup(f'<div class="wide">{picture}</div>{legend}'), caption)


def _heads(network: Any, block: int) -> list[tuple[int, int]]:
    """(row read, row written) by the heads of a block, counted from 1, where both weights are not zero."""
    found: list[tuple[int, int]] = []
    for k, (_, _, layer) in enumerate(network.layers(), 1):
        if k == block and layer.attention is not None:
            _, _, _, W_V, W_O, _ = layer.attention
            reads, writes = (np.asarray(w.detach().double().numpy()) != 0 for w in (W_V, W_O))  # (h, m, d), (h, d, m)
            for i in range(len(reads)):
                carried = np.einsum("dm,me->de", writes[i].astype(int), reads[i].astype(int)) > 0  # written, read
                found += [(int(read), int(written)) for written, read in np.argwhere(carried)]
    return found


def _where(place: dict[str, Any]) -> str:
    return "embedding" if place["block"] == 0 else f"block {place['block']}, {place['half']}"


def _heading(x: float, place: dict[str, Any]) -> Markup:
    first, second = ("embedding", "") if place["block"] == 0 else (f"block {place['block']}", place["half"])
    return Markup(
        f'<text class="name" x="{x:.0f}" y="16">{text(first)}</text><text x="{x:.0f}" y="31">{text(second)}</text>'
    )


def _bands(places: Any, height: float) -> Markup:
    """A plate behind the columns of every block."""
    spans: dict[int, list[int]] = {}
    for k, place in enumerate(places):
        spans.setdefault(place["block"], []).append(k)
    plates = (
        f'<rect class="band" x="{_LEFT + ks[0] * _COLUMN - 8:.0f}" y="2" rx="6" '
        f'width="{(ks[-1] - ks[0]) * _COLUMN + _BOX + 16:.0f}" height="{height - 4:.0f}"/>'
        for ks in spans.values()
    )
    return Markup("".join(plates))


def _row_numbers(at: dict[int, float]) -> Markup:
    labels = (f'<text x="{_LEFT - 10:.0f}" y="{y + 4:.1f}" text-anchor="end">row {row}</text>' for row, y in at.items())
    return Markup("".join(labels))


def _lane(a: float, b: float, y: float) -> Markup:
    return Markup(f'<path class="axis" d="M{a:.1f},{y:.1f}H{b:.1f}"/>')


def _arc(x: float, a: float, b: float) -> Markup:
    """From row a, before the column at x, to row b in it; out to the left where it would be a flat line."""
    start, mid = x - (_COLUMN - _BOX), x - (_COLUMN - _BOX) / 2
    if a == b:
        return Markup(f'<path class="curve k1" d="M{start:.1f},{a:.1f}Q{mid:.1f},{a - 16:.1f} {x:.1f},{a:.1f}"/>')
    return Markup(
        f'<path class="curve k1" d="M{start:.1f},{a:.1f}C{mid:.1f},{a:.1f} {mid:.1f},{b:.1f} {x:.1f},{b:.1f}"/>'
    )


def _box(x: float, y: float, name: str, half: str) -> Markup:
    colour = 1 if half == "attention" else 0
    shown = shortened(name, 14)
    return Markup(
        f'<rect class="plate" x="{x:.1f}" y="{y - 8:.1f}" width="{_BOX:.0f}" height="16" rx="3"/>'
        f'<rect class="f{colour}" x="{x:.1f}" y="{y - 8:.1f}" width="4" height="16"/>'
        f'<text x="{x + 9:.1f}" y="{y + 4:.1f}"><title>{text(name)}</title>{text(shown)}</text>'
    )
