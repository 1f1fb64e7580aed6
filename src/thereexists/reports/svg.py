"""Pictures as inline SVG, drawn from arrays of finite numbers. Colours are classes of the page: light, dark and print.

Every picture has a title for those who cannot see it. Coordinates are written with one decimal, which is what a screen
shows; thousands of dots or cells share one path, so that a picture stays small and quick.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from thereexists.core.authors_word import shortened
from thereexists.reports.html import SHADES, Markup, join, measured, text

# What a colour means, on every page: 0 what was asked for, 1 what the network does, 3 the difference of the two.
ASKED, NETWORK, FIELD, ERROR, PATH = 0, 1, 2, 3, 5
LONGEST_LABEL = 36  # characters beside a bar
FLOOR = -6.0  # decimal logarithm of the smallest attention weight that is drawn
LEVELS = 8  # strengths of a colour
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 360.0, 46.0, 10.0, 12.0, 30.0


def stacked_bar(parts: Sequence[tuple[int, float]], title: str) -> Markup:
    """One bar, cut by (part, size), in the shades of ``html.shade``; one that is not zero is at least a hair wide."""
    total = sum(size for _, size in parts)
    widths = [max(1000 * size / total, 2.0) if size > 0 else 0.0 for _, size in parts] if total > 0 else []
    x, pieces = 0.0, []
    for (part, _), width in zip(parts, [1000 * w / sum(widths) for w in widths] if widths else [], strict=False):
        pieces.append(Markup(f'<rect class="s{part % SHADES}" x="{x:.2f}" y="0" width="{width:.2f}" height="20"/>'))
        x += width
    return _svg(1000, 20, title, join(pieces), 'class="bar" preserveAspectRatio="none"')


def lines(
    x: np.ndarray,
    curves: Sequence[tuple[int, bool, np.ndarray]],
    title: str,
    x_name: str,
    ends: tuple[float, float] | None = None,
) -> Markup:
    """Curves over x, each (colour, dashed, values), on common axes; ``ends`` of the vertical one, else their own."""
    height = 200.0
    values = np.concatenate([y for _, _, y in curves])
    low, high = ends or (float(values.min()), float(values.max()))
    spread = (high - low) or max(abs(high), 1.0) * 0.1
    y_scale = _Scale(low - (0.0 if low == 0.0 else 0.04 * spread), high + 0.04 * spread, height - BOTTOM, TOP)
    x_scale = _Scale(float(x.min()), float(x.max()), LEFT, WIDTH - RIGHT)
    drawn = join(
        Markup(f'<path class="curve k{colour % 6}{" dash" if dashed else ""}" d="{_path(x_scale(x), y_scale(y))}"/>')
        for colour, dashed, y in curves
    )
    return _svg(WIDTH, height, title, join([_axes(x_scale, y_scale, height, x_name), drawn]))


def rows_of_dots(
    x: np.ndarray,
    y: np.ndarray,
    colour: np.ndarray,
    title: str,
    x_name: str,
    ends: tuple[float, float],
    interval: tuple,
    decades: bool = True,
) -> Markup:
    """Dots at (x, y), x a decimal logarithm and labelled so with ``decades``; ``colour``: a rank from 0 to 5, −1 grey.

    ``interval`` is (from, to), drawn as two dashed lines, or ().
    """
    height = 190.0
    x_scale, y_scale = (
        _Scale(*ends, LEFT, WIDTH - RIGHT),
        _Scale(0.0, max(float(y.max()), 1.0), height - BOTTOM - 4, TOP),
    )
    px, py = x_scale(x), y_scale(y)
    pieces = [_log_axis(x_scale, height, x_name) if decades else _line_axis(x_scale, height, x_name)]
    if interval:
        a, b = map(x_scale.at, interval)
        bracket = f"M{a:.1f},{TOP - 4}V{height - BOTTOM}M{b:.1f},{TOP - 4}V{height - BOTTOM}"
        pieces.append(Markup(f'<path class="ink dash" d="{bracket}"/>'))
    for c in np.unique(colour):
        at = colour == c
        d = "".join(f"M{a:.1f},{b:.1f}h0" for a, b in zip(px[at].tolist(), py[at].tolist(), strict=True))
        style = ("dots few" if len(x) <= 256 else "dots") + (" grey" if c < 0 else f" q{int(c)}")
        pieces.append(Markup(f'<path class="{style}" d="{d}"/>'))
    return _svg(WIDTH, height, title, join(pieces))


def cells(mask: np.ndarray, title: str, path: Sequence[tuple[int, int, int]] = (), colour: int | None = None) -> Markup:
    """A square mask: rows are the tokens that attend, columns the tokens they attend to.

    ``path``: cells (number, row, column), neighbours joined.
    """
    n = len(mask)
    size, margin = 300.0 / n, 24.0
    style = "cell" if colour is None else f"f{colour % 6}"
    gap = 0.06 * size if n <= 64 else 0.0
    side = size - 2 * gap
    d = "".join(
        f"M{margin + j * size + gap:.2f},{margin + i * size + gap:.2f}h{side:.2f}v{side:.2f}h-{side:.2f}z"
        for i, j in np.argwhere(mask).tolist()
    )
    frame = f'<rect class="axis" x="{margin}" y="{margin}" width="300" height="300"/>'
    pieces = [Markup(frame), Markup(f'<path class="{style}" d="{d}"/>')]
    every = 1 if n <= 16 else math.ceil(n / 8)
    for k in range(0, n, every):
        at = margin + (k + 0.5) * size
        pieces.append(_label(at, margin - 7, k, "middle"))
        pieces.append(_label(margin - 5, at + 4, k, "end"))
    centres = {i: (margin + (k + 0.5) * size, margin + (j + 0.5) * size) for i, j, k in path}
    for i, (a, b) in centres.items():
        if i + 1 in centres:
            c, d = centres[i + 1]
            pieces.append(Markup(f'<path class="curve k{PATH}" d="M{a:.1f},{b:.1f}L{c:.1f},{d:.1f}"/>'))
    if centres:
        radius = min(0.32 * size, 12.0)
        for i, (a, b) in centres.items():
            pieces.append(Markup(f'<circle class="f{PATH}" cx="{a:.1f}" cy="{b:.1f}" r="{radius:.1f}"/>'))
            if radius >= 7:
                digits = f'<text x="{a:.1f}" y="{b + 4:.1f}" text-anchor="middle" style="fill:var(--paper)">{i}</text>'
                pieces.append(Markup(digits))
    return _svg(300 + 2 * margin, 300 + 2 * margin, title, join(pieces), 'class="square"')


def heat(values: np.ndarray, low: float, title: str, colour: int = 0, labels: bool = True) -> Markup:
    """A matrix of numbers in [low, 0] in eight strengths of one colour; ``low`` itself is left blank."""
    n = len(values)
    size, margin = 300.0 / n, 24.0
    level = np.ceil((np.clip(values, low, 0.0) - low) / -low * LEVELS).astype(int)
    pieces = [Markup(f'<rect class="axis" x="{margin}" y="{margin}" width="300" height="300"/>')]
    for strength in range(1, LEVELS + 1):
        d = "".join(
            f"M{margin + j * size:.2f},{margin + i * size:.2f}h{size:.2f}v{size:.2f}h-{size:.2f}z"
            for i, j in np.argwhere(level == strength).tolist()
        )
        if d:
            share = f'fill-opacity="{_strength(strength):.2f}"'
            pieces.append(Markup(f'<path class="f{colour % 6}" {share} d="{d}"/>'))
    every = max(1, math.ceil(n / 8))
    for k in range(0, n if labels else 0, every):
        at = margin + (k + 0.5) * size
        pieces += [_label(at, margin - 7, k, "middle"), _label(margin - 5, at + 4, k, "end")]
    return _svg(300 + 2 * margin, 300 + 2 * margin, title, join(pieces), 'class="square"')


def strengths(colour: int, low: str, high: str) -> Markup:
    """The key of ``heat``: its strengths from ``low`` to ``high``, in words."""
    patches = "".join(
        f'<rect class="f{colour % 6}" fill-opacity="{_strength(k):.2f}" x="{k * 14}" y="0" width="14" height="12"/>'
        for k in range(1, LEVELS + 1)
    )
    frame = f'<rect class="axis" x=".5" y=".5" width="{14 * (LEVELS + 1) - 1}" height="11"/>'
    return _in_line(14 * (LEVELS + 1), patches + frame, low, high)


def ranks(low: str, high: str) -> Markup:
    """The key of ``rows_of_dots``: its six ranks from ``low`` to ``high``, in words."""
    dots = "".join(f'<path class="dots few q{k}" d="M{8 + 14 * k},6h0"/>' for k in range(6))
    return _in_line(84, dots, low, high)


def _in_line(width: int, drawn: str, low: str, high: str) -> Markup:
    """A key within a line of text, between the words for its ends."""
    picture = _svg(width, 12, f"From {low} to {high}", Markup(drawn), 'class="strengths"')
    return Markup(f'<span class="label">{text(low)} {picture} {text(high)}</span>')


def _strength(level: int) -> float:
    return 0.15 + 0.85 * (level / LEVELS) ** 1.5  # the weakest is still seen


def bars(
    rows: Sequence[tuple[str, float, float | None, float | None]], title: str, most: float | None = None
) -> Markup:
    """Horizontal bars (label, value, ± or None, mark or None); ``most`` fixes the right end of the axis."""
    for _, *numbers in rows:
        if not all(v is None or math.isfinite(v) for v in numbers):
            raise ValueError("a figure is not a finite number")
    shown = [shortened(label, LONGEST_LABEL) for label, *_ in rows]
    left, pitch = max(110.0, 9.0 + 6.6 * max(map(len, shown), default=0)), 26.0
    width = left + WIDTH - 110.0
    ends = [v + (sd or 0.0) for _, v, sd, _ in rows] + [mark for *_, mark in rows if mark is not None]
    scale = _Scale(0.0, most or max([*ends, 0.0]), left, width - 72)
    height = len(rows) * pitch + 8
    pieces = [Markup(f'<path class="axis" d="M{left},2V{height - 4:.0f}"/>')]
    for i, (_, value, sd, mark) in enumerate(rows):
        y = i * pitch + 6
        wide = max(scale.at(max(value, 0.0)) - left, 0.0)
        pieces.append(_label(left - 7, y + 13, shown[i], "end"))
        pieces.append(
            Markup(f'<rect class="f0" x="{left}" y="{y:.1f}" width="{wide:.1f}" height="{pitch - 9:.0f}" rx="2"/>')
        )
        if sd is not None:
            a, b = scale.at(value - sd), scale.at(value + sd)
            pieces.append(Markup(f'<path class="ink" d="M{a:.1f},{y + 8.5:.1f}H{b:.1f}"/>'))
        if mark is not None:
            pieces.append(
                Markup(
                    f'<path class="curve k1" stroke-width="3" d="M{scale.at(mark):.1f},{y - 2:.1f}v{pitch - 5:.0f}"/>'
                )
            )
        beside = "" if mark is None else f" ({_three(mark)})"
        pieces.append(_label(width - 2, y + 13, f"{_three(value)}{beside}", "end"))
    said = ", ".join(
        f"{label} {value:.3g}" + ("" if mark is None else f" (paper {mark:.3g})") for label, value, _, mark in rows
    )
    return _svg(width, height, f"{title}: {said}", join(pieces))


def _three(value: float) -> str:
    """Three digits, zeros at the end among them, so that a column lines up: 54.0 below 51.9."""
    return f"{value:#.3g}".rstrip(".") if 0.01 <= abs(value) < 1000 else f"{value:.3g}"


def log_lines(
    curves: Sequence[tuple[int, bool, np.ndarray, np.ndarray]],
    title: str,
    names: tuple[str, str],
    ends: tuple[tuple[float, float], tuple[float, float]],
) -> Markup:
    """Curves (colour, dashed, x, y) of binary logarithms, with powers of two on both axes, from ``ends`` to ends."""
    height, (x_name, y_name) = 220.0, names
    x = _Scale(*ends[0], LEFT, WIDTH - 26)
    y = _Scale(ends[1][0] - 0.3, ends[1][1] + 0.3, height - BOTTOM, TOP)
    pieces = [Markup(f'<path class="axis" d="M{LEFT},{TOP}V{height - BOTTOM}H{WIDTH - RIGHT}"/>')]
    for scale, across in ((x, True), (y, False)):
        every = max(1, math.ceil((scale.high - scale.low) / 7))
        for k in range(math.ceil(scale.low), math.floor(scale.high) + 1, every):
            place = (scale.at(k), height - BOTTOM + 13, "middle") if across else (LEFT - 5, scale.at(k) + 4, "end")
            pieces.append(_label(place[0], place[1], int(2**k) if k >= 0 else 2.0**k, place[2]))
    for colour, dashed, a, b in curves:
        d = _path(x(a), y(b))
        pieces.append(Markup(f'<path class="curve k{colour % 6}{" dash" if dashed else ""}" d="{d}"/>'))
        dots = "".join(f"M{p:.1f},{q:.1f}h0" for p, q in zip(x(a).tolist(), y(b).tolist(), strict=True))
        pieces.append(Markup(f'<path class="dots k{colour % 6}" stroke-width="5" d="{dots}"/>'))
    pieces.append(_label((LEFT + WIDTH - RIGHT) / 2, height - 3, x_name, "middle"))
    pieces.append(_label(LEFT + 4, TOP, y_name, "start"))
    return _svg(WIDTH, height, title, join(pieces))


class _Scale:
    """A linear map of [low, high] onto [a, b]."""

    def __init__(self, low: float, high: float, a: float, b: float):
        self.low, self.high = low, high if high > low else low + 1.0
        self.a, self.b = a, b

    def __call__(self, values: np.ndarray) -> np.ndarray:
        return self.a + (values - self.low) / (self.high - self.low) * (self.b - self.a)

    def at(self, value: float) -> float:
        return float(self(np.array([value]))[0])


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers inside [low, high]."""
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _axes(x: _Scale, y: _Scale, height: float, x_name: str) -> Markup:
    frame = Markup(f'<path class="axis" d="M{LEFT},{TOP}V{height - BOTTOM}"/>')
    beside = (_label(LEFT - 5, y.at(t) + 4, t, "end") for t in _ticks(y.low, y.high))
    return join([frame, _line_axis(x, height, x_name), *beside])


