"""A large matrix at its full length, to zoom into and to flip through, without a script.

Layers (target, attention, difference) lie on one pane at one scale. Which is shown, and how large, two rows of radio
buttons say, and the style sheet obeys (``.zoom`` in page.css): so the pane stays where it was scrolled to. Every layer
is a grey PNG of one pixel for each entry, within the page, that masks a plane of the page's own colour: light, dark and
print have theirs.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thereexists.reports.html import Markup, figure, join, text
from thereexists.reports.svg import FLOOR, LEVELS, _strength, _svg, heat

MOST_PIXELS = 2048  # of a side; in a longer matrix a pixel is the largest of several entries
ZOOMS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Layer:
    """``weights`` (side, side) in [0, 1]."""

    name: str
    weights: np.ndarray
    colour: int


def zoomable(layers: Sequence[Layer], length: int) -> Markup:
    """The pane with its buttons; ``length`` is that of the matrix, of which a layer may show pooled entries."""
    side = len(layers[0].weights)
    drawn = join(_drawn(i, layer) for i, layer in enumerate(layers, 1))
    title = f"{', '.join(layer.name for layer in layers)}: {length:,} × {length:,}"
    frame = Markup(f'<rect class="axis" width="{side}" height="{side}" vector-effect="non-scaling-stroke"/>')
    picture = _svg(side, side, title, join([frame, drawn]))
    shown = _buttons("layer", [layer.name for layer in layers]) if len(layers) > 1 else Markup("")
    zoomed = _buttons("zoom", [f"{zoom}×" for zoom in ZOOMS])
    pane = f'<div class="pane" tabindex="0" role="region" aria-label="{text(title)}">{picture}</div>'
    return Markup(f'<div class="zoom">{shown}{"<br>" if shown else ""}{zoomed}{pane}</div>\n')


def _buttons(name: str, labels: Sequence[str]) -> Markup:
    """Radio buttons, the first one chosen; the inputs are siblings of the pane, as the style sheet needs them."""
    return Markup(
        " ".join(
            f'<input type="radio" name="{name}" class="{name}{i}" id="{name}{i}"{" checked" if i == 1 else ""}>'
            f'<label for="{name}{i}">{text(label)}</label>'
            for i, label in enumerate(labels, 1)
        )
    )


def _drawn(i: int, layer: Layer) -> Markup:
    side = len(layer.weights)
    image = f'<image width="{side}" height="{side}" href="data:image/png;base64,{_png(_levels(layer.weights))}"/>'
    return Markup(
        f'<g class="layer l{i}"><mask id="mask{i}">{image}</mask>'
        f'<rect class="f{layer.colour % 6}" width="{side}" height="{side}" mask="url(#mask{i})"/></g>'
    )


def _levels(weights: np.ndarray) -> np.ndarray:
    """The strengths of ``svg.heat`` as grey: 0 below 10^FLOOR, then eight steps up to white."""
    logs = np.log10(np.maximum(weights, 10.0**FLOOR))
    level = np.ceil((np.minimum(logs, 0.0) - FLOOR) / -FLOOR * LEVELS)
    shares = np.array([0.0, *(_strength(k) for k in range(1, LEVELS + 1))])
    return np.rint(255 * shares).astype(np.uint8)[level.astype(int)]


def _png(grey: np.ndarray) -> str:
    """An 8-bit grey PNG, in base 64."""
    height, width = grey.shape
    lines = np.hstack([np.zeros((height, 1), dtype=np.uint8), grey]).tobytes()  # each row begins with its filter, none

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(lines, 9)), chunk(b"IEND", b""))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode().replace("/", "%2F")  # no // in a page


def thumbnail(layer: Layer, side: int = 64) -> Markup:
    """The whole layer as a small picture: every cell is the largest of its entries."""
    edges = np.unique(np.arange(min(side, len(layer.weights))) * len(layer.weights) // side)
    edges = edges if len(layer.weights) > side else np.arange(len(layer.weights))
    small = largest_in(layer.weights, edges, edges)
    logs = np.log10(np.maximum(small, 10.0**FLOOR))
    return figure(heat(logs, FLOOR, layer.name, layer.colour, labels=False), f"{layer.name}.")


def largest_in(weights: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The largest entries of blocks that begin at these rows and columns."""
    return np.maximum.reduceat(np.maximum.reduceat(weights, columns, axis=1), rows, axis=0)


def pooled(rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, length: int, side: int) -> np.ndarray:
    """Entries of a sparse matrix on a square of ``side`` pixels, the largest of those that share one."""
    out = np.zeros((side, side))
    np.maximum.at(out, (rows * side // length, columns * side // length), weights)
    return out
