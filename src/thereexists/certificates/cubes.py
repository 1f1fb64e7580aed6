"""The sums over cubes that a rigorous bound is made of, as a task for the parallel map.

A block is a fixed run of cube numbers that depends on the grid alone; its sums are the same bits whoever computes them.
A worker reads the weights and the function itself, and checks that they are the ones that the job was started with.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists._version import __version__
from thereexists.arithmetic.balls import Array, Ball
from thereexists.certificates.block_sums import SUMS
from thereexists.certificates.enclose import Encloser
from thereexists.certificates.float_proof import float_evaluator
from thereexists.certificates.ramps import extent
from thereexists.certificates.units import PLAIN, Units
from thereexists.certificates.variation import SLACK, variation
from thereexists.core.errors import BadWitnessFile
from thereexists.functions.domains.domain import Domain
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.model import Transformer
from thereexists.model.digest import weights_sha256
from thereexists.parallel.ship import ShippedNetwork, ShippedTarget, identity_of

CUBES = 4096  # enclosed at once
MOST_BLOCKS = 1 << 18  # of a larger grid, a block is several times that many cubes
_PAIRS_AT_ONCE = 1 << 17
_SUBCUBES_AT_ONCE = 1 << 17
_SMALL = 2.0**-10
_SUMMED = (0, 1, 2, 3, 9)  # of the sums of a block: of the others the largest counts

Sums = list[float]  # see block_sums


@dataclass(frozen=True)
class Problem:
    """All that the sums depend on, beside the network and the target."""

    grid: Grid
    p: float
    splits: int
    B: list[float]
    tile: int  # cubes enclosed at once
    units: Units = PLAIN

    def on(self, domain: Domain | None) -> Problem:
        """The same on the cubes of a domain; None: of the whole box."""
        return dataclasses.replace(self, grid=self.grid.on(domain))

    @property
    def block(self) -> int:
        """Cubes of a block: whole tiles, and at most 2^18 blocks in all."""
        return self.tile * max(1, -(-self.grid.cells // (self.tile * MOST_BLOCKS)))


def tile_for(grid: Grid) -> int:
    """Some thousand cubes, fewer of long sequences: the working set stays small."""
    return max(1, min(CUBES, _PAIRS_AT_ONCE // (grid.n * grid.d) ** 2))


@dataclass(frozen=True)
class CubeSums:
    """The task: ``open()`` gives the function from a block's number to its ten sums."""

    problem: Problem
    network: ShippedNetwork
    target: ShippedTarget
    weights_sha256: str
    fingerprint: str
    chosen: tuple[int, ...] | None  # only these blocks, in this order; None: all
    block: int  # cubes of a block
    cells: int
    key: str

    @classmethod
    def of(
        cls,
        problem: Problem,
        network: Transformer,
        target: Target,
        shipped: ShippedNetwork,
        shipped_target: ShippedTarget,
        chosen: tuple[int, ...] | None = None,
    ) -> CubeSums:
        weights, f = weights_sha256(network), fingerprint(target)
        plain, domain = problem.on(None), problem.grid.domain  # the domain, perhaps code, goes with the function
        content = {**dataclasses.asdict(plain), "block": problem.block, "weights": weights, "f": f, "chosen": chosen}
        content["domain"] = None if domain is None else domain.describe()
        content["function"] = identity_of(target)
        content["version"], content["sums"] = __version__, SUMS  # chunks of an older make are not gone on with
        key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        cells = problem.grid.cells if chosen is None else len(chosen) * problem.block
        return cls(plain, shipped, shipped_target, weights, f, chosen, problem.block, cells, key)

    def open(self) -> Callable[[int], Sums]:
        network, target = self.network.load(), self.target.load()
        if weights_sha256(network) != self.weights_sha256:
            raise BadWitnessFile(f"The weights in {self.network.folder} are not those that this job was started with.")
        if fingerprint(target) != self.fingerprint:
            raise BadWitnessFile(f"{target.name} gives other values here than where this job was started.")
        return self.opened(network, target)

    def opened(self, network: Transformer, target: Target) -> Callable[[int], Sums]:
        """The same where network and target are at hand."""
        whole, chosen = opened(self.problem.on(target.region), network, target), self.chosen
        return whole if chosen is None else lambda number: whole(chosen[number])


def opened(problem: Problem, network: Transformer, target: Target) -> Callable[[int], Sums]:
    """The function from a block's number to its sums."""
    encloser = Evaluators.of(network, problem.grid)

    def block(number: int) -> Sums:
        first = number * problem.block
        stop = min(first + problem.block, problem.grid.cells)
        tiles = (np.arange(i, min(i + problem.tile, stop)) for i in range(first, stop, problem.tile))
        return combined([block_sums(encloser, target, problem, numbers) for numbers in tiles])

    return block


