"""Does the float64 run keep to the bound that the weights prove in exact arithmetic? Tried, never proved.

A clamp bounds the output whatever came before it, in exact arithmetic. In float64 Z − (Z − M) is M only up to the
rounding of Z: a network that reaches 1e90 somewhere before its clamp may leave it at 1e74. Where no core is, nothing
else looks at the network. So the run is tried on points around the edges of the cells, where the cores end: at the edge
itself, and at distances of every order from one cell down to the last bit, on both sides, at the ends of the domain
most often. A network that is 0 outside of the domain is tried there too. A place that is small and hidden well enough
is not found: what is said about the float64 run is *measured*.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from thereexists.core.errors import NotProved
from thereexists.functions.anywhere import anywhere
from thereexists.functions.grid import Grid
from thereexists.functions.target import Array, Target

POINTS = 512
SHARE = 2.0**-20  # of the bound: rounding that a construction may have
ULPS = 2.0**-44  # of the largest column: a clamp rounds by a few last bits of what reaches it, 35 of 2^-52 at most seen
_MOST_CARRIED = 2.0**-10  # of the bound: a float run that is not known so well does not count as known (``cubes.py``)
_FARTHEST = 2.0**900  # from the domain that an entry is moved
_BITS = 54  # orders of magnitude, in powers of two, that a distance from an edge may have


def beyond(Y: Array, B: list[float], grid: Grid) -> Array:
    """Which sequences have an output beyond the bound (rounding allowed), or one that is not a number: (batch,).

    The rounding allowed is that of columns which this grid has, not that of weights which a forger chose.
    """
    ends = np.maximum(np.abs(grid.origin), np.abs(grid.high))
    column = float((ends + grid.n * (grid.N + 1) * np.array(grid.step)).max())
    return ~np.asarray((np.abs(Y) <= np.array(B) * (1 + SHARE) + column * ULPS).all(axis=(1, 2)))


def carried(grid: Grid, B: list[float]) -> float:
    """What the ids may make of a rounded entry, on the core of any cube: no more than 2^-10 of the bound.

    The quantiser takes x from edges, which are as large as the ends of the domain, and multiplies by 2^20 or a little
    more: an entry close to 0 may be off by about 2^-32 of the ends, and the id of its column with it. Each of n shifts
    multiplies that by K at most, and the last by C = K^n (largest id + 1). The value that replaces the id is off by
    what it is. It is rare, for the entry must be far smaller than the ends: one sample meets it, and another does not.
    This is the rounding of this grid: no weights make it larger.
    """
    end = float(max(np.abs(grid.origin).max(), np.abs(grid.high).max()))
    column = 2.0**-32 * end * sum(grid.N**i for i in range(grid.d))
    return min(column * grid.K ** (2 * grid.n) * (grid.max_column_id + 1), _MOST_CARRIED * max(B))


def strays(run: Callable[[Array], Array], target: Target, grid: Grid, B: list[float], seed: int) -> str | None:
    """A point near the edges, in words, on which the float64 run is beyond the bound; None if there was none.

    Where the integral is one over all of R^{d×n}: or a point outside of the box on which it is not 0.
    """
    rng = np.random.default_rng(seed)
    X = edge_points(target, grid, rng)
    with np.errstate(all="ignore"):
        Y = run(X)
    out = beyond(Y, B, grid)
    if out.any():
        return found_at(X[out][0], Y[out][0], B)
    return _left_outside(run, _outside_points(target, grid, X, rng)) if target.compact_support else None


def _left_outside(run: Callable[[Array], Array], X: Array) -> str | None:
    with np.errstate(all="ignore"):
        Y = run(X)
    wrong = ~np.asarray((Y == 0).all(axis=(1, 2)))  # NaN is not 0
    if not wrong.any():
        return None
    x, y = X[wrong][0].tolist(), Y[wrong][0].tolist()
    return f"the float64 run gives {y} at {x}, outside the domain, where it is 0 in exact arithmetic"


def found_at(x: Array, y: Array, B: list[float]) -> str:
    return f"the float64 run gives {y.tolist()} at {x.tolist()}, and the output is bounded by {B} in exact arithmetic"


def refuse_strays(X: Array, Y: Array, B: list[float], grid: Grid) -> None:
    """For a bound that is about the float64 run."""
    out = beyond(Y, B, grid)
    if out.any():
        raise NotProved(f"Not proved: {found_at(X[out][0], Y[out][0], B)}; rounding undoes what bounds this network.")


def _outside_points(target: Target, grid: Grid, X: Array, rng: np.random.Generator) -> Array:
    """These sequences with one entry moved outside, by distances of every order, from the last bit to the largest that
    a witness takes."""
    X, rows = X.copy(), np.arange(len(X))
    token, feature = (rng.integers(0, size, len(X)) for size in X.shape[1:])
    high = rng.random(len(X)) < 0.5
    end, way = np.where(high, target.high[feature], target.low[feature]), np.where(high, 1.0, -1.0)
    largest = min(_FARTHEST, np.finfo(np.float64).max / 8 * min(float(grid.ramp.min()), 1.0))
    away = np.array(grid.step)[feature] * 2.0 ** rng.uniform(-_BITS, math.log2(largest), len(X))
    moved = np.clip(end + way * away, -largest, largest)
    X[rows, token, feature] = np.where(moved == end, np.nextafter(end, way * np.inf), moved)
    return X


def edge_points(target: Target, grid: Grid, rng: np.random.Generator, count: int = POINTS) -> Array:
    """Sequences (count, n, d), about half of whose entries lie near an edge and the others anywhere."""
    shape = (count, grid.n, grid.d)
    low, high, step = target.low, target.high, np.array(grid.step)
    edge = np.array(grid.origin) + rng.integers(0, grid.N + 1, shape) * step
    end = rng.integers(0, 4, shape)
    edge = np.where(end == 0, low, np.where(end == 1, high, edge))
    away = rng.choice((-1.0, 0.0, 1.0), shape) * step * 2.0 ** (-_BITS * rng.random(shape))
    inside = anywhere(rng, low, high, shape)
    return np.clip(np.where(rng.random(shape) < 0.5, edge + away, inside), low, high)
