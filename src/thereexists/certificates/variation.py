"""How far is the target from a constant on each cube? Upper bounds of ∫ Σ_entries |f − G|^p over a cube, G a ball.

Every cube (its part inside the domain) is cut into S^{nd} sub-cubes. On a sub-cube with centre c and largest half
length h, every entry satisfies two inequalities, and the smaller right side is used:

    |f(X) − G| ≤ a + L·max|X − c|,  a = |f(c) − G|: the p-th moment of max|X − c|/h over the sub-cube is at most
                 dn/(dn+p), so by Minkowski ∫ |f − G|^p ≤ volume · (a + L h (dn/(dn+p))^{1/p})^p
                 (with a general modulus ω instead of L: volume · (a + ω(h))^p)
    |f(X) − G| ≤ the distance from G to the far end of an interval extension of f on the sub-cube.

f(c) comes from the interval extension at the point c where there is one. Without one it is the caller's function in
float64, taken to be within 2^-40 · max(1, |f(c)|): an assumption that the certificate states.

On a domain D that is not a box, sub-cubes that miss it count for nothing, the others with the measure of their part of
D, at most. f is asked at a point c of D instead of the centre; c and every X of D in the sub-cube are both in D, so the
modulus of continuity *on D* bounds |f(X) − f(c)| by ω(max|X − c|), and no extension of f is needed. Where c is the
centre, and the sub-cube is charged with its whole volume, the p-th moment above still holds; elsewhere ω of the
distance is used.

The same two inequalities bound |f − G| at *every* point of the sub-cube, with L·h (or ω(h)) for its p-th moment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.arithmetic.balls import Array, Ball
from thereexists.certificates.units import ROUNDED_UP, Units
from thereexists.functions.grid import Grid
from thereexists.functions.target import EVALUATION_ERROR, Target

EPS = 2.0**-52
SLACK = 1 + 2.0**-48  # a handful of sums and products of positive numbers, each rounded once
MOST_SPLITS = 8


@dataclass(frozen=True)
class Variation:
    """Per cube: the integral of Σ|f − G|^p in the problem's units (``units.py``), the largest |f|, and the largest
    |f − G| of any entry at any point (``worst``)."""

    integral: Array
    largest: Array
    worst: Array


def splits_within(grid: Grid, budget: int) -> int:
    """The largest power of two S ≤ 8 for which all cubes have at most ``budget`` sub-cubes together."""
    S = 1
    while S < MOST_SPLITS and grid.cells * (2 * S) ** (grid.n * grid.d) <= budget:
        S *= 2
    return S


def sub_cubes(target: Target, grid: Grid, numbers: Array, S: int) -> tuple[Array, Array]:
    """The lower corners and the sides of the sub-cubes of these cubes, one cube after the other: (sub-cubes, n, d)."""
    entries = grid.n * grid.d
    offsets = (np.arange(S**entries)[:, None] // S ** np.arange(entries) % S).reshape(-1, grid.n, grid.d)
    lower, side = _parts(target, grid, numbers, S)  # (cubes, n, d)
    low = (lower[:, None] + offsets * side[:, None]).reshape(-1, grid.n, grid.d)
    return low, np.repeat(side, S**entries, axis=0)


def variation(target: Target, grid: Grid, numbers: Array, G: Ball, p: float, S: int, units: Units) -> Variation:
    """Bounds for the cubes with these numbers; ``G`` (cubes, n, d) with finite radii."""
    low, side = sub_cubes(target, grid, numbers, S)
    G = Ball(*(np.repeat(part, len(low) // len(numbers), axis=0) for part in G))
    integral, largest, worst = _in_parts(target, low, side, G, p, units)
    return Variation(
        integral.reshape(len(numbers), -1).sum(axis=1) * ROUNDED_UP,
        largest.reshape(len(numbers), -1).max(axis=1),
        worst.reshape(len(numbers), -1).max(axis=1) * SLACK,
    )


def _in_parts(target: Target, low: Array, side: Array, G: Ball, p: float, units: Units) -> tuple[Array, Array, Array]:
    """Of every sub-cube: the integral, the largest |f|, the largest |f − G|; 0 of those that the domain misses."""
    if target.region is None:
        per_entry, largest, worst = _bounds(target, low, side, G, p)
        return units.times(units.volumes(side), units.power(per_entry, p).sum(axis=(1, 2))), largest, worst
    integral, largest, worst = np.zeros(len(low)), np.zeros(len(low)), np.zeros(len(low))
    rows = in_domain(target, low, side)
    if len(rows):
        low, side, G = low[rows], side[rows], G[rows]
        per_entry, largest[rows], worst[rows] = _bounds(target, low, side, G, p)
        ends = (end.reshape(len(rows), -1) for end in corners(target, low, side)[:2])
        volumes = target.region.measure(*ends)
        integral[rows] = units.times(volumes, units.power(per_entry, p).sum(axis=(1, 2)))
    return integral, largest, worst


def largest_on_ramps(target: Target, grid: Grid) -> float:
    """At least |f| where a domain that is not a box meets cubes on their ramps alone: no sum over cubes looks there.

    Each such cube by itself; of very many, by one point of the domain and its whole box.
    """
    if target.region is None:
        return 0.0
    index = grid.edge_cubes()
    if index is None:
        low = np.broadcast_to(target.low, (1, grid.n, grid.d))
        side = np.broadcast_to(target.high - target.low, low.shape)
    else:
        low = np.maximum(np.array(grid.origin) + index * np.array(grid.step), target.low)
        side = np.minimum(np.array(grid.origin) + (index + 1) * np.array(grid.step), target.high) - low
    rows = in_domain(target, low, side) if len(low) else np.arange(0)
    zero = np.zeros((len(rows), grid.n, grid.d))
    return float(_bounds(target, low[rows], side[rows], Ball(zero, zero), 1.0)[1].max()) if len(rows) else 0.0


def in_domain(target: Target, low: Array, side: Array) -> Array:
    """The numbers of the sub-cubes that may meet the domain."""
    if target.region is None:
        return np.arange(len(low))
    ends = (end.reshape(len(low), -1) for end in corners(target, low, side)[:2])
    return np.flatnonzero(target.region.meets(*ends))


def asked_at(target: Target, low: Array, side: Array) -> tuple[Array, Array, Array]:
    """Where f is asked about sub-cubes, how far their points of the domain are from there at most, and whether that is
    their centre, and the sub-cube is charged as a whole."""
    centre, half = low + side / 2, side.max(axis=(1, 2)) / 2
    if target.region is None:
        return centre, half, np.ones(len(low), dtype=bool)
    flat = [end.reshape(len(low), -1) for end in (low, low + side)]
    X = target.region.point(*flat)
    reach = np.maximum(target.region.reach(X, *flat), 0.0)
    central = (X == centre.reshape(X.shape)).all(axis=1) & (target.region.flat == 0)
    return X.reshape(centre.shape), np.where(central, half, reach), central


def some_boxes(target: Target, grid: Grid, S: int, count: int, seed: int) -> tuple[Array, Array]:
    """Some of the boxes on which a certificate uses the interval extension: random sub-cubes of random cubes."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(grid.cells, size=count) if grid.cells < 1 << 62 else rng.integers(1 << 62, size=count)
    lower, side = _parts(target, grid, numbers, S)
    low = lower + rng.integers(S, size=lower.shape) * side
    return corners(target, low, side)[:2]


