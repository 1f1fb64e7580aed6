"""The rigorous bound on d_p(f, g): a sum over all cubes, plus the ramps by measure times range.

    d_p^p ≤ Σ_cubes ∫_core ‖f − g‖_p^p + volume(off the cores) · Σ_entries (F + B)^p

On a core, g lies in the enclosure G; F bounds |f| on the domain and B bounds |g| on all inputs. A cube whose enclosure
is wider than B is *undecided*: its whole volume is charged with (F + B)^p per entry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thereexists.certificates.balls import Ball
from thereexists.certificates.enclose import core_margins, enclose_cubes, refuse_rounded_edges
from thereexists.certificates.ledger import Ledger
from thereexists.certificates.output_bound import output_bound
from thereexists.certificates.variation import ROUNDED_UP, variation
from thereexists.errors import InvalidInput
from thereexists.grid import Grid
from thereexists.model import Transformer
from thereexists.target import Target

CHUNK = 4096
MOST_P = 64
_SUBCUBES_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class Bound:
    """``total`` = (grid^p + equal_columns^p + ramps^p)^{1/p} + network."""

    parts: dict[str, float]
    undecided: int
    output_bound: list[float]
    target_bound: float
    p: float

    @property
    def total(self) -> float:
        p = self.p
        summed = sum(self.parts[k] ** p for k in ("grid", "equal_columns", "ramps")) ** (1 / p)
        return (summed + self.parts["network"]) * ROUNDED_UP


def rigorous_bound(
    network: Transformer,
    target: Target,
    grid: Grid,
    p: float,
    splits: int,
    ledger: Ledger,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Bound:
    """Go through all cubes in chunks; ``progress(done, total)`` is told after each."""
    refuse_extremes(p, target)
    refuse_rounded_edges(grid)
    B = output_bound(network)
    sums = []
    for start in range(0, grid.cells, CHUNK):
        chunk = ledger.get(start)
        if chunk is None:
            numbers = np.arange(start, min(start + CHUNK, grid.cells))
            chunk = _chunk_sums(network, target, grid, numbers, p, splits, B)
            ledger.put(start, chunk)
        sums.append(chunk)
        progress(min(start + CHUNK, grid.cells), grid.cells)
    columns = list(zip(*sums, strict=True))
    distinct, equal, open_volume, undecided = (sum(column) for column in columns[:4])
    radius, F = max(columns[4]), max(columns[5])

    range_p = sum((F + b) ** p for b in B) * grid.n  # Σ over the n·d entries
    ramps = off_core_volume(target, grid) * range_p
    open_cubes = open_volume * range_p if open_volume else 0.0  # 0 even if nothing bounds the output
    parts = {
        "grid": _root(distinct, p),
        "equal_columns": _root(equal, p),
        "ramps": _root(ramps, p),
        "network": _root(open_cubes, p) + radius * _root(target.volume * grid.n * grid.d, p),
    }
    return Bound(parts, int(undecided), B, F, p)


def refuse_extremes(p: float, target: Target) -> None:
    """p-th powers and volumes must stay far from overflow and underflow; Minkowski's inequality needs p ≥ 1."""
    if isinstance(p, bool) or not 1 <= p <= MOST_P:
        raise InvalidInput(f"'p' must be a number from 1 to {MOST_P} in a certificate; got {p} instead.")
    if not 1e-100 <= target.volume <= 1e100:
        raise InvalidInput(
            f"The domain's volume {target.volume:g} is too extreme for a certificate; rescale the target."
        )


def _root(integral: float, p: float) -> float:
    return (integral * ROUNDED_UP) ** (1 / p)


def off_core_volume(target: Target, grid: Grid) -> float:
    """At most: for every entry and every cell of it, the two margins times the volume of the other entries."""
    lower, upper = core_margins(grid)
    share = grid.n * (grid.N * (lower + upper) / (target.high - target.low)).sum()
    return float(min(share, 1.0) * target.volume) * ROUNDED_UP


def _chunk_sums(
    network: Transformer, target: Target, grid: Grid, numbers: np.ndarray, p: float, splits: int, B: list[float]
) -> list[float]:
    """∫ on distinct columns, ∫ on equal columns, undecided volume and count, the largest radius, the largest |f|."""
    G = enclose_cubes(network, grid, numbers)
    decided = np.asarray((np.isfinite(G.rad) & (G.rad <= np.array(B))).all(axis=(1, 2)))
    ids = np.sort(grid.column_ids(grid.cube(numbers)), axis=1)
    equal = (ids[:, 1:] == ids[:, :-1]).any(axis=1)
    point = Ball(np.where(decided[:, None, None], G.mid, 0.0), np.zeros_like(G.rad))
    step = max(1, _SUBCUBES_AT_ONCE // splits ** (grid.n * grid.d))
    parts = [
        variation(target, grid, numbers[i : i + step], point[i : i + step], p, splits)
        for i in range(0, len(numbers), step)
    ]
    integral = np.concatenate([part.integral for part in parts])
    largest = float(max(part.largest.max() for part in parts))
    volume = float(np.prod(grid.step)) ** grid.n
    return [
        float(integral[decided & ~equal].sum()),
        float(integral[decided & equal].sum()),
        float((~decided).sum()) * volume,
        float((~decided).sum()),
        float(G.rad[decided].max(initial=0.0)),
        largest,
    ]
