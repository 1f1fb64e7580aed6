"""Pictures of an automaton and of the doubling tree, as inline SVG; the places of the states are our own.

States stand on an ellipse in the order in which breadth-first search meets them, the start at the left. An edge bends
to the right of its direction, so that two states that lead to each other have two edges that do not cover each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from thereexists.automata.automaton import Automaton
from thereexists.core.authors_word import shortened
from thereexists.reports.html import Markup, join, text
from thereexists.reports.svg import NETWORK, _svg

MOST_DRAWN = 24  # states
FEW = 8  # states that need no more than half the width of a page
MOST_POSITIONS = 32
PART = ".4"  # opacity of what is not whole yet
_RADIUS = 15.0
_LABEL = 0.3  # how far along an edge its label stands


def symbols_in_words(symbols: Sequence[Any], most: int = 14) -> str:
    """``a, c, 0–9``: runs of neighbouring characters become ranges; cut where it is long."""
    parts: list[str] = []
    run: list[str] = []

    def close() -> None:
        if len(run) > 2:
            parts.append(f"{run[0]}–{run[-1]}")
        else:
            parts.extend(run)
        run.clear()

    for symbol in symbols:
        word = str(symbol)
        follows = bool(run) and len(word) == 1 == len(run[-1]) and ord(word) == ord(run[-1]) + 1
        if run and not follows:
            close()
        run.append("␣" if word == " " else word)
    close()
    return shortened(", ".join(parts), most)


def edges_of(automaton: Automaton) -> dict[tuple[int, int], list[str]]:
    """(from, to): the symbols that lead there, with what they write; the dead state is left out."""
    found: dict[tuple[int, int], list[str]] = {}
    for q in range(automaton.size):
        for a, r in enumerate(automaton.table[q].tolist()):
            if automaton.dead in (q, r):
                continue
            written = f"/{automaton.output_alphabet[automaton.outputs[q, a]]}" if automaton.writes else ""
            found.setdefault((q, r), []).append(f"{automaton.alphabet[a]}{written}")
    return found


def lively_string(automaton: Automaton, most: int, seed: int) -> list[Any]:
    """Symbols at random that do not lead to the dead state; it ends where all of them do, or after ``most``.

    Strings at random alone say little of a pattern: nearly all are dead after a symbol or two.
    """
    rng, q, found = np.random.default_rng(seed), automaton.start, []
    while len(found) < most:
        ways = np.flatnonzero(automaton.table[q] != (-1 if automaton.dead is None else automaton.dead))
        if not len(ways) and not found:
            ways = np.arange(len(automaton.alphabet))  # dead from the beginning
        if not len(ways):
            break
        a = int(rng.choice(ways))
        found.append(automaton.alphabet[a])
        q = int(automaton.table[q, a])
    return found


def machine_picture(automaton: Automaton, title: str) -> Markup:
    """Circles for states (double: accepting), arrows for steps."""
    live = [q for q in range(automaton.size) if q != automaton.dead]
    width, height = (480.0 if len(live) <= FEW else 720.0), 230.0 + 16.0 * len(live)
    a, b, cx, cy = width / 2 - 90, height / 2 - 75, width / 2, height / 2
    place = {}
    for k, q in enumerate(live):
        angle = math.pi + 2 * math.pi * k / len(live)
        place[q] = (cx + a * math.cos(angle), cy + b * math.sin(angle)) if len(live) > 1 else (cx, cy)
    arrow = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="near" d="M0,0L8,4L0,8z"/></marker></defs>'
    )
    pieces = [Markup(arrow)]
    for (q, r), symbols in edges_of(automaton).items():
        # The start's loop stands above it: at its left the arrow from nowhere arrives.
        away = (place[q][0] + 40, place[q][1] + 80) if q == automaton.start else (cx, cy)
        pieces.append(_edge(place[q], place[r], symbols_in_words(symbols), away if q == r else (cx, cy)))
    for q, (x, y) in place.items():
        pieces.append(Markup(f'<circle class="f0" cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}"/>'))
        if automaton.accept[q] and not (automaton.writes and automaton.accept.all()):
            pieces.append(Markup(f'<circle class="curve k0" cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS + 4}"/>'))
        style = 'style="fill:var(--paper)"'
        pieces.append(Markup(f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" {style}>{q}</text>'))
        if q == automaton.start:
            pieces.append(
                Markup(f'<path class="ink" marker-end="url(#tip)" d="M{x - 52:.1f},{y:.1f}H{x - _RADIUS - 5:.1f}"/>')
            )
    return _svg(width, height, title, join(pieces))


def _edge(source: tuple[float, float], target: tuple[float, float], label: str, centre: tuple[float, float]) -> Markup:
    (x, y), (u, v) = source, target
    if source == target:  # a loop, on the side away from the centre
        dx, dy = x - centre[0], y - centre[1]
        size = math.hypot(dx, dy) or 1.0
        dx, dy = (dx / size, dy / size) if math.hypot(dx, dy) > 0 else (0.0, -1.0)
        sx, sy = -dy, dx
        start = (x + _RADIUS * (0.8 * dx + 0.6 * sx), y + _RADIUS * (0.8 * dy + 0.6 * sy))
        end = (x + (_RADIUS + 3) * (0.8 * dx - 0.6 * sx), y + (_RADIUS + 3) * (0.8 * dy - 0.6 * sy))
        one, two = ((x + 46 * dx + k * 22 * sx, y + 46 * dy + k * 22 * sy) for k in (1, -1))
        curve = f"C{one[0]:.1f},{one[1]:.1f} {two[0]:.1f},{two[1]:.1f} {end[0]:.1f},{end[1]:.1f}"
        middle = (x + 48 * dx, y + 48 * dy)
    else:
        length = math.hypot(u - x, v - y)
        dx, dy = (u - x) / length, (v - y) / length
        bend = min(0.18 * length, 40.0)
        via = ((x + u) / 2 - dy * bend, (y + v) / 2 + dx * bend)
        leave, arrive = (_towards(p, via, gap) for p, gap in ((source, _RADIUS), (target, _RADIUS + 6)))
        start, curve = leave, f"Q{via[0]:.1f},{via[1]:.1f} {arrive[0]:.1f},{arrive[1]:.1f}"
        # Nearer to where it begins: in the middle of the picture the edges of many states meet.
        a, b, c = (1 - _LABEL) ** 2, 2 * _LABEL * (1 - _LABEL), _LABEL**2
        middle = (a * x + b * via[0] + c * u - 8 * dy, a * y + b * via[1] + c * v + 8 * dx)
    line = f"M{start[0]:.1f},{start[1]:.1f}{curve}"
    path = f'<path class="axis" style="stroke:var(--edge)" marker-end="url(#tip)" d="{line}"/>'
    words = f'<text x="{middle[0]:.1f}" y="{middle[1] + 4:.1f}" text-anchor="middle">{text(label)}</text>'
    return Markup(path + words)


def _towards(source: tuple[float, float], target: tuple[float, float], gap: float) -> tuple[float, float]:
    length = math.hypot(target[0] - source[0], target[1] - source[1]) or 1.0
    return tuple(s + gap * (t - s) / length for s, t in zip(source, target, strict=True))  # pyright: ignore


def doubling_picture(blocks: Sequence[Sequence[Any]], word: Sequence[Any], title: str) -> Markup:
    """A row for every block, a column for every position: the bar is the segment whose map the position holds.

    What a bar means in full is its title. Once it reaches the first symbol it has the full colour.
    """
    n = min(len(word), MOST_POSITIONS)
    step, tall, left, top = min(40.0, 400.0 / max(n, 1)), 14.0 + 5.0 * n, 76.0, 26.0
    pieces = []
    for j in range(1, n + 1):
        x = left + (j - 0.5) * step
        pieces.append(Markup(f'<text x="{x:.1f}" y="14" text-anchor="middle">{text(str(word[j - 1]))}</text>'))
    for t, block in enumerate(blocks):
        y = top + t * tall
        name = "embedding" if t == 0 else f"block {t}"
        pieces.append(Markup(f'<text x="4" y="{y + 9:.1f}">{name}</text>'))
        for held in block[1 : n + 1]:
            j = held.position
            at = y + 4 + 5.0 * (j - 1)
            start = left + (held.first - 0.9) * step
            whole = held.first == 1
            share = "1" if whole else PART
            end = left + (j - 0.1) * step
            pieces.append(
                Markup(
                    f'<rect class="f{NETWORK}" fill-opacity="{share}" x="{start:.1f}" y="{at:.1f}" '
                    f'width="{end - start:.1f}" height="3.5" rx="1.5"><title>{text(_told(held))}</title></rect>'
                )
            )
    height = top + len(blocks) * tall + 4
    return _svg(left + n * step + 8, height, title, join(pieces))


def key_of_part() -> Markup:
    """The key of a bar that does not reach the first symbol yet."""
    patch = f'<span class="key f{NETWORK}" style="opacity:{PART}"></span>'
    return Markup(f'<span class="label">{patch}of a part of it</span>')


def _told(held: Any) -> str:
    led = ", ".join(f"{q}→{'dead' if r is None else r}" for q, r in enumerate(held.map))
    came = "" if held.fetched is None else f", fetched from position {held.fetched}"
    return f"position {held.position}: symbols {held.first} to {held.last}: {led}{came}"
