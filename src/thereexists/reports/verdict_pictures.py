"""Two small pictures of what was proved: sizes against what was asked for, and checks that passed or did not.

Sizes of very different orders share one logarithmic axis, so that the part that matters and the margin to what was
asked for are seen together. Checks are a line of marks that flows with the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from thereexists.certificates.certificate import Certificate
from thereexists.core.authors_word import WORDS
from thereexists.reports.html import SHADES, Markup, at_most, figure, in_figures, join, number, text, upper
from thereexists.reports.svg import ASKED, ERROR, _label, _log_axis, _Scale, _svg

MOST_STEPS = 60  # that are drawn; a forged file may list any number
SMALLEST = -15.0  # decimal logarithm: what is less lies on the left edge
_WIDTH, _PITCH, _RIGHT = 460.0, 24.0, 92.0
_MARKS = {
    True: ("good", "passed", "M4 8.5l2.6 2.6L12 5.2"),
    False: ("bad", "failed", "M5 5l6 6M11 5l-6 6"),
    None: ("soft", "not decided", "M4.5 8h7"),
}


@dataclass(frozen=True)
class Size:
    """A row of ``decades``; ``part`` is the shade of a part of the bound, None for a whole; ``limit``: its own."""

    label: str
    value: float
    part: int | None = None
    limit: float | None = None


def bound_picture(certificate: Certificate, says: str = f" ({WORDS})") -> Markup:
    """The bound, its parts and the number formats it holds in, against what was asked for; ``says``: whose word."""
    shares = certificate.shares()
    formats = certificate.dtype_bounds()
    rows = [Size("the bound", float(certificate.bound))]
    rows += [Size(f"in {name}", size) for name, size in formats.items() if size not in (None, certificate.bound)]
    rows += [Size(name.replace("_", " "), float(size), i) for i, (name, size) in enumerate(shares.items())]
    rows = [row for row in rows if math.isfinite(row.value)]
    drawn = []
    if any(row.value > 0 for row in rows):
        asked = next(iter(certificate.asked_for()), None)
        beside = "" if asked is None else f" The dashed line is what was asked for{says}: {number(float(asked))}."
        whole = "The bound and its parts, on a logarithmic scale" if shares else "The bound, on a logarithmic scale"
        drawn.append(figure(decades(rows, "The bound and its parts", asked), Markup(f"{whole}{says}.{beside}")))
    if formats:
        marks = steps({name: size is not None for name, size in formats.items()})
        drawn.append(figure(marks, f"The number formats that it holds in{says}."))
    return join(drawn)


def decades(rows: Sequence[Size], title: str, asked: float | None = None) -> Markup:
    """A dot for every size on one logarithmic axis; ``asked`` is a line through all rows, a limit a tick in its own."""
    limits = [float(limit) for limit in (asked, *(row.limit for row in rows)) if limit is not None]
    every = [float(row.value) for row in rows] + limits
    if not all(math.isfinite(size) for size in every):
        raise ValueError("a figure is not a finite number")
    exponents = [max(math.log10(size), SMALLEST) for size in every if size > 0]
    low, high = math.floor(min(exponents, default=0.0) - 0.2), math.ceil(max(exponents, default=1.0) + 0.1)
    left = 14.0 + 7.6 * max(len(row.label) for row in rows)
    height, bottom = 14.0 + len(rows) * _PITCH, 30.0
    x = _Scale(low, high, left, _WIDTH - _RIGHT)
    pieces = [_log_axis(x, height + bottom, "", left, _WIDTH - _RIGHT)]
    for i, row in enumerate(rows):
        y = 16.0 + i * _PITCH
        pieces.append(_label(left - 8, y + 4, row.label, "end"))
        pieces.append(_label(_WIDTH - 2, y + 4, _size(row), "end"))
        style = f"f{ERROR}" if row.part is None else f"s{row.part % SHADES}"
        if row.value > 0:
            at = x.at(max(math.log10(row.value), low))
            pieces.append(Markup(f'<path class="axis" d="M{left:.1f},{y:.1f}H{at:.1f}"/>'))
            pieces.append(Markup(f'<circle class="{style}" cx="{at:.1f}" cy="{y:.1f}" r="5"/>'))
        if row.limit is not None and row.limit > 0:
            pieces.append(_asked_at(x.at(max(math.log10(row.limit), low)), y - 9, y + 9))
    if asked is not None and asked > 0:
        pieces.append(_asked_at(x.at(max(math.log10(asked), low)), 4, height))
    said = "; ".join(f"{row.label} {_size(row)}" for row in rows)
    style = f'class="decades" style="max-width:{1.25 * _WIDTH:.0f}px"'
    return _svg(_WIDTH, height + bottom - 10, f"{title}: {said}", join(pieces), style)


def _size(row: Size) -> Markup:
    return at_most(row.value) if row.part is None else upper(row.value)


def steps(checks: Mapping[str, bool | None] | Iterable[tuple[str, bool | None]]) -> Markup:
    """A mark and a name for every check: a tick, a cross, or a dash for what was not decided."""
    listed = list(checks.items() if isinstance(checks, Mapping) else checks)
    shown = [Markup(f'<span class="step">{mark(passed)}{text(name)}</span>') for name, passed in listed[:MOST_STEPS]]
    more = len(listed) - len(shown)
    shown += [Markup(f'<span class="step">and {more:,} more</span>')] if more else []
    return Markup(f'<div class="steps">{join(shown)}</div>\n')


def mark(passed: bool | None) -> Markup:
    """One mark, in the colour and with the name of its meaning."""
    tone, word, path = _MARKS[passed]
    body = Markup(f'<circle class="disc" cx="8" cy="8" r="8"/><path class="sign" d="{path}"/>')
    return _svg(16, 16, word, body, f'class="mark {tone}"')


def worded(passed: bool | None, words: str) -> Markup:
    """A mark and a word in its colour."""
    return Markup(f'<span class="label {_MARKS[passed][0]}">{mark(passed)}{in_figures(words)}</span>')


def _asked_at(x: float, top: float, bottom: float) -> Markup:
    return Markup(f'<path class="curve dash k{ASKED}" d="M{x:.1f},{top:.1f}V{bottom:.1f}"/>')
