"""The rigorous bound on d_p(f, g): a sum over all cubes, plus the ramps by measure times range.

    d_p^p ≤ Σ_cubes ∫_core ‖f − g‖_p^p + volume(off the cores) · Σ_entries (F + B)^p

The cubes are those that may meet the domain, and volumes are those of the domain's parts of them, at most: a domain
that is not a box has a measure of its own (``functions/domains``).

On a core, g lies in the enclosure G; F bounds |f| on the domain and B bounds |g| on all inputs. A cube whose enclosure
is wider than B is *undecided*: its whole volume is charged with (F + B)^p per entry.

d_p is an integral. A bound at every single input holds on the cores alone: there |f − g| is at most the largest bound
of any core (``Uniform``). The rest is a share of the domain, stated beside it.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from thereexists.certificates.cubes import CubeSums, Problem, Sums, combined, tile_for
from thereexists.certificates.enclose import refuse_rounded_edges
from thereexists.certificates.output_bound import output_bound
from thereexists.certificates.ramps import Extent, extent
from thereexists.certificates.units import ROUNDED_UP, Units, norm, product_above
from thereexists.certificates.variation import largest_on_ramps, some_boxes
from thereexists.core import shards
from thereexists.core.errors import BadWitnessFile, InvalidInput, NotProved
from thereexists.core.plain_text import in_full
from thereexists.functions.grid import Grid
from thereexists.functions.target import EVALUATION_ERROR, Target
from thereexists.model import Transformer
from thereexists.parallel import HERE, Workers, parallel_map
from thereexists.parallel.ship import ShippedNetwork, ShippedTarget

MOST_P = 64
WIDTHS = (1e-200, 1e200)
_PROBES = 64


@dataclass(frozen=True)
class Uniform:
    """No entry of g is farther than ``most`` from f, for all inputs but a ``share`` of the domain: the ramps and the
    undecided cubes; none farther than ``most_distinct`` if the cubes with equal columns are left out as well."""

    most: float
    share: float
    most_distinct: float
    share_distinct: float


@dataclass(frozen=True)
class Bound:
    """``total`` = (grid^p + equal_columns^p + ramps^p)^{1/p} + network. ``uniform`` is None for sums without it.

    ``float_run``: how far the float64 run is from the network at most, and on how many cores that is proved.
    """

    parts: dict[str, float]
    undecided: int
    output_bound: list[float]
    target_bound: float
    p: float
    uniform: Uniform | None
    float_run: tuple[float, int]

    def single_inputs(self) -> dict[str, float] | None:
        """As a certificate states it."""
        return None if self.uniform is None else dataclasses.asdict(self.uniform)

    @property
    def total(self) -> float:
        summed = norm([self.parts[k] for k in ("grid", "equal_columns", "ramps")], self.p)
        return product_above(summed + self.parts["network"], ROUNDED_UP)


def rigorous_bound(problem: Problem, target: Target, sums: list[Sums]) -> Bound:
    """The bound that the sums of all blocks give; ``sums`` must be those of every block, once."""
    blocks = -(-problem.grid.cells // problem.block)
    if len(sums) != blocks:
        raise BadWitnessFile(f"The sum over cubes has a gap: {len(sums)} blocks instead of {blocks}.")
    return bound_of(problem, target, combined(sums))


def bound_of(problem: Problem, target: Target, whole: Sums) -> Bound:
    """The bound that the sums over all cubes give."""
    grid, p, B, units = problem.grid, problem.p, problem.B, problem.units
    distinct, equal, open_volume, undecided, radius, F, *more = whole
    size, F = extent(target, grid, units), max(F, largest_on_ramps(target, grid))
    range_p = sum(float(units.power(F + b, p)) for b in B if F + b > 0) * grid.n  # Σ over the n·d entries
    ramps = float(units.times(size.off_core, range_p)) if range_p else 0.0
    open_cubes = float(units.times(open_volume, range_p)) if open_volume else 0.0  # 0 even if nothing bounds the output
    everywhere = units.root_of_volume(size.whole * grid.n * grid.d, p, grid.n)
    parts = {
        "grid": units.root(distinct, p, grid.n),
        "equal_columns": units.root(equal, p, grid.n),
        "ramps": units.root(ramps, p, grid.n),
        "network": units.root(open_cubes, p, grid.n) + product_above(radius, everywhere),
    }
    uniform = _uniform(size, open_volume, more[:2]) if more else None
    float_run = (more[2], grid.cells - int(more[3])) if len(more) > 2 else (0.0, 0)
    return Bound(parts, int(undecided), B, F, p, uniform, float_run)


def _uniform(size: Extent, open_volume: float, worst: list[float]) -> Uniform:
    """What the largest errors of all cores say of single inputs."""
    distinct, equal = worst
    share = size.off_core_share + size.share(open_volume)
    without_equal = share + size.equal_share
    return Uniform(max(distinct, equal), min(share, 1.0), distinct, min(without_equal, 1.0))


def the_problem(network: Transformer, target: Target, grid: Grid, p: float, splits: int) -> Problem:
    """What is to be summed, after refusing what no sum would be right for."""
    refuse_extremes(p, target)
    _refuse_strange_weights(network)
    refuse_rounded_edges(grid)
    B = output_bound(network)
    units = Units.of(target, p, [*B, *sizes(target, grid, splits)])
    return Problem(grid, p, splits, B, tile_for(grid), units)


def _refuse_strange_weights(network: Transformer) -> None:
    for weights in network.parameters():
        if not bool(torch.isfinite(weights).all()):
            raise NotProved("A weight of this network is infinite or not a number; nothing can be certified.")
        shards.release(network)


def sizes(target: Target, grid: Grid, splits: int) -> list[float]:
    """About how large f and the bounds on |f − g| will be: a guess at a few fixed points, for the choice of units."""
    X = target.points(np.random.default_rng(0), _PROBES)
    size = float(np.abs(target(X)).max())
    if target.interval is None:
        return [size, EVALUATION_ERROR, target.variation(max(grid.step) / (2 * splits)) or 0.0]
    ends = np.abs(target.enclosure(*some_boxes(target, grid, splits, _PROBES, seed=0)))
    return [size, float(ends[np.isfinite(ends)].max(initial=0.0))]


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
    """Sides and volumes must stay far from overflow and underflow; Minkowski's inequality needs p ≥ 1."""
    if not 1 <= p <= MOST_P:
        raise InvalidInput(f"'p' must be a number from 1 to {MOST_P} in a certificate; got {p} instead.")
    widths = target.high - target.low
    if not (1e-100 <= target.volume <= 1e100 and ((widths >= WIDTHS[0]) & (widths <= WIDTHS[1])).all()):
        raise InvalidInput(
            f"The domain's volume {in_full(target.volume)} is too extreme for a certificate; rescale the target."
        )
