"""The bound of the whole: d_p between f and what a machine gives, real bound and float part together.

What the run gives at a real input x is what it gives at x rounded to the dtype. On the cores it is within ``cores`` of
the network over the reals (``float_proof.py``, ``float_run.py``), and Minkowski's inequality adds
cores · (n d · volume)^{1/p}. Off the cores only the size of the output counts: at most B over the reals, and at most
``output`` in floats, for every input of the box (``float_reach.py``, ``float_mass.py``). So

    d_p(f, run) ≤ (grid^p + equal_columns^p + volume(off the cores) · Σ_entries (F + output)^p)^{1/p} + network + float.

Of a deep network an input near the end of a core may be rounded out of it: 4·2^-53·|x| more of every cell counts as off
the cores. The cores of a compact network end inside of ramps whose ends are numbers of the dtype: none is rounded out.

Which dtypes: float64, and for compact networks float32 too, where the run is proved to be the float64 one rounded once.
Said of all cores or of none; ``output`` and ``bound`` are None where nothing is proved of the run on ramps, and on a
domain that is not a box, whose inputs are rounded out of it.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from thereexists.certificates.cubes import Problem
from thereexists.certificates.float_kinds import Undecided
from thereexists.certificates.float_mass import mass_in_floats
from thereexists.certificates.float_proof import U
from thereexists.certificates.float_reach import float_output_bound
from thereexists.certificates.float_run import FloatRun
from thereexists.certificates.function_certificate import MEASURED, PROVED
from thereexists.certificates.mass import mass_of
from thereexists.certificates.ramps import extent
from thereexists.certificates.rigorous import Bound
from thereexists.certificates.units import ROUNDED_UP, norm, product_above
from thereexists.core.dtypes import SIGNIFICAND
from thereexists.functions.target import Target
from thereexists.model import EmbeddedTransformer, Transformer

_LOWER = ("float32",)  # beside float64
_UP = 1 + 2.0**-30


def float_runs(network: Transformer, target: Target, problem: Problem, found: Bound) -> dict[str, Any]:
    """As a certificate states it: the status, and for every dtype ``cores``, ``output`` and ``bound``."""
    most, cubes = found.float_run
    if cubes != problem.grid.cells:
        return {"status": MEASURED, "dtypes": {}}
    sizes = _outputs(network, target, problem)
    runs = {}
    for name, output in sizes.items():
        cores = most if name == "float64" else _rounded_once(most, name, problem.B)
        known = problem.grid.domain is None and all(map(math.isfinite, output))
        total = _total(target, problem, found, output, cores, widened=not network.wide) if known else math.inf
        known = math.isfinite(total)
        runs[name] = {"cores": cores, "output": output if known else None, "bound": total if known else None}
    return {"status": PROVED, "dtypes": runs}


def _outputs(network: Transformer, target: Target, problem: Problem) -> dict[str, list[float]]:
    """The dtypes in which the cores are proved, with bounds on |output_i| anywhere in the box."""
    if not network.wide:
        return {"float64": float_output_bound(network, target)}
    compact = cast(EmbeddedTransformer, network)
    with np.errstate(all="ignore"):
        try:
            run = FloatRun.of(compact, problem.grid)
        except Undecided:
            return {"float64": [math.inf] * len(problem.B)}
        lower = [name for name in _LOWER if run.verdict(name).holds]
        mass = mass_of(compact)
        return {name: mass_in_floats(run, mass, name) for name in ("float64", *lower)}


def _rounded_once(most: float, name: str, B: list[float]) -> float:
    """|run in the dtype − network|: the float64 output, at most B + most, rounded to the dtype."""
    u = 2.0 ** -SIGNIFICAND[name]
    return (most + u * (max(B) + most)) * _UP


def _total(
    target: Target, problem: Problem, found: Bound, output: list[float], cores: float, *, widened: bool
) -> float:
    grid, p, units = problem.grid, problem.p, problem.units
    size, off = extent(target, grid, units), 0.0
    if widened:
        ends = np.maximum(np.abs(target.low), np.abs(target.high)) + np.array(grid.step)
        share = grid.n * float(((grid.N + 1) * 4 * U * ends / (target.high - target.low)).sum())
        off = share * size.whole * ROUNDED_UP
    F = found.target_bound
    range_p = sum(float(units.power(F + max(o, b), p)) for o, b in zip(output, found.output_bound, strict=True))
    ramps = float(units.times(size.off_core + off, range_p * grid.n)) if range_p else 0.0
    everywhere = units.root_of_volume(size.whole * grid.n * grid.d, p, grid.n)
    parts = [found.parts["grid"], found.parts["equal_columns"], units.root(ramps, p, grid.n)]
    whole = norm(parts, p) + found.parts["network"] + product_above(cores, everywhere)
    return max(product_above(whole, ROUNDED_UP), found.total)
