"""Does f answer the very questions that a certificate asks as it answers them one by one?

A certificate asks about the sub-cubes of many cubes together, in batches whose sizes and points depend on the grid
alone: whoever writes the function can know them, and could answer these batches, and no others, as the network does. So
some of the certificate's own batches are asked again here, and some of their sequences alone.
"""

from __future__ import annotations

import numpy as np

from thereexists.arithmetic.balls import Array
from thereexists.certificates.cubes import cubes_at_once, tile_for
from thereexists.certificates.variation import asked_at, corners, in_domain, sub_cubes
from thereexists.core.errors import InvalidTarget
from thereexists.functions.anywhere import anywhere
from thereexists.functions.asking import phase
from thereexists.functions.grid import Grid
from thereexists.functions.target import BATCH, EVALUATION_ERROR, Target, same_answers

ALONE = 16  # sequences of every batch


def check_asked(target: Target, grid: Grid, splits: int, seed: int) -> None:
    """Refuse a target that answers a certificate's batches otherwise than their sequences."""
    rng = np.random.default_rng(seed)
    for numbers in _some_cubes(grid, splits, rng):
        low, side = sub_cubes(target, grid, numbers, splits)
        rows = in_domain(target, low, side)
        if not len(rows):
            continue
        low, side = low[rows], side[rows]
        if target.interval is None:
            _compare_values(target, asked_at(target, low, side)[0], rng)
        else:
            _compare_extension(target, low, side, rng)


def _some_cubes(grid: Grid, splits: int, rng: np.random.Generator) -> list[Array]:
    """Runs of cubes that are asked about together: of every length there is, one."""
    tile, step = tile_for(grid), cubes_at_once(grid, splits)
    whole, rest = divmod(grid.cells, tile)
    tiles = [(int(rng.integers(min(whole, (1 << 62) // tile))) * tile, tile)] if whole else []
    tiles += [(whole * tile, rest)] if rest else []
    runs: dict[int, tuple[int, int]] = {}  # by length
    for first, length in tiles:
        full, last = divmod(length, step)
        if full:
            runs[step] = (first + int(rng.integers(full)) * step, step)
        if last:
            runs[last] = (first + full * step, last)
    return [np.arange(first, first + length) for first, length in runs.values()]


def _compare_values(target: Target, centres: Array, rng: np.random.Generator) -> None:
    full, last = divmod(len(centres), BATCH)
    starts = [int(rng.integers(full)) * BATCH] if full else []
    starts += [full * BATCH] if last else []
    for start in starts:
        X = centres[start : start + BATCH]
        some = rng.choice(len(X), min(ALONE, len(X)), replace=False)
        with phase(f"{target.name} at centres of sub-cubes, also alone", len(X) + len(some)):
            answers, alone = target(X)[some], target.alone(X[some])
        if not same_answers(answers, alone):
            raise InvalidTarget(
                f"{target.name} must answer every sequence by itself, but in a batch of {len(X)} that a certificate "
                f"asks for its answers differ by up to {np.abs(answers - alone).max():.3g} from those alone: it mixes "
                "the sequences of a batch, or it computes in less than float64."
            )


def _compare_extension(target: Target, low: Array, side: Array, rng: np.random.Generator) -> None:
    some = rng.choice(len(low), min(ALONE, len(low)), replace=False)
    X = anywhere(rng, low, low + side, low.shape)
    some = some[target.contains(X[some])]
    f_low, f_high = (end[some] for end in target.enclosure(*corners(target, low, side)[:2]))
    f = target.alone(X[some]) if len(some) else f_low
    slack = EVALUATION_ERROR * np.maximum(1.0, np.abs(f))
    if ((f < f_low - slack) | (f > f_high + slack)).any():
        raise InvalidTarget(
            f"The interval extension of {target.name} misses f in a box of the {len(low)} that a certificate asks "
            "about together: it must contain f on every box by itself."
        )
