"""Does the grid of a witness belong to its function? Otherwise a sum over cubes is one over another set."""

from __future__ import annotations

import numpy as np

from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.model import Transformer


def grid_fits(network: Transformer, grid: Grid, f: Target) -> bool:
    """The cubes cover the domain, none lies wholly outside, and tokens are told apart as the symmetry of f wants."""
    low, high = np.array(grid.origin), np.array(grid.origin) + grid.N * np.array(grid.step)
    last, first = high - np.array(grid.step), low + np.array(grid.step)
    covers = bool((low <= f.low).all() and (high >= f.high).all())
    covers = covers and bool((last < f.high).all() and (first > f.low).all())
    E, width = network.E, network.shape()["d"]
    placed = (E is not None) == grid.positional and (E is None or tuple(E.shape) == (grid.n, width))
    sparse = any(
        stage.attention is not None and stage.attention.pattern is not None for stage in network.stages.values()
    )
    shaped = (grid.n, grid.d, grid.positional) == (f.n, f.d, sparse or not f.equivariant)
    ends = list(grid.high) == f.high.tolist() and list(grid.low) == (f.low.tolist() if f.compact_support else [])
    return covers and placed and shaped and ends and network.ends() == (grid.d, grid.d)
