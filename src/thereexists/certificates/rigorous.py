"""The rigorous bound on d_p(f, g): a sum over all cubes, plus the ramps by measure times range.

    d_p^p ≤ Σ_cubes ∫_core ‖f − g‖_p^p + volume(off the cores) · Σ_entries (F + B)^p

On a core, g lies in the enclosure G; F bounds |f| on the domain and B bounds |g| on all inputs. A cube whose enclosure
is wider than B is *undecided*: its whole volume is charged with (F + B)^p per entry.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from thereexists.certificates.cubes import CubeSums, Problem, Sums, combined, tile_for
from thereexists.certificates.enclose import core_margins, refuse_rounded_edges
from thereexists.certificates.output_bound import output_bound
from thereexists.certificates.variation import ROUNDED_UP
from thereexists.errors import BadWitnessFile, InvalidInput
from thereexists.grid import Grid
from thereexists.model import Transformer
from thereexists.parallel import HERE, Workers, parallel_map
from thereexists.parallel.ship import ShippedNetwork, ShippedTarget
from thereexists.target import Target

MOST_P = 64


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


def rigorous_bound(problem: Problem, target: Target, sums: list[Sums]) -> Bound:
    """The bound that the sums of all blocks give; ``sums`` must be those of every block, once."""
    grid, p, B = problem.grid, problem.p, problem.B
    blocks = -(-grid.cells // problem.block)
    if len(sums) != blocks:
        raise BadWitnessFile(f"The sum over cubes has a gap: {len(sums)} blocks instead of {blocks}.")
    distinct, equal, open_volume, undecided, radius, F = combined(sums)

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


def the_problem(network: Transformer, target: Target, grid: Grid, p: float, splits: int) -> Problem:
    """What is to be summed, after refusing what no sum would be right for."""
    refuse_extremes(p, target)
    refuse_rounded_edges(grid)
    return Problem(grid, p, splits, output_bound(network), tile_for(grid))


def sums_over_cubes(
    problem: Problem,
    network: Transformer,
    target: Target,
    workers: Workers = HERE,
    witness: Path | None = None,
    job: Path | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
    chosen: tuple[int, ...] | None = None,
) -> list[Sums]:
    """The sums of every block in order (or of the chosen ones); with ``job``, finished chunks are kept in that folder.

    ``witness`` is the folder that holds the network, if one does: workers read it there.
    """
    with tempfile.TemporaryDirectory(prefix="thereexists-network-") as scratch:
        shipped = ShippedNetwork.of(network, witness, Path(scratch), write=not workers.alone)
        f = ShippedTarget.of(target, stays=workers.alone)
        task = CubeSums.of(problem, network, target, shipped, f, chosen)
        return parallel_map(task, workers, job, lambda: task.opened(network, target), progress)


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
