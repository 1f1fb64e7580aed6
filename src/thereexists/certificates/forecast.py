"""What a certificate will prove of a network that is not built yet: the certificate's own sums, with f̄ for the network.

A network that does what it was built for has the value f̄ on the core of every cube, up to rounding. So the sums over
cubes of its certificate are, up to the same rounding, those of f̄: they are known before there is a network, from f
alone. Off the cores the certificate charges a bound B of the network's output, which its construction knows.

This is a prediction. It chooses a grid; what is proved is for the certificate to say.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from thereexists.arithmetic.balls import Ball
from thereexists.certificates.certify_function import SUBCUBES
from thereexists.certificates.cubes import Problem, Sums, combined, equal_columns, sums_of, tile_for
from thereexists.certificates.ramps import extent
from thereexists.certificates.rigorous import Bound, bound_of, refuse_extremes, sizes
from thereexists.certificates.units import Units
from thereexists.certificates.variation import splits_within
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target

ROUNDING = 2.0**-20  # of its values: a network is nearer to f̄ than that


@dataclass(frozen=True)
class Forecast:
    """The sums over all cubes; with a bound of the output, feature by feature, they make a bound on d_p."""

    problem: Problem
    target: Target
    sums: Sums

    def bound(self, B: list[float]) -> Bound:
        return bound_of(dataclasses.replace(self.problem, B=B), self.target, self.sums)


def forecast(target: Target, grid: Grid, p: float, all_columns: bool, enough: float) -> Forecast | None:
    """The sums of f̄ over all cubes; None as soon as they show that the bound will be more than ``enough``.

    ``all_columns``: whether f̄ has f's value, and not 0, where columns are equal and there are no positions.
    """
    refuse_extremes(p, target)
    splits, tile = splits_within(grid, SUBCUBES), tile_for(grid)
    units = Units.of(target, p, sizes(target, grid, splits))
    problem = Problem(grid, p, splits, [0.0] * grid.d, tile, units)
    everywhere = units.root_of_volume(extent(target, grid, units).whole * grid.n * grid.d, p, grid.n)
    found: list[Sums] = []
    for first in range(0, grid.cells, tile):
        numbers = np.arange(first, min(first + tile, grid.cells))
        values = grid.values(target, grid.cube(numbers))
        if not all_columns:
            values[equal_columns(grid, numbers)] = 0.0
        found = [
            combined([*found, sums_of(target, problem, numbers, Ball(values, np.zeros_like(values)), _all(numbers))])
        ]
        distinct, equal, *_, largest = found[0]
        if units.root(distinct + equal, p, grid.n) > enough + ROUNDING * largest * everywhere:
            return None
    return Forecast(problem, target, found[0])


def _all(numbers: np.ndarray) -> np.ndarray:
    return np.ones(len(numbers), dtype=bool)