def _line_axis(x: _Scale, height: float, x_name: str) -> Markup:
    line = Markup(f'<path class="axis" d="M{LEFT},{height - BOTTOM}H{WIDTH - RIGHT}"/>')
    below = (_label(x.at(t), height - BOTTOM + 13, t, "middle") for t in _ticks(x.low, x.high))
    return join([line, *below, _label((LEFT + WIDTH - RIGHT) / 2, height - 3, x_name, "middle")])


def _log_axis(x: _Scale, height: float, x_name: str, left: float = LEFT, right: float = WIDTH - RIGHT) -> Markup:
    """Labels 10^k on an axis of decimal logarithms."""
    pieces = [Markup(f'<path class="axis" d="M{left:g},{height - BOTTOM:g}H{right:g}"/>')]
    every = max(1, math.ceil((x.high - x.low) / 6))
    for k in range(math.ceil(x.low), math.floor(x.high) + 1, every):
        at = x.at(k)
        exponent = f'<tspan dy="-4" font-size="8">{k}</tspan>'
        pieces.append(
            Markup(f'<text x="{at:.1f}" y="{height - BOTTOM + 14:.1f}" text-anchor="middle">10{exponent}</text>')
        )
    pieces.append(_label((left + right) / 2, height - 3, x_name, "middle"))
    return join(pieces)


def _label(x: float, y: float, content: object, anchor: str) -> Markup:
    shown = text(content) if isinstance(content, str) else measured(content)
    return Markup(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown}</text>')


def _path(x: np.ndarray, y: np.ndarray) -> str:
    return "M" + "L".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def _svg(width: float, height: float, title: str, body: str, extra: str = "", top: float = 0.0) -> Markup:
    """A picture from ``top`` down to ``height``."""
    return Markup(
        f'<svg viewBox="0 {top:g} {width:g} {height - top:g}" role="img" aria-label="{text(title)}" {extra}>'
        f"<title>{text(title)}</title>{body}</svg>"
    )
