"""The main path of certification: enclose, bound, ask for second opinions, measure the float run, write it down.

Nothing here knows how the network was built: it reads weights, a grid, and a target.
"""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

import numpy as np
import torch

from thereexists._version import __version__
from thereexists.arithmetic.balls import Array
from thereexists.certificates.asked import check_asked
from thereexists.certificates.block_sums import Computed, blocks_sha256
from thereexists.certificates.check import Wanted
from thereexists.certificates.covered import grid_fits
from thereexists.certificates.cubes import CubeSums
from thereexists.certificates.enclose import WEIGHTS, enclose_cubes
from thereexists.certificates.float_bound import float_runs
from thereexists.certificates.function_certificate import (
    PROVED,
    FunctionCertificate,
    RigorousCertificate,
    StatisticalCertificate,
)
from thereexists.certificates.ramps import core_ends
from thereexists.certificates.rigorous import rigorous_bound, sums_over_cubes, the_problem
from thereexists.certificates.second_opinion import second_opinion
from thereexists.certificates.statistical import statistical_assumptions, statistical_bound
from thereexists.certificates.support import vanishes_outside
from thereexists.certificates.variation import some_boxes, splits_within
from thereexists.core.errors import InvalidInput, InvalidTarget, NotProved
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import power_of_two
from thereexists.core.storage import JOB
from thereexists.core.threads import torch_threads
from thereexists.evaluate import run_batch
from thereexists.functions.anywhere import anywhere
from thereexists.functions.claims import refute
from thereexists.functions.exponent import exponent
from thereexists.functions.grid import Grid
from thereexists.functions.target import EVALUATION_ERROR, Target, standing_in
from thereexists.model import Transformer
from thereexists.model.digest import weights_sha256
from thereexists.parallel import HERE, Workers, one_thread
from thereexists.parallel.estimate import Estimate, estimate
from thereexists.parallel.ship import ShippedNetwork, ShippedTarget

SUBCUBES = 1 << 21
_FLOAT_CUBES = 256
TRIED_BOXES = 256  # of those that the interval extension is used on


def certify_function(witness: Any, wanted: Wanted) -> FunctionCertificate:
    """A certificate for ``witness.network`` against its target (or the one given: same shape, domain and symmetry).

    Rigorous if the target states a modulus of continuity or an interval extension; statistical, and labelled so, if it
    states only a bound on |f|.
    """
    wanted = dataclasses.replace(wanted, p=exponent(wanted.p))
    network, grid, f = _checked(witness, wanted.target)
    epsilon = witness.epsilon(wanted.p)
    start = time.perf_counter()
    _refuse_outside(network, grid, f)
    made = (_rigorous if f.provable else _statistical)(network, grid, f, wanted)
    return dataclasses.replace(made, epsilon=epsilon, seconds=round(time.perf_counter() - start, 3))


def _refuse_outside(network: Transformer, grid: Grid, f: Target) -> None:
    """An integral over all of R^{d×n} is one over the box if the network, like f, is 0 outside: proved, or no bound."""
    if f.compact_support:
        verdict = vanishes_outside(network, f, grid.n)
        if not verdict.holds:
            raise NotProved(
                f"Not proved: {f.name} is 0 outside its box, but it does not follow from the weights that the network "
                f"is 0 there: {verdict.reasons[0]}. The integral over all of R^{{d×n}} may be infinite."
            )


def _rigorous(network: Transformer, grid: Grid, f: Target, wanted: Wanted) -> RigorousCertificate:
    folder, splits = wanted.folder, splits_within(grid, SUBCUBES)
    job = None if folder is None else folder / JOB
    if job is not None and job.is_symlink():
        job.unlink()  # never ours: it would lead our files to a place of somebody else's choice
    problem = the_problem(network, f, grid, wanted.p, splits)
    blocks = sums_over_cubes(problem, network, f, wanted.workers, folder, job, wanted.progress)
    found = rigorous_bound(problem, f, blocks)
    common, (most, cubes) = _common(network, grid, f, wanted), found.float_run
    most = _with_room(most)
    if cubes == grid.cells:  # proved, on every core, and not only measured on some
        common["float_error"] = {"kind": PROVED, "dtype": "float64", "cubes": cubes, "max": most}
    return RigorousCertificate(
        **common,
        bound=found.total,
        parts=found.parts,
        uniform=None if (largest := found.single_inputs()) is None else {k: _with_room(v) for k, v in largest.items()},
        float_run=_roomy(float_runs(network, f, problem, found)),
        undecided=found.undecided,
        output_bound=found.output_bound,
        target_bound=_with_room(found.target_bound),
        splits=splits,
        assumptions=assumptions(f),
        blocks_sha256=blocks_sha256(blocks),
        sums=Computed(blocks),
    )


def _with_room(size: float) -> float:
    """A largest value as another machine may find it, whose functions differ in the last bits."""
    return size * (1 + 2.0**-46)


def _roomy(runs: dict[str, Any]) -> dict[str, Any]:
    """The same of what is proved of the run, dtype by dtype; None stays None."""

    def more(size: Any) -> Any:
        return [more(part) for part in size] if isinstance(size, list) else size and _with_room(size)

    return {**runs, "dtypes": {name: {k: more(v) for k, v in run.items()} for name, run in runs["dtypes"].items()}}


def _statistical(network: Transformer, grid: Grid, f: Target, wanted: Wanted) -> StatisticalCertificate:
    bound, B = statistical_bound(
        network, f, grid, lambda X: run(network, X), wanted.p, wanted.confidence, wanted.samples, wanted.seed
    )
    assert f.bound is not None  # without one there is no statistical bound
    return StatisticalCertificate(
        **_common(network, grid, f, wanted),
        bound=bound,
        confidence=wanted.confidence,
        samples=wanted.samples,
        output_bound=B,
        target_bound=f.bound,
        assumptions=statistical_assumptions(f),
    )