def _parts(target: Target, grid: Grid, numbers: Array, S: int) -> tuple[Array, Array]:
    """The lower corner of every cube's part inside the domain, and the sides of its sub-cubes: (cubes, n, d)."""
    index = grid.cube(numbers)
    lower = np.maximum(np.array(grid.origin) + index * np.array(grid.step), target.low)
    upper = np.minimum(np.array(grid.origin) + (index + 1) * np.array(grid.step), target.high)
    return lower, (np.maximum(upper, lower) - lower) / S


def corners(target: Target, low: Array, side: Array) -> tuple[Array, Array, float]:
    """Boxes that contain the sub-cubes, whose corners are themselves rounded, and by how much they are wider."""
    slack = 4 * EPS * np.maximum(np.abs(low), np.abs(low + side)).max()
    return np.maximum(low - slack, target.low), np.minimum(low + side + slack, target.high), float(slack)


def _bounds(target: Target, low: Array, side: Array, G: Ball, p: float) -> tuple[Array, Array, Array]:
    """For every sub-cube: (the p-mean of |f − G|) per entry, the largest |f|, the largest |f − G|. At least one of the
    two ways must be open."""
    if target.has_modulus:
        asked, half, central = asked_at(target, low, side)
    low, high, slack = corners(target, low, side)
    deviation, largest = np.full(low.shape, np.inf), np.full(len(low), np.inf)
    farthest = deviation
    if target.interval is not None:
        f_low, f_high = target.enclosure(low, high)
        deviation = farthest = _far(f_low, f_high, G)
        largest = np.maximum(np.abs(f_low), np.abs(f_high)).max(axis=(1, 2))
    if target.has_modulus:
        f_low, f_high = _at_point(target, asked)
        spread, moment = _spread(target, np.asarray(half + 2 * slack), low.shape[1] * low.shape[2], p)  # (sub-cubes,)
        moment = np.where(central, moment, spread)
        at_point = _far(f_low, f_high, G)
        deviation = np.minimum(deviation, at_point + moment[:, None, None])
        farthest = np.minimum(farthest, at_point + spread[:, None, None])
        at_centre = np.maximum(np.abs(f_low), np.abs(f_high)).max(axis=(1, 2))
        largest = np.minimum(largest, at_centre + spread)
    return deviation, largest, farthest.max(axis=(1, 2))


def _at_point(target: Target, X: Array) -> tuple[Array, Array]:
    if target.interval is not None:
        return target.enclosure(X, X)
    Y = target(X)
    slack = EVALUATION_ERROR * np.maximum(1.0, np.abs(Y))
    return Y - slack, Y + slack


def _spread(target: Target, half: Array, entries: int, p: float) -> tuple[Array, Array]:
    """ω(h), and the p-mean of ω(max|X − c|) over a sub-cube of half length h (or the bound ω(h) for it)."""
    distinct, where = np.unique(half, return_inverse=True)
    spread = np.array([target.variation(float(h)) for h in distinct])[where]
    share = (entries / (entries + p)) ** (1 / p) if target.modulus is None else 1.0
    moment = np.nextafter(spread * share * (1 + 2.0**-50), np.inf)  # not 0, should L·h have underflowed
    return np.nextafter(spread, np.inf), moment


def _far(f_low: Array, f_high: Array, G: Ball) -> Array:
    """max |f − g| over f in [f_low, f_high] and g in the ball."""
    return np.maximum(np.abs(f_high - G.mid), np.abs(G.mid - f_low)) + G.rad
