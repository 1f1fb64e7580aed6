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
from thereexists.witness.function import FunctionWitness

POINTS = 400  # of a curve, about
SIDE = 32  # points on each side of a surface, about
WITHIN = 6  # so many points in each direction within every point of a surface, to average over
FEW = 2  # of sequences with more than MANY entries
MANY = 8
AT_ONCE = 4096  # sequences that run together
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

    ``free`` are the two entries (token, feature); the others are those of ``others`` (n, d). Every entry of the arrays
    is a mean over a small square of the plane, and so are those of ``error``, |network − target|; ``largest`` (n, d)
    is the largest single error that was seen.
    """

    free: tuple[tuple[int, int], tuple[int, int]]
    others: np.ndarray
    network: np.ndarray
    target: np.ndarray | None
    error: np.ndarray | None
    largest: np.ndarray | None


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

    On a domain that is not a box every such point is replaced by one of the domain near it.
    """
    others = resting_place(witness, target)
    x = target.low[0] + (target.high[0] - target.low[0]) * between_edges(witness.grid.N, POINTS)
    X = np.tile(others, (len(x), 1, 1))
    X[:, 0, 0] = x
    X = X if target.region is None else target.nearest(X)
    try:
        values = target(X)
    except ThereExistsError:
        values = None  # a function of the user's own is not stored with its witness
    return Slice(x, others, witness.run(X), values)


def plane_through(witness: FunctionWitness, target: Target) -> Plane | None:
    """Two entries through their whole ranges: two tokens, or two features of the first one; None with one entry only,
    and on a domain that is not a box, which has no such ranges.

    On a grid the error is a saw with a tooth for every cell. A few points of it make stripes that are not there, and an
    average that is wrong by a tenth: so each point drawn is the mean of ``WITHIN``² points of its own (``FEW``² of long
    sequences), by the midpoint rule, and none of them lies on an edge of a cell.
    """
    n, d = witness.grid.n, witness.grid.d
    if n * d < 2 or target.region is not None:
        return None
    free = ((0, 0), (1, 0)) if d == 1 else ((0, 0), (0, 1))
    others = resting_place(witness, target, free)
    within = inputs_within(n * d)
    share = between_edges(witness.grid.N, SIDE, within)
    side = len(share)
    X = np.tile(others, (side, side, 1, 1))
    (t0, f0), (t1, f1) = free
    X[:, :, t0, f0] = (target.low[f0] + (target.high[f0] - target.low[f0]) * share)[:, None]
    X[:, :, t1, f1] = (target.low[f1] + (target.high[f1] - target.low[f1]) * share)[None, :]
    flat = X.reshape(-1, n, d)
    pieces = [flat[at : at + AT_ONCE] for at in range(0, len(flat), AT_ONCE)]
    network = np.concatenate([witness.run(piece) for piece in pieces]).reshape(X.shape)
    try:
        values = np.concatenate([target(piece) for piece in pieces]).reshape(X.shape)
    except ThereExistsError:
        return Plane(free, others, _means(network, within), None, None, None)
    gap = np.abs(network - values)
    a, b, c = (_means(numbers, within) for numbers in (network, values, gap))
    return Plane(free, others, a, b, c, gap.max(axis=(0, 1)))


def inputs_within(entries: int) -> int:
    """Inputs in each direction whose mean is one point of a surface, for sequences of so many entries."""
    return WITHIN if entries <= MANY else FEW


def between_edges(N: int, about: int, within: int = 1) -> np.ndarray:
    """About ``about`` × ``within`` increasing numbers in (0, 1), none on an edge k/N of a cell.

    They are the middles of equal parts of the cells, an even number of parts in each: so a kink in the middle of a cell
    costs the midpoint rule nothing. Of more than ``about`` cells, so many evenly spread ones are taken.
    """
    cells = np.arange(N) if N <= about else np.floor((np.arange(about) + 0.5) * N / about)
    parts = 2 * max(1, round(about / len(cells) / 2)) * within
    return ((cells[:, None] + (np.arange(parts) + 0.5) / parts) / N).reshape(-1)


def resting_place(
    witness: FunctionWitness, target: Target, free: tuple[tuple[int, int], ...] = ((0, 0),)
) -> np.ndarray:
    """Where the entries that are not free stay: (n, d), fixed numbers, so that two reports of one witness are the same.

    They are spread over their range, from the top for the first token on, each in a cell of its own where there are
    enough: tokens in one cell are a special case. Each lies a quarter of a cell above an edge: never on a ramp, and
    neither in the middle, where the network is right.
    """
    n, d, N = witness.grid.n, witness.grid.d, witness.grid.N
    resting = [j for j in range(n) if any((j, i) not in free for i in range(d))]
    cell = np.zeros((n, d))
    for place, j in enumerate(resting):
        cell[j] = [int(N * (len(resting) - place - 0.5) / len(resting) + i) % N for i in range(d)]
    return target.low + (target.high - target.low) * (cell + 0.25) / N


def _means(values: np.ndarray, within: int) -> np.ndarray:
    """Means over squares of within × within points: (side, side, n, d) -> (points, points, n, d)."""
    points = len(values) // within
    return values.reshape(points, within, points, within, *values.shape[2:]).mean(axis=(1, 3))


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
    last_sweep = stages["context"].depth - spreading_layers(witness) - 1
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


def spreading_layers(witness: FunctionWitness) -> int:
    """How many layers at the end of the context stage carry the id to all tokens: one, or s with a pattern."""
    pattern = witness.plan.stated_pattern()
    return 1 if pattern is None else int(pattern["depth"])


def _ids(witness: FunctionWitness, Z: torch.Tensor) -> np.ndarray:
    return Z.numpy() @ witness.grid.u / witness.grid.unit