def _common(network: Transformer, grid: Grid, f: Target, wanted: Wanted) -> dict[str, Any]:
    """What every certificate of a function states, whatever its bound follows from."""
    opinion = second_opinion(network, grid, wanted.opinions, wanted.seed)
    return {
        "p": wanted.p,
        "cells": grid.cells,
        "seed": wanted.seed,
        "target": f.describe(),
        "grid": grid.describe(),
        "weights_sha256": weights_sha256(network),
        "float_error": float_error(network, grid, wanted.seed),
        "second_opinion": dataclasses.asdict(opinion) | {"disagreeing": list(opinion.disagreeing)},
        "epsilon": None,
        "package_version": __version__,
    }


def predict(
    witness: Any, p: float = 1.0, target: Target | None = None, workers: Workers = HERE, share: float | None = None
) -> Estimate:
    """What a rigorous certificate of the witness (or checking a ``share`` of it) will cost, from one measured block.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        te.certificates.predict(witness)

    Args:
        witness: of a function.
        p: of d_p.
        target: the function, for one of your own.
        workers: how many processes compute it, and where.
        share: of the cubes, None for all.

    Returns:
        Seconds, bytes and blocks.

    Raises:
        InvalidInput: the witness is of another kind, or has no function.
    """
    check_spread(witness)
    network, grid, f = _checked(witness, target)
    if not f.provable:
        raise InvalidInput(
            "A statistical certificate is made in one process, on random points of its own: there is no cost to "
            "predict."
        )
    problem = the_problem(network, f, grid, p, splits_within(grid, SUBCUBES))
    blocks = -(-grid.cells // problem.block)
    drawn = blocks if share is None else min(blocks, math.ceil(share * blocks))
    chosen = None if drawn == blocks else tuple(range(drawn))
    nowhere = ShippedNetwork("", saved=False)  # one block is computed, here
    task = CubeSums.of(problem, network, f, nowhere, ShippedTarget.of(f, stays=True), chosen)
    return estimate(task, workers, lambda: task.opened(network, f))


def check_spread(witness: Any) -> None:
    """Whether there are cubes that several workers share; what has none is checked in one go."""
    if RigorousCertificate.kind not in witness.kind.certificates:
        raise InvalidInput(f"A dry run predicts what the cubes of a function cost; this is {witness.kind.what}.")


def _checked(witness: Any, target: Target | None) -> tuple[Transformer, Grid, Target]:
    """Network, grid and target of what can be certified; the rest is refused."""
    f = standing_in(target, witness.target)
    network = witness.network
    dtype = next(network.parameters()).dtype
    if dtype != torch.float64:
        raise InvalidInput(f"Certificates are made from the float64 weights; this witness is in {dtype}.")
    grid = witness.grid.on(f.region)
    if network.rho not in WEIGHTS:
        raise InvalidInput("Certificates are for the standard class; this witness was built with --modified.")
    if not grid_fits(network, grid, f):
        raise InvalidInput(
            f"{f.name} is not the function that this witness was built for: its n, d, domain or symmetry is not that "
            f"of the grid from {list(grid.origin)} to {list(grid.high)}. Build a witness of it."
        )
    f.check_one_by_one()
    if f.provable:
        check_asked(f, grid, splits_within(grid, SUBCUBES), seed=0)
    boxes = None if f.interval is None else some_boxes(f, grid, splits_within(grid, SUBCUBES), TRIED_BOXES, seed=0)
    counterexample = refute(f, boxes=boxes)
    if counterexample is not None:
        raise InvalidTarget(f"{f.name} is not what it claims to be: {counterexample}.")
    return network, grid, f


def assumptions(target: Target) -> list[str]:
    """What the bound takes for granted about f, in words."""
    stated = []
    if target.modulus is not None:
        stated.append(
            "f keeps the modulus of continuity ω that the caller stated, which does not decrease: |f(X) − f(Y)| ≤ ω(r) "
            "for all X and Y no farther apart than r"
        )
    elif target.lipschitz is not None:
        stated.append(f"f has the Lipschitz constant {in_full(target.lipschitz)} (maximum norm to maximum norm)")
    if target.interval is not None:
        stated.append("the interval extension of f contains f")
    else:
        stated.append(f"f is computed in float64 to within {power_of_two(EVALUATION_ERROR)} · max(1, |f|)")
    return stated + ([] if target.region is None else target.region.assumptions())


def float_error(network: Transformer, grid: Grid, seed: int) -> dict[str, Any]:
    """How far the float64 run is from the enclosures of the real one, on up to 256 cubes: measured, not proved.

    Each cube is tried at its centre, a number of few bits, and anywhere in its core, where sums are rounded.
    """
    rng = np.random.default_rng(seed)
    count = min(grid.cells, _FLOAT_CUBES)
    numbers = np.sort(rng.choice(grid.cells, count, replace=False))
    cells = grid.cube(numbers)
    low, high = core_ends(grid, cells)
    centre = grid.centre(cells)
    X = np.stack([centre, np.where(low <= high, anywhere(rng, low, high, cells.shape), centre)])
    with one_thread():
        enclosure = enclose_cubes(network, grid, numbers)
        Y = run(network, X.reshape(-1, *cells.shape[1:])).reshape(X.shape)
    gap = np.abs(Y - enclosure.mid) + enclosure.rad
    return {"kind": "measured", "dtype": "float64", "cubes": count, "max": float(gap.max())}


def run(network: Transformer, X: Array) -> Array:
    """The network in float64, by the fastest engine that qualifies."""
    with torch_threads(1):
        return run_batch(network, np.ascontiguousarray(X))
