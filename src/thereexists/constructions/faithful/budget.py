"""How far a network will be from its target, before it is built.

The predicted error (Yun et al. 2020, section 4, with every part kept) is a bound on d_p(f, g) for a target that keeps
its stated modulus of continuity ω. With h the half-length of a cell's longest side, F the largest |f| and B the
largest |g| (the clamp's), and shares measured against the volume of the domain:

    grid           (share of distinct columns) · ∫ ‖f − f(centre)‖_p^p  ≤  dn · ω(h)^p, or for a Lipschitz constant L
                   dn · (L h)^p · dn/(dn+p), since the largest of dn uniform distances has that p-th moment
    equal columns  Σ over cubes with equal columns of vol · Σ (|f(centre)| + ω(h))^p: Theorem 1 answers 0 there
    ramps          (share of ramps)            · dn · (F + B)^p

On a domain that is not a box f is asked at some point of it in the cube: ω(2h) without the moment, and all cubes that
may meet the domain are charged with their whole measure.
"""

from __future__ import annotations

import math

import numpy as np

from thereexists.certificates.ramps import extent
from thereexists.certificates.units import PLAIN, over_share
from thereexists.constructions.faithful.softmax_limit import clamp_levels
from thereexists.constructions.faithful.value_mapping import Extremes
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.witness.plan import ErrorBudget, stated

_CHUNK = 1 << 17


def error_budget(target: Target, grid: Grid, extremes: Extremes, p: float) -> ErrorBudget | None:
    variation = target.variation(grid.reach)
    if variation is None:
        return None
    F = max(extremes.A) + variation
    equal_columns = 0.0
    if not grid.positional:
        equal_columns, largest = _over_equal_columns(target, grid, variation, p)
        F = max(F, largest)
    B = 3 * float(clamp_levels(extremes).max())
    ramps = over_ramps(F + B, target, grid, p)
    return stated(ErrorBudget(p, grid_part(target, grid, p), equal_columns, ramps), target)


def over_ramps(size: float, target: Target, grid: Grid, p: float) -> float:
    """An error of at most ``size`` in every entry, on the ramps."""
    if grid.domain is not None:
        return size * (grid.d * grid.n * extent(target, grid, PLAIN).off_core) ** (1 / p)
    return over_share(size, target, grid.d * grid.n * grid.ramp_share(), p)


def _over_equal_columns(target: Target, grid: Grid, variation: float, p: float) -> tuple[float, float]:
    """Bounds on (∫ ‖f‖_p^p)^{1/p} and |f| over the cubes with equal columns, which Theorem 1's network answers with 0.

    Powers are summed in units of the largest number so far, which no other one exceeds: none of them overflows.
    """
    powers, largest = 0.0, 0.0
    for start in range(0, grid.cells, _CHUNK):
        index = grid.cube(np.arange(start, min(start + _CHUNK, grid.cells)))
        ids = np.sort(grid.column_ids(index), axis=1)
        equal = (ids[:, 1:] == ids[:, :-1]).any(axis=1)
        if equal.any():
            size = np.abs(target(grid.representative(index[equal]))) + variation
            before, largest = largest, max(largest, float(size.max()))
            if largest > 0:
                powers = powers * (before / largest) ** p + float(((size / largest) ** p).sum())
    if grid.domain is not None:
        return largest * (powers * extent(target, grid, PLAIN).cube) ** (1 / p), largest
    # A cube's sides are the grid's steps, which may reach beyond the domain by a little.
    overhang = math.prod(s * grid.N / w for s, w in zip(grid.step, target.high - target.low, strict=True))
    return over_share(largest, target, powers / grid.cells * float(overhang) ** grid.n, p), largest


def grid_part(target: Target, grid: Grid, p: float) -> float:
    dn = grid.d * grid.n
    distinct = 1 - grid.equal_column_share()
    variation = target.variation(grid.reach) or 0.0
    if grid.domain is not None:
        return variation * (distinct * dn * extent(target, grid, PLAIN).whole) ** (1 / p)
    moment = dn / (dn + p) if target.modulus is None else 1.0
    return over_share(variation, target, distinct * dn * moment, p)
