"""The output over two entries of the input, all others held: one number for every cell, taken at its centre.

On a grid the network is constant on a cell, ramps apart, so the map is exact where a point stands for a cell; a finer
grid and a program are sampled. No point lies on an edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.functions.grid import Grid

MOST_SIDE = 24  # points on a side
MOST_POINTS = 4096  # of the table over all entries, for a page in a file
FEWEST_SIDE = 4  # of such a table: a coarser map says nothing


@dataclass(frozen=True)
class Lattice:
    """``axes[i]``: the places of feature i; ``run`` maps sequences (points, n, d) to outputs."""

    n: int
    axes: tuple[np.ndarray, ...]
    run: Callable[[np.ndarray], np.ndarray]

    def over(self, x: np.ndarray, free: tuple[tuple[int, int], tuple[int, int]]) -> np.ndarray:
        """Outputs (up, across, n, d') with the two free entries at all places, the others as in x (n, d)."""
        (ja, ia), (jb, ib) = free
        across, up = self.axes[ia], self.axes[ib]
        X = np.tile(x, (len(up), len(across), 1, 1))
        X[:, :, ja, ia], X[:, :, jb, ib] = across, up[:, None]
        found = self.run(X.reshape(-1, *x.shape))
        return found.reshape(len(up), len(across), *found.shape[1:])

    def table(self) -> np.ndarray | None:
        """Outputs at all places of all entries at once, the last entry fastest; None if they are too many."""
        sides = [len(axis) for _ in range(self.n) for axis in self.axes]
        if np.prod(sides, dtype=float) > MOST_POINTS:
            return None
        points = np.array(list(product(*(axis for _ in range(self.n) for axis in self.axes))))
        return self.run(points.reshape(-1, self.n, len(self.axes)))


def lattice(n: int, ends: np.ndarray, run: Callable, grid: Grid | None = None, coarse: bool = False) -> Lattice | None:
    """Centres of the cells of a box with ``ends`` (2, d); ``coarse``: so few that the table of all of them is small."""
    d = ends.shape[1]
    if n * d < 2:
        return None  # one entry makes no map
    most = min(MOST_SIDE, int(MOST_POINTS ** (1 / (n * d)) + 1e-9)) if coarse else MOST_SIDE
    side = grid.N if grid is not None and grid.N <= most else most
    if side < min(FEWEST_SIDE, grid.N if grid is not None else FEWEST_SIDE):
        return None
    low, high = ends
    share = (np.arange(side) + 0.5) / side
    axes = tuple(low[i] + (high[i] - low[i]) * share for i in range(d))
    return Lattice(n, axes, run)


def rounded(outputs: np.ndarray) -> np.ndarray:
    """For colours: six digits are more than an eye tells apart."""
    with np.errstate(all="ignore"):
        return np.asarray([float(f"{v:.6g}") for v in np.ravel(outputs)]).reshape(np.shape(outputs))


def free_entries(asked: dict[str, Any], n: int, d: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The two entries of a question: 'free', [[token, feature], [token, feature]]."""
    free = asked.get("free")
    entries = free if isinstance(free, list) and len(free) == 2 else []
    whole = [e for e in entries if isinstance(e, list) and len(e) == 2 and all(type(k) is int for k in e)]
    if len(whole) != 2:
        raise InvalidInput("A map needs 'free', two entries [token, feature].")
    a, b = ((j, i) for j, i in whole)
    if a == b or not all(0 <= j < n and 0 <= i < d for j, i in (a, b)):
        raise InvalidInput(f"'free' must be two different entries of {n} tokens with {d} features; got {free!r:.60}.")
    return a, b