def combined(sums: list[Sums]) -> Sums:
    """Of several blocks: sums of volumes and counts, rounded once whatever their order, and maxima of the rest."""
    return [_sum(column) if i in _SUMMED else max(column) for i, column in enumerate(zip(*sums, strict=True))]


@dataclass(frozen=True)
class Evaluators:
    """A network on the cores of cubes: over the reals, and in float64, where that can be proved."""

    real: Encloser
    floats: Callable[[Array, Ball], Ball] | None  # cubes and their enclosures to balls of the float64 run

    @classmethod
    def of(cls, network: Transformer, grid: Grid) -> Evaluators:
        return cls(Encloser(network, grid), float_evaluator(network, grid))


def block_sums(encloser: Evaluators, target: Target, problem: Problem, numbers: Array) -> Sums:
    """∫ on distinct columns, ∫ on equal columns, undecided volume and count, the largest radius, the largest |f|, the
    largest |f − g| on the cores with distinct columns and on those with equal ones; and how far the float64 run is from
    the network at most, and on how many cores nothing is proved of it.

    Integrals and volumes are in the problem's units.
    """
    G = encloser.real(numbers)
    decided = np.asarray((np.isfinite(G.rad) & (G.rad <= np.array(problem.B))).all(axis=(1, 2)))
    return [*sums_of(target, problem, numbers, G, decided), *_float_gap(encloser.floats, problem, numbers, G, decided)]


def _float_gap(
    floats: Callable[[Array, Ball], Ball] | None, problem: Problem, numbers: Array, G: Ball, decided: Array
) -> Sums:
    """The largest |float64 run − network| on cores where it is known to be small beside B, and the number of others."""
    if floats is None:
        return [0.0, float(len(numbers))]
    F = floats(numbers, G)
    gap = ((np.abs(F.mid - G.mid) + F.rad + G.rad) * SLACK).max(axis=(1, 2))
    known = decided & (gap <= _SMALL * max(problem.B))
    return [float(gap[known].max(initial=0.0)), float((~known).sum())]


def sums_of(target: Target, problem: Problem, numbers: Array, G: Ball, decided: Array) -> Sums:
    """The first eight sums of these cubes, for a network that lies in G on those that are decided."""
    grid, splits = problem.grid, problem.splits
    equal = equal_columns(grid, numbers)
    point = Ball(np.where(decided[:, None, None], G.mid, 0.0), np.zeros_like(G.rad))
    step = cubes_at_once(grid, splits)
    parts = [
        variation(target, grid, numbers[i : i + step], point[i : i + step], problem.p, splits, problem.units)
        for i in range(0, len(numbers), step)
    ]
    integral = np.concatenate([part.integral for part in parts])
    largest = float(max(part.largest.max() for part in parts))
    worst = (np.concatenate([part.worst for part in parts]) + G.rad.max(axis=(1, 2))) * SLACK
    volume = 0.0 if decided.all() else extent(target, grid, problem.units).cube
    return [
        float(integral[decided & ~equal].sum()),
        float(integral[decided & equal].sum()),
        float((~decided).sum()) * volume,
        float((~decided).sum()),
        float(G.rad[decided].max(initial=0.0)),
        largest,
        float(worst[decided & ~equal].max(initial=0.0)),
        float(worst[decided & equal].max(initial=0.0)),
    ]


def equal_columns(grid: Grid, numbers: Array) -> Array:
    """Of each cube, whether two of its tokens lie in one cell and at one position: (cubes,)."""
    ids = np.sort(grid.column_ids(grid.cube(numbers)), axis=1)
    return (ids[:, 1:] == ids[:, :-1]).any(axis=1)


def cubes_at_once(grid: Grid, splits: int) -> int:
    """Cubes whose sub-cubes the function is asked about together."""
    return max(1, _SUBCUBES_AT_ONCE // splits ** (grid.n * grid.d))


def fingerprint(target: Target) -> str:
    """The function's values, modulus and extension at fixed points, and its file: no other must be mistaken for it."""
    X = target.points(np.random.default_rng(0), 64)
    box: list[Any] = (
        []
        if target.interval is None
        else [side.tolist() for side in target.enclosure(X, np.minimum(X + 0.1, target.high))]
    )
    width = float((target.high - target.low).max())
    spread = [target.variation(share * width) for share in (2.0**-10, 2.0**-3, 1.0)]
    content = [target(X).tolist(), box, spread, target.origin.get("sha256")]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _sum(column: tuple[float, ...]) -> float:
    try:
        return math.fsum(column) if all(map(math.isfinite, column)) else float(sum(column))
    except OverflowError:  # the sum of finite terms is beyond float64
        return math.inf
