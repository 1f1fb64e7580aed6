"""What the pictures of a witness show, measured on the network itself, never by the construction's formulas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from thereexists.constructions.faithful.contextual import is_contextual_mapping
from thereexists.core.errors import ThereExistsError
from thereexists.core.verdict import Verdict
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.model import Transformer
from thereexists.witness.function import FunctionWitness

POINTS = 401  # of a curve
SIDE = 24  # at least so many points on each side of a surface, at most twice as many
MOST_CELLS = 1024  # of the picture of ids; a larger grid is sampled
MOST_LAYERS = 20_000  # of the stages that the picture of ids runs


@dataclass(frozen=True)
class Slice:
    """Outputs along one free entry of the input: ``network`` and ``target`` (points, n, d), the target if it is known.

    ``others`` is the sequence (n, d) that all other entries are taken from; entry (0, 0) is the free one.
    """

    x: np.ndarray
    others: np.ndarray
    network: np.ndarray
    target: np.ndarray | None


@dataclass(frozen=True)
class Plane:
    """Outputs over two free entries of the input: ``network`` and ``target`` (points, points, n, d).

    ``free`` are the two entries (token, feature); the others are those of ``others`` (n, d).
    """

    free: tuple[tuple[int, int], tuple[int, int]]
    others: np.ndarray
    network: np.ndarray
    target: np.ndarray | None


@dataclass(frozen=True)
class Ids:
    """Ids u^T z of every token, in units of a step, after each named stage: (cells, n).

    ``distinct`` marks the sequences that the theorem speaks of (all of them with positions; without, those with
    pairwise distinct columns); ``verdict``: whether the last ids of those are a contextual mapping; ``off``: how far
    the last ids are from whole numbers.
    """

    stages: dict[str, np.ndarray]
    cells: np.ndarray
    distinct: np.ndarray
    complete: bool
    verdict: Verdict | None
    off: float

    @property
    def interval(self) -> tuple[float, float] | None:
        """The smallest and the largest final id of the sequences that the theorem speaks of."""
        last = list(self.stages.values())[-1][self.distinct]
        return (float(last.min()), float(last.max())) if last.size else None


def slice_through(witness: FunctionWitness, target: Target) -> Slice:
    """Move the first entry through its whole range; the others stay at evenly spread places of theirs.

    The places are (j + 1/2)/n of the width, from the top for the first token on, and 1/64 beside it for every further
    feature: fixed numbers, so that two reports of one witness are the same. On a domain that is no box every such
    point is replaced by one of the domain near it.
    """
    others = resting_place(witness, target)
    x = np.linspace(float(target.low[0]), float(target.high[0]), POINTS)
    X = np.tile(others, (POINTS, 1, 1))
    X[:, 0, 0] = x
    X = X if target.region is None else target.nearest(X)
    try:
        values = target(X)
    except ThereExistsError:
        values = None  # a function of the user's own is not stored with its witness
    return Slice(x, others, witness.run(X), values)


def plane_through(witness: FunctionWitness, target: Target) -> Plane | None:
    """Two entries through their whole ranges: two tokens, or two features of the first one; None with one entry only,
    and on a domain that is no box, which has no such ranges.

    The points are middles of a lattice that cuts every cell evenly (up to 48 cells a side), so none is on a ramp.
    """
    n, d, N = witness.grid.n, witness.grid.d, witness.grid.N
    if n * d < 2 or target.region is not None:
        return None
    free = ((0, 0), (1, 0)) if d == 1 else ((0, 0), (0, 1))
    points = N * -(-SIDE // N) if N < 2 * SIDE else 2 * SIDE
    others = np.tile((target.low + target.high) / 2, (n, 1))
    middle = (np.arange(points) + 0.5) / points
    X = np.tile(others, (points, points, 1, 1))
    (t0, f0), (t1, f1) = free
    X[:, :, t0, f0] = (target.low[f0] + (target.high[f0] - target.low[f0]) * middle)[:, None]
    X[:, :, t1, f1] = (target.low[f1] + (target.high[f1] - target.low[f1]) * middle)[None, :]
    flat, shape = X.reshape(-1, n, d), (points, points, n, d)
    try:
        values = target(flat).reshape(shape)
    except ThereExistsError:
        values = None
    return Plane(free, others, witness.run(flat).reshape(shape), values)


def resting_place(witness: FunctionWitness, target: Target) -> np.ndarray:
    """Where the entries that are not free stay: (j + 1/2)/n of the width, from the top for the first token on."""
    n, d = witness.grid.n, witness.grid.d
    share = ((n - 1 - np.arange(n)) + 0.5)[:, None] / n + np.arange(d)[None, :] / 64  # (n, d)
    return target.low + (target.high - target.low) * (share % 1.0)


def context_ids(witness: FunctionWitness, seed: int = 0) -> Ids | None:
    """Every cell (or a random sample of them) through the quantiser and the contextual mapping; None if too deep."""
    grid, network = witness.grid, witness.network
    stages = network.stages
    if "context" not in stages or "quantise" not in stages:
        return None
    if stages["context"].depth + stages["quantise"].depth > MOST_LAYERS:
        return None
    complete = grid.cells <= MOST_CELLS
    rng = np.random.default_rng(seed)
    cells = grid.cube(np.arange(grid.cells)) if complete else np.unique(some_cells(grid, rng, MOST_CELLS), axis=0)
    last_sweep = stages["context"].depth - _spreading_layers(witness) - 1
    seen: dict[str, np.ndarray] = {}
    with torch.no_grad():
        Z = torch.from_numpy(grid.centre(cells))
        Z = Z if network.E is None else Z + network.E
        for name, index, layer in network.layers():
            if name not in ("guard", "quantise", "context"):
                break
            Z = layer(Z)
            if name == "quantise":
                seen["after the quantiser"] = _ids(witness, Z)
            elif index == last_sweep:
                seen["after the selective shifts"] = _ids(witness, Z)
        seen["after the global shift"] = _ids(witness, Z)
    column = cells @ grid.N ** np.arange(grid.d)  # (cells, n)
    repeated = (np.diff(np.sort(column, axis=1), axis=1) == 0).any(axis=1)
    distinct = np.ones(len(cells), dtype=bool) if grid.positional else ~repeated
    last = seen["after the global shift"]
    off = float(np.abs(last - np.rint(last)).max())
    verdict = None
    if distinct.any() and np.isfinite(last).all():
        verdict = is_contextual_mapping(np.rint(last)[distinct], cells[distinct], equivariant=not grid.positional)
    return Ids(seen, cells, distinct, complete, verdict, off)


def some_cells(grid: Grid, rng: np.random.Generator, count: int) -> np.ndarray:
    """Random cubes of the domain as cell indices (count, n, d)."""
    if grid.domain is None:
        return rng.integers(grid.N, size=(count, grid.n, grid.d))
    return grid.cube(rng.integers(grid.cells, size=count))


def weight_ranges(network: Transformer) -> list[tuple[str, int, int, float, float]]:
    """(stage, layers, parameters, smallest non-zero |weight|, largest |weight|) of every stage."""
    rows = []
    for name, stage in network.stages.items():
        sizes = torch.cat([p.detach().abs().double().ravel() for p in stage.parameters()])
        finite = sizes[sizes.isfinite()]
        small = finite[finite > 0]
        low, high = (float(small.min()) if len(small) else 0.0, float(finite.max()) if len(finite) else 0.0)
        rows.append((name, stage.depth, len(sizes), low, high))
    return rows


def receptive_fields(masks: np.ndarray, most: int) -> list[np.ndarray]:
    """S^1, S^2, … (n, n) of the definition S_k^t = ∪ {S_j^{t−1} : j ∈ A_k^l}, until all is seen, at most ``most``.

    A field that a whole cycle of steps leaves as it is never grows again: it ends there too.
    """
    steps = masks.astype(np.float32)  # counts of at most n < 2^24 tokens are exact
    fields, unchanged = [masks[0].copy()], 0
    while not fields[-1].all() and unchanged < len(masks) and len(fields) < most:
        grown = (steps[len(fields) % len(masks)] @ fields[-1].astype(np.float32)) > 0
        unchanged = unchanged + 1 if (grown == fields[-1]).all() else 0
        fields.append(grown)
    return fields[: len(fields) - unchanged]


def _spreading_layers(witness: FunctionWitness) -> int:
    """How many layers at the end of the context stage carry the id to everybody: one, or s with a pattern."""
    pattern = witness.plan.stated_pattern()
    return 1 if pattern is None else int(pattern["depth"])


def _ids(witness: FunctionWitness, Z: torch.Tensor) -> np.ndarray:
    return Z.numpy() @ witness.grid.u / witness.grid.unit
