"""Step 3, the value mapping by feed-forward layers (Yun et al. 2020, Lemma 7).

Statement. One layer per contextual id q sends the column z that carries it to the value A of the target there:
Z += (A − z) φ(u^T Z − q), φ(t) = 1 for t ≥ −w and 0 below. The layers come in decreasing order of q.

Proof. Distinct ids are at least one step apart and w is at most half a step. When the layer of q is reached, every
token with a larger id has become a value, and values lie below all ids that are still to come (checked). So the only
tokens with u^T Z − q ≥ −w are those with id q; they hold exactly the column z, and z + (A − z) = A.  ∎

Why half a step: softmax_limit.py lets φ rise on [−2w, −w], which ends where the next lower id begins. The knots are
then ids and halves of them, so an id of b bits takes b + 1 of the 53 that float64 has: b ≤ 52 (``MAX_ID_BITS``).

The paper's φ is the indicator of a window; the decreasing order makes its falling edge unnecessary, and with it the
cancellation of large numbers. Number of layers: n δ^{-dn} with a positional encoding. Without it, ids depend on the
set of columns: Σ_{j ≤ n} j·C(K, j) layers, of which those with j < n (equal columns) send their token to 0. On a domain
that is not a box only the cubes count that may meet it; no other id occurs there off the ramps, and none has a layer.

Two sweeps. z + (A − z) rounds to half an ulp of z. Where ids are so large that this would spoil the value, or where
values would not stay below the ids, each id is first sent to a rank (−offset − 4w'k, to the left of everything), then
each rank to its value by the mirrored layers (direction −u, increasing order). Twice the layers, the same class. (The
id 0, which only networks without positions have, gets the window w' too, so that it leaves the ranks alone.) The
ranks are as close together as the values are small, so that rank + (A − rank) rounds in the last places of A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import comb
from typing import Any, NamedTuple

import numpy as np
import torch

from thereexists.functions.grid import Grid
from thereexists.functions.target import Array, Target
from thereexists.model import FeedForward, Stage, ThreePiece

__all__ = ["ValueTable", "layer_count", "tabulate", "value_mapping"]  # the reference shows these

ROUNDING_SHARE = 2.0**-20
_CHUNK = 1 << 17
Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class ValueTable:
    """What the value mapping computes: for every contextual id, in decreasing order, its column and its value.

        from thereexists.constructions.faithful.value_mapping import tabulate

        from thereexists.constructions.faithful.selective_shift import SelectiveShift

        target = te.targets.builtin("sort", n=2)
        grid = te.plan(target, delta=1 / 2).grid
        tabulate(target, grid, SelectiveShift(grid).ids).q

    Attributes:
        q: the ids (ids,).
        z: the columns that carry them (ids, d).
        A: the values of the target there (ids, d).
        extremes: the largest entries of the table, and whether it takes two sweeps.
    """

    q: Array
    z: Array
    A: Array
    extremes: Extremes

    @property
    def two_sweeps(self) -> bool:
        return self.extremes.two_sweeps


@dataclass(frozen=True)
class Extremes:
    """Sizes over the whole table: all that a layer depends on beside its own id. ``z`` and ``A``: one per row."""

    z: tuple[float, ...]  # the largest |z_i|
    A: tuple[float, ...]  # the largest |A_i|
    reach: float  # the largest |u^T A|
    two_sweeps: bool
    largest_id: float
    top: float  # the largest u^T A
    last_moving: float | None  # the smallest id whose column is not its value already

    @classmethod
    def of(cls, q: Array, z: Array, A: Array, grid: Grid) -> Extremes:
        """Of a table or a part of it, in any order; ids in the units of the columns."""
        moves, along = (A != z).any(axis=1), A @ grid.u
        size, column = (tuple(np.abs(x).max(axis=0).tolist()) for x in (A, z))
        last = float(q[moves].min()) if moves.any() else None
        reach, top = float(np.abs(along).max()), float(along.max())
        return cls(column, size, reach, False, float(q.max()), top, last)._decided(grid)

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Extremes:
        """The inverse of ``dataclasses.asdict``, through JSON."""
        return cls(**{**stored, "z": tuple(stored["z"]), "A": tuple(stored["A"])})

    @classmethod
    def joined(cls, parts: list[Extremes], grid: Grid) -> Extremes:
        """Of the whole, from those of parts that make it up."""
        z, A = (tuple(map(max, *rows)) for rows in zip(*((p.z, p.A) for p in [*parts, parts[0]]), strict=True))
        last = min((p.last_moving for p in parts if p.last_moving is not None), default=None)
        reach, top = max(p.reach for p in parts), max(p.top for p in parts)
        return cls(z, A, reach, False, max(p.largest_id for p in parts), top, last)._decided(grid)

    def _decided(self, grid: Grid) -> Extremes:
        """Whether one sweep would round values visibly, or let a value reach an id that is still to come."""
        if self.last_moving is None:
            return self
        rounds = np.spacing(self.largest_id) > ROUNDING_SHARE * max(self.A) > 0
        collides = self.top >= self.last_moving - 2 * grid.window
        return replace(self, two_sweeps=bool(rounds or collides))


def layer_count(grid: Grid) -> int:
    """How many contextual ids there are: the layers of one sweep.

        from thereexists.constructions.faithful.value_mapping import layer_count

        grid = te.plan(te.targets.builtin("sort", n=2), delta=1 / 2).grid
        layer_count(grid)

    Args:
        grid: the cells.

    Returns:
        The number of layers; two sweeps have twice as many.
    """
    if grid.positional:
        return grid.n * grid.cells
    return sum(j * comb(grid.token_cells, j) for j in range(1, grid.n + 1))


def tabulate(
    target: Target, grid: Grid, contextual_ids: Callable[[Array], Array], progress: Progress | None = None
) -> ValueTable:
    """Evaluate the target at every cube, and pair each token's contextual id with its value.

        from thereexists.constructions.faithful.value_mapping import tabulate

        from thereexists.constructions.faithful.selective_shift import SelectiveShift

        target = te.targets.builtin("sort", n=2)
        grid = te.plan(target, delta=1 / 2).grid
        tabulate(target, grid, SelectiveShift(grid).ids).A

    Args:
        target: the function.
        grid: the cells.
        contextual_ids: maps the column ids of contexts (count, j) to their contextual ids.
        progress: called as ``progress(done, total)`` after each chunk, with the ids that are tabulated.

    Returns:
        The table, the largest id first.
    """
    parts, done = [], 0
    for l in _contexts(grid):
        parts.append(entries(target, grid, l, contextual_ids(l)))
        done += l.size
        if progress is not None:
            progress(done, layer_count(grid))
    q, z, A = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    del parts
    order = np.argsort(-q, kind="stable")
    q, z, A = q[order], z[order], A[order]
    return ValueTable(q * grid.unit, z, A, Extremes.of(q * grid.unit, z, A, grid))


def value_mapping(table: ValueTable, grid: Grid) -> Stage:
    """Step 3, the layers of one or two sweeps, as one stage of the modified class (r = 1).

        from thereexists.constructions.faithful.value_mapping import tabulate, value_mapping

        from thereexists.constructions.faithful.selective_shift import SelectiveShift

        target = te.targets.builtin("sort", n=2)
        grid = te.plan(target, delta=1 / 2).grid
        value_mapping(tabulate(target, grid, SelectiveShift(grid).ids), grid).depth

    Args:
        table: the ids with their columns and values.
        grid: the cells.

    Returns:
        The stage.
    """
    return steps(sweeps(table, 0, grid))


def sweeps(part: ValueTable, first: int, grid: Grid) -> list[Sweep]:
    """The layers of a run of ids, the one with the number ``first`` (counted from the largest) first.

    One sweep, or two: the second one goes through the same ids backwards.
    """
    if not part.two_sweeps:
        return [Sweep(grid.u, part.q, part.A - part.z, np.full(len(part.q), grid.window))]
    rank, narrow = ranks(part, first, grid), _rank_window(part.extremes, grid)
    # All ranks lie below −8w'; the layer of the id 0 must not reach them. Every other id is at least 2w.
    down = Sweep(grid.u, part.q, rank - part.z, np.where(part.q == 0, min(narrow, grid.window), grid.window))
    leftmost_first = rank[::-1]
    up = Sweep(-grid.u, -leftmost_first[:, 0], part.A[::-1] - leftmost_first, np.full(len(rank), narrow))
    return [down, up]


def last_columns(table: ValueTable, grid: Grid) -> Array:
    """The columns that the last d layers of the stage move, last layer last: (d, d). The clamp needs them."""
    return ranks(table, 0, grid)[: grid.d][::-1] if table.two_sweeps else table.z[-grid.d :]


class Sweep(NamedTuple):
    """Layers Z += move · [direction^T Z − threshold ≥ −window], one per threshold."""

    direction: Array
    threshold: Array
    move: Array
    window: Array


def steps(sweeps: list[Sweep]) -> Stage:
    """The layers of some sweeps, one after the other, as one stage."""
    d = len(sweeps[0].direction)
    W_1 = np.concatenate([np.broadcast_to(s.direction, (len(s.threshold), 1, d)) for s in sweeps])
    b_1 = -np.concatenate([s.threshold for s in sweeps])[:, None]
    W_2 = np.concatenate([s.move for s in sweeps])[:, :, None]
    depth = len(W_1)
    knots = np.full((depth, 1, 2), np.inf)
    knots[:, 0, 0] = -np.concatenate([s.window for s in sweeps])
    phi = ThreePiece(
        knots=torch.from_numpy(knots),
        slopes=torch.zeros(depth, 1, 3, dtype=torch.float64),
        intercepts=torch.tensor([0.0, 1.0, 1.0], dtype=torch.float64).repeat(depth, 1, 1),
    )
    W_1, b_1, W_2 = (torch.from_numpy(a) for a in (W_1, b_1, W_2))
    return Stage(feed_forward=FeedForward(W_1, b_1, W_2, torch.zeros(depth, d, dtype=torch.float64), phi))


def ranks(part: ValueTable, first: int, grid: Grid) -> Array:
    """The columns (−offset − 4w'k, 0, …, 0), k = first + 1, first + 2, …: below every value, 4w' apart."""
    spacing = 4 * _rank_window(part.extremes, grid)
    offset = spacing * np.ceil(part.extremes.reach / spacing + 1)
    rank = np.zeros_like(part.z)
    rank[:, 0] = -offset - spacing * np.arange(first + 1, first + len(rank) + 1)
    return rank


def _rank_window(extremes: Extremes, grid: Grid) -> float:
    """w': a power of two near the size of the values, but well above the rounding of the ids it replaces.

    Values far larger than the ids: the ranks lie beyond them, at R ≤ reach + 4w'·(number of ids + 2), and their windows
    must be seen there. With w' ≥ 2^-44·reach and up to 2^40 ids, R ≤ 2^45·w', so a rank rounds by at most 2^-8·w'.
    """
    wanted = max(max(extremes.A), 16 * float(np.spacing(extremes.largest_id)))
    small = min(grid.window, 2.0 ** np.floor(np.log2(wanted)))
    return max(small, 2.0 ** (np.ceil(np.log2(extremes.reach)) - 44)) if extremes.reach > 0 else small


def contexts_with_positions(grid: Grid, start: int, stop: int) -> Array:
    """The contexts ``start … stop−1`` of a grid with positions, as column ids: (count, n)."""
    flat = np.arange(start, stop)
    if grid.domain is not None:
        return grid.column_ids(grid.cube(flat))
    digits = flat[:, None] // grid.K ** np.arange(grid.n - 1, -1, -1) % grid.K
    return digits + grid.id_pitch * grid.slot


def _contexts(grid: Grid) -> Iterator[Array]:
    """All contexts as column ids (count, j), in chunks. Without positions: increasing, j < n for equal columns."""
    if grid.positional:
        for start in range(0, grid.cells, _CHUNK):
            yield contexts_with_positions(grid, start, min(start + _CHUNK, grid.cells))
    else:
        cells = grid.columns()
        for size in range(1, min(grid.n, len(cells)) + 1):
            yield cells[_increasing_sequences(len(cells), size)]


def _increasing_sequences(K: int, size: int) -> Array:
    """All 0 ≤ c_1 < … < c_size < K: (C(K, size), size), one array operation per element of the sequence."""
    sequences = np.arange(K)[:, None]
    for _ in range(size - 1):
        room = K - 1 - sequences[:, -1]  # how many larger numbers each sequence can be extended with
        repeated = np.repeat(sequences, room, axis=0)
        step = np.arange(len(repeated)) - np.repeat(np.cumsum(room) - room, room)
        sequences = np.column_stack([repeated, repeated[:, -1] + 1 + step])
    return sequences


def entries(target: Target, grid: Grid, l: Array, q: Array) -> tuple[Array, Array, Array]:
    """Ids, columns and values of every token of every given context: (count·j,), (count·j, d), (count·j, d)."""
    slot = grid.slot[: l.shape[1]]
    cell = l - grid.id_pitch * slot
    index = cell[:, :, None] // grid.N ** np.arange(grid.d) % grid.N  # (count, j, d)
    moved = slot[:, None] * (grid.N + 1) if grid.positional else 0
    z = (index + moved) * grid.level
    z[:, :, 0] += (q - l) * grid.unit
    A = np.zeros_like(z)
    if l.shape[1] == grid.n:
        for start in range(0, len(l), _CHUNK):
            rows = slice(start, start + _CHUNK)
            A[rows] = grid.values(target, index[rows])
    return q.ravel(), z.reshape(-1, grid.d), A.reshape(-1, grid.d)
