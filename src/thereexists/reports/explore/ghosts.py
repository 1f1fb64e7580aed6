"""The ids of all cubes: what the dots of one sequence are seen against, so that distinctness is seen, not said.

Every cube of the grid (or a random sample) goes through the network up to the end of the contextual mapping, all of
them at once, layer by layer. The page gets the ids before the first shift and then, for each layer, who moved where:
so it can show all of them at any layer. Nothing here comes from a formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from thereexists.constructions.faithful.contextual import is_contextual_mapping
from thereexists.core.errors import ThereExistsError
from thereexists.reports.measure import some_cells
from thereexists.witness.function import FunctionWitness

MOST_CUBES = 512
MOST_LAYERS = 2_000


def ghosts(witness: FunctionWitness) -> dict[str, Any] | None:
    """``start`` (cubes·n), ``moves``: [layer, who, to which id], ``says``: whether the last ids are distinct."""
    grid, network = witness.grid, witness.network
    before = [name for name in network.stages if name in ("guard", "quantise")]
    if (
        "context" not in network.stages
        or sum(network.stages[name].depth for name in (*before, "context")) > MOST_LAYERS
    ):
        return None
    cells, whole = _cubes(witness)
    ids: list[np.ndarray] = []
    passed = 0
    with torch.no_grad():
        Z = torch.from_numpy(grid.centre(cells))
        Z = Z if network.E is None else Z + network.E
        for name, _, layer in network.layers():
            if name not in (*before, "context"):
                break
            if name == "context" and not ids:
                ids.append(Z.numpy() @ grid.u / grid.unit)
            Z = layer(Z)
            if name == "context":
                ids.append(Z.numpy() @ grid.u / grid.unit)
            else:
                passed += 1
    if not all(np.isfinite(one).all() for one in ids):
        return None
    return {
        "cubes": len(cells),
        "of": grid.cells,
        "start": np.rint(ids[0]).astype(np.int64).ravel(),
        "moves": [_moved(passed + k, ids[k - 1].ravel(), ids[k].ravel()) for k in range(1, len(ids))],
        "says": _verdict(np.rint(ids[-1]), cells, whole, grid.positional),
    }


def _cubes(witness: FunctionWitness) -> tuple[np.ndarray, bool]:
    """Those that the theorem speaks of: without positions, sequences whose columns differ."""
    grid = witness.grid
    every = grid.cells <= MOST_CUBES
    cells = grid.cube(np.arange(grid.cells)) if every else some_cells(grid, np.random.default_rng(0), MOST_CUBES)
    cells = cells if every else np.unique(cells, axis=0)
    if grid.positional:
        return cells, every
    column = np.sort(cells @ grid.N ** np.arange(grid.d), axis=1)
    return cells[(np.diff(column, axis=1) != 0).all(axis=1)], every


def _moved(layer: int, before: np.ndarray, after: np.ndarray) -> tuple[int, list[int], list[int]]:
    who = np.flatnonzero(before != after)
    return layer, who.tolist(), np.rint(after[who]).astype(np.int64).tolist()


def _verdict(ids: np.ndarray, cells: np.ndarray, whole: bool, positional: bool) -> str:
    """Measured; that it is so for all cubes is what the certificate proves."""
    try:
        found = is_contextual_mapping(ids, cells, equivariant=not positional)
    except ThereExistsError:
        return ""
    scope = "" if whole else " (on this sample)"
    different = len(np.unique(ids))
    return f"{different:,} different ids{scope}." if found.holds else f"Not distinct{scope}: {found.reasons[0]}."
