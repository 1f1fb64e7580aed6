"""How far a value may be off, *depending on where it is*: a gap for every part of its range.

Let x be the value of a program with its splines, y that of the ideal program, at any input, token and feature. A
profile says that |x − y| ≤ gap[k] whenever edges[k] ≤ x ≤ edges[k + 1], that x never leaves the edges, and that y never
leaves [low, high]. One number for the whole range would be useless where a function is steep at one end: √v is off by
5·(what v is off) at v = 0.01 and by the root of it at 0; after max(√v, 0.1) only the former counts.

An operation maps *cells*: intervals for x and y and a gap, such that every pair (x, y) that occurs is in one of them.
Cells of a result overlap; they are sorted into new edges, each interval with the largest gap of the cells that meet it.
Everything is float64, rounded outward: ends by 2^-46 of the numbers that were added up, gaps by 2^-40.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thereexists.certificates.program_numbers import TINY

Array = np.ndarray

PARTS = 64  # intervals of a profile
ROUNDED_UP = 1.0 + 2.0**-40  # of a few float64 operations on numbers that are not negative


@dataclass(frozen=True)
class Cells:
    """Intervals for the value with its splines (x) and the ideal one (y), and how far apart the two are."""

    x_low: Array
    x_high: Array
    y_low: Array
    y_high: Array
    gap: Array

    @property
    def size_x(self) -> Array:
        return np.maximum(np.abs(self.x_low), np.abs(self.x_high))

    @property
    def size_y(self) -> Array:
        return np.maximum(np.abs(self.y_low), np.abs(self.y_high))


@dataclass(frozen=True)
class Profile:
    edges: Array  # (k + 1,), ascending
    gap: Array  # (k,)
    low: float
    high: float

    @classmethod
    def flat(cls, low: float, high: float, gap: float, ends: tuple[float, float] | None = None) -> Profile:
        """One gap for the whole range of x; y is within it of x, or between stated ends."""
        least, most = down(low - gap, abs(low) + gap), up(high + gap, abs(high) + gap)
        if gap == 0:
            least, most = low, high
        if ends is not None:
            least, most = max(least, ends[0]), min(most, ends[1])
        return cls(np.array([low, high]), np.array([gap]), least, most)

    @property
    def worst(self) -> float:
        return float(self.gap.max())

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    def within(self, low: float, high: float) -> Profile:
        """The same, of an x that is also known to stay in [low, high]."""
        low, high = max(low, float(self.edges[0])), min(high, float(self.edges[-1]))
        if not low <= high:
            return self
        inside = (self.edges[1:] >= low) & (self.edges[:-1] <= high)
        edges = np.append(self.edges[:-1][inside], self.edges[1:][inside][-1])
        edges[0], edges[-1] = low, high
        gap = self.gap[inside]
        reach = Profile.flat(low, high, float(gap.max()), self.ends)
        return Profile(edges, gap, reach.low, reach.high)

    def cut(self, points: Array) -> Cells:
        """Cells of this profile, cut at the points that lie inside, too."""
        low, high = self.edges[0], self.edges[-1]
        edges = np.unique(np.concatenate([self.edges, points[(points > low) & (points < high)]]))
        if len(edges) == 1:
            edges = np.array([low, high])
        middle = edges[:-1] + (edges[1:] - edges[:-1]) / 2
        gap = self.gap[np.clip(np.searchsorted(self.edges, middle, side="right") - 1, 0, len(self.gap) - 1)]
        size = np.maximum(np.abs(edges[:-1]), np.abs(edges[1:])) + gap
        reach = np.where(gap > 0, gap + size * 2.0**-46 + TINY, 0.0)
        y_low, y_high = np.maximum(edges[:-1] - reach, self.low), np.minimum(edges[1:] + reach, self.high)
        # where they cross, no x occurs: any interval is right
        return Cells(edges[:-1], edges[1:], np.minimum(y_low, y_high), np.maximum(y_low, y_high), gap)

    def cells(self, *points: Array) -> Cells:
        """Cut into equal parts, if it is not yet, and at some points besides."""
        parts = PARTS if len(self.edges) <= PARTS // 2 else 1
        return self.cut(np.concatenate([np.linspace(self.edges[0], self.edges[-1], parts + 1), *points]))


def sum_rounded_up(terms: int) -> float:
    """``ROUNDED_UP``, of so many products of numbers ≥ 0, added up in any order (Higham 2002, section 3.1)."""
    return max(ROUNDED_UP, 1.0 + (terms + 8) * 2.0**-52)


def down(number: float, size: float) -> float:
    return number - size * 2.0**-46 - TINY


def up(number: float, size: float) -> float:
    return number + size * 2.0**-46 + TINY


def sorted_into_profile(cells: Cells) -> Profile | None:
    """Cells as a profile: half of its edges equally spaced, half where the cells end. None if a number overflowed."""
    parts = (cells.x_low, cells.x_high, cells.y_low, cells.y_high, cells.gap)
    if not all(np.isfinite(part).all() for part in parts):
        return None
    ends = np.sort(np.concatenate([cells.x_low, cells.x_high]))
    chosen = ends[np.linspace(0, len(ends) - 1, PARTS // 2 + 1).astype(int)]
    edges = np.unique(np.concatenate([chosen, np.linspace(ends[0], ends[-1], PARTS // 2 + 1)]))
    edges = np.clip(edges, ends[0], ends[-1])
    edges = edges if len(edges) > 1 else np.repeat(edges, 2)
    meets = (cells.x_low[:, None] <= edges[None, 1:]) & (cells.x_high[:, None] >= edges[None, :-1])
    gap = np.where(meets, cells.gap[:, None], 0.0).max(axis=0)
    return Profile(edges, gap, float(cells.y_low.min()), float(cells.y_high.max()))


def pairs(a: Cells, b: Cells) -> tuple[Cells, Cells]:
    """Every cell of a with every cell of b."""
    i, j = (k.reshape(-1) for k in np.indices((len(a.gap), len(b.gap))))
    return _chosen(a, i), _chosen(b, j)


def _chosen(cells: Cells, k: Array) -> Cells:
    return Cells(*(getattr(cells, name)[k] for name in Cells.__dataclass_fields__))


# --- operations -------------------------------------------------------------------------------------------------------


_quietly = np.errstate(over="ignore", invalid="ignore")  # what overflows is no profile, see ``sorted_into_profile``


@_quietly
def sum_of(parts: list[tuple[float, Profile]]) -> Profile | None:
    """Σ c·value."""
    total: Profile | None = Profile.flat(0.0, 0.0, 0.0)
    for c, profile in parts:
        if total is not None and c != 0:
            a, b = pairs(total.cells(), _times(c, profile.cells()))
            total = sorted_into_profile(_added(a, b))
    return total


def _times(c: float, cells: Cells) -> Cells:
    def ends(low: Array, high: Array) -> tuple[Array, Array]:
        size = abs(c) * np.maximum(np.abs(low), np.abs(high))
        wider = _pad(size, (c != 0) & ((low != 0) | (high != 0)))
        return np.minimum(c * low, c * high) - wider, np.maximum(c * low, c * high) + wider

    gap = _larger(abs(c) * cells.gap, (c != 0) & (cells.gap > 0))
    return Cells(*ends(cells.x_low, cells.x_high), *ends(cells.y_low, cells.y_high), gap)


def _added(a: Cells, b: Cells) -> Cells:
    x, y = a.size_x + b.size_x, a.size_y + b.size_y
    return Cells(
        a.x_low + b.x_low - _pad(x), a.x_high + b.x_high + _pad(x),
        a.y_low + b.y_low - _pad(y), a.y_high + b.y_high + _pad(y),
        _larger(a.gap + b.gap),
    )  # fmt: skip


def _pad(size: Array, touched: Array | None = None) -> Array:
    """``touched``: where a size of products is not 0, though it may have underflowed to that."""
    return np.where(size > 0 if touched is None else touched, size * 2.0**-46 + TINY, 0.0)


def _larger(gap: Array, touched: Array | None = None) -> Array:
    return np.where(gap > 0 if touched is None else touched, gap * ROUNDED_UP + TINY, 0.0)


@_quietly
def product_of(a: Profile, b: Profile, own: float, same: bool) -> Profile | None:
    """x_a·x_b off by at most ``own``. ``same``: a and b are one value, so only equal cells meet.

    x_a·x_b − y_a·y_b = (x_a − y_a)·x_b + y_a·(x_b − y_b), and the same with x and y exchanged.
    """
    first, second = (a.cells(),) * 2 if same else pairs(a.cells(), b.cells())
    one = second.size_x * first.gap + first.size_y * second.gap
    other = second.size_y * first.gap + first.size_x * second.gap
    gap = (np.minimum(one, other) + own) * ROUNDED_UP + TINY
    x = _corners(first.x_low, first.x_high, second.x_low, second.x_high, same, own)
    y = _corners(first.y_low, first.y_high, second.y_low, second.y_high, same, 0.0)
    return sorted_into_profile(Cells(*x, *y, gap))


def _corners(a: Array, b: Array, c: Array, d: Array, same: bool, own: float) -> tuple[Array, Array]:
    corners = (a * a, b * b) if same else (a * c, a * d, b * c, b * d)
    least, most = np.minimum.reduce(corners), np.maximum.reduce(corners)
    if same:
        least = np.where((a <= 0) & (b >= 0), 0.0, least)
    touched = ((a != 0) | (b != 0)) & ((c != 0) | (d != 0))
    wider = _pad(np.maximum(np.abs(least), np.abs(most)), touched) + own * ROUNDED_UP
    return least - wider, most + wider


@_quietly
def larger_of(a: Profile, b: Profile, smaller: bool = False) -> Profile | None:
    """max or min, whose gap is at most that of whoever wins for x and for y alike; and what both intervals allow."""
    first, second = pairs(a.cells(b.edges[[0, -1]]), b.cells(a.edges[[0, -1]]))
    if smaller:
        first, second = (_times(-1.0, cells) for cells in (first, second))
    x = np.maximum(first.x_low, second.x_low), np.maximum(first.x_high, second.x_high)
    y = np.maximum(first.y_low, second.y_low), np.maximum(first.y_high, second.y_high)
    wins_first = (first.x_low >= second.x_high) & (first.y_low >= second.y_high)
    wins_second = (second.x_low >= first.x_high) & (second.y_low >= first.y_high)
    gap = np.where(wins_first, first.gap, np.where(wins_second, second.gap, np.maximum(first.gap, second.gap)))
    apart = np.maximum(x[1] - y[0], y[1] - x[0])  # at least 0, as the intervals stand
    allowed = np.maximum(apart, 0.0) * ROUNDED_UP + TINY
    cells = Cells(*x, *y, np.where(gap > 0, np.minimum(gap, allowed), 0.0))
    return sorted_into_profile(_times(-1.0, cells) if smaller else cells)


@_quietly
def size_of(a: Profile) -> Profile | None:
    """|value|."""
    c = a.cells()

    def ends(low: Array, high: Array) -> tuple[Array, Array]:
        return np.maximum(np.maximum(low, -high), 0.0), np.maximum(-low, high)

    return sorted_into_profile(Cells(*ends(c.x_low, c.x_high), *ends(c.y_low, c.y_high), c.gap))


@_quietly
def mapped(cells: Cells, f: Callable[..., tuple[float, ...]]) -> Profile | None:
    """A function of cells, one by one: (x_low, x_high, y_low, y_high, gap) of each becomes that of the result."""
    given = zip(cells.x_low, cells.x_high, cells.y_low, cells.y_high, cells.gap, strict=True)
    found = np.array([f(*map(float, cell)) for cell in given])
    return sorted_into_profile(Cells(*found.T))
