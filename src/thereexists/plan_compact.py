"""The compact construction's plan and build: what ``plan.py`` and ``build.py`` are for the faithful one."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

from thereexists.constructions.compact import (
    Memory,
    compact_network,
    context_count,
    layer_counts,
    parameter_count,
    rows_of,
    tabulate_contexts,
    widths,
)
from thereexists.errors import CannotBuild, InvalidInput
from thereexists.grid import Grid
from thereexists.patterns import Pattern
from thereexists.plan import ErrorBudget, Plan, _physical_memory, ask_one_by_one, check_request
from thereexists.precision import verdicts
from thereexists.target import Target
from thereexists.witness import Witness

CONSTRUCTIONS = ("faithful", "compact")


def build_compact(
    target: Target,
    delta: float | str | Fraction | None,
    epsilon: float | None,
    p: float,
    pattern: Pattern | None,
    construction: str,
    max_width: int | None,
) -> Witness:
    """The witness of four blocks (more only if ``max_width`` asks for it)."""
    plan, memory = prepare_compact(target, delta, epsilon, p, pattern, construction, max_width)
    network = compact_network(plan.grid, memory, max_width)
    found = verdicts(network, plan.grid)
    network.safe = tuple(name for name, verdict in found.items() if verdict.holds)
    sizes = {**(plan.sizes or {}), "dtypes": {name: verdict.reasons[0] for name, verdict in found.items()}}
    sizes["safe"] = list(network.safe)
    if "float64" not in network.safe:
        raise CannotBuild(f"This grid is not safe even in float64: {found['float64'].reasons[0]}.")
    return Witness(network=network, plan=dataclasses.replace(plan, sizes=sizes), target=target)


def prepare_compact(
    target: Target,
    delta: float | str | Fraction | None,
    epsilon: float | None,
    p: float,
    pattern: Pattern | None,
    construction: str,
    max_width: int | None,
) -> tuple[Plan, Memory]:
    """Choose the grid, refuse what cannot be built, tabulate f̄ and merge what shares a value."""
    if construction not in CONSTRUCTIONS:
        raise InvalidInput(f"'construction' must be one of {', '.join(CONSTRUCTIONS)}; got {construction!r} instead.")
    if construction != "compact":
        raise InvalidInput("'max_width' is for the compact construction: say construction='compact'.")
    if max_width is not None and (isinstance(max_width, bool) or not isinstance(max_width, int) or max_width < 1):
        raise InvalidInput(f"'max_width' must be an integer of at least 1; got {max_width!r} instead.")
    check_request(target, delta, epsilon, p, pattern)
    if pattern is not None:
        raise InvalidInput("The compact construction has dense attention: leave out the pattern, or build faithfully.")
    if delta is not None:
        return _plan_for(target, Grid.for_target(target, delta), p, max_width)
    return _plan_for_epsilon(target, epsilon, p, max_width)  # pyright: ignore[reportArgumentType]


def _plan_for(target: Target, grid: Grid, p: float, max_width: int | None) -> tuple[Plan, Memory]:
    refuse_if_too_large(grid)
    ask_one_by_one(target)
    memory = tabulate_contexts(target, grid)
    layers = layer_counts(grid, memory, max_width)
    parameters = parameter_count(grid, memory, max_width)
    need, have = 3 * 8 * parameters, _physical_memory()  # the arrays, their tensors, and a copy while saving
    if need > have:
        raise CannotBuild(
            f"The compact network of n = {grid.n}, d = {grid.d}, delta = 1/{grid.N} has {parameters:,} parameters and "
            f"needs {need / 2**30:.1f} GiB to build; this machine has {have / 2**30:.1f}. Choose a coarser grid."
        )
    plan = Plan(
        theorem=2 if grid.positional else 1,
        grid=grid,
        layers={**layers, "total": sum(layers.values())},
        sweeps=1,
        parameters=parameters,
        id_bits=0.0,
        memory_bytes=8 * parameters + _table_bytes(grid),
        error=_error_budget(target, grid, memory, p),
        construction="compact",
        sizes={
            "d_model": rows_of(grid).d_model,
            "widths": widths(grid, memory),
            "contexts": memory.contexts,
            "units": memory.units,
            "max_width": max_width,
        },
    )
    return plan, memory


def _plan_for_epsilon(target: Target, epsilon: float, p: float, max_width: int | None) -> tuple[Plan, Memory]:
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise InvalidInput(f"'epsilon' must be a positive number; got {epsilon} instead.")
    if target.variation(1.0) is None:
        raise InvalidInput(
            "A grid for 'epsilon' needs a modulus of continuity: state the Lipschitz constant (--lipschitz), "
            "or choose the grid yourself (--delta)."
        )
    N = 2
    while True:
        grid = Grid.for_target(target, Fraction(1, N))
        if _grid_part(target, grid, p) <= epsilon:  # hopeless grids cost nothing
            try:
                plan, memory = _plan_for(target, grid, p, max_width)
            except CannotBuild as refusal:
                raise CannotBuild(f"epsilon = {epsilon:g} needs a grid of delta = 1/{N} or finer. {refusal}") from None
            if plan.error is not None and plan.error.total <= epsilon:
                return plan, memory
        N *= 2


def refuse_if_too_large(grid: Grid) -> None:
    """Refuse before any work what this machine cannot tabulate."""
    need, have = _table_bytes(grid), _physical_memory()
    if need > have:
        raise CannotBuild(
            f"The compact table of n = {grid.n}, d = {grid.d}, delta = 1/{grid.N} has {context_count(grid):,} contexts "
            f"and needs {need / 2**30:.1f} GiB; this machine has {have / 2**30:.1f}. Choose a coarser grid, or fewer "
            "tokens or features."
        )


def _table_bytes(grid: Grid) -> int:
    """Codes (a byte a bit), values and the sorted copies of the merging."""
    rows = rows_of(grid)
    return context_count(grid) * (len(rows["literals"]) + 8 * (grid.d + 6 + len(rows["literals"]) // 31))


def _error_budget(target: Target, grid: Grid, memory: Memory, p: float) -> ErrorBudget | None:
    """As for the faithful network, with no cube lost to equal columns; B is the largest stored value (mass lemma)."""
    variation = target.variation(max(grid.step) / 2)
    if variation is None:
        return None
    F = max(abs(float(v)) for table in memory.values for v in (table.min(), table.max())) + variation
    ramps = (F + memory.largest) * (target.volume * grid.d * grid.n * grid.ramp_share()) ** (1 / p)
    return ErrorBudget(p, _grid_part(target, grid, p), 0.0, ramps)


def _grid_part(target: Target, grid: Grid, p: float) -> float:
    dn = grid.d * grid.n
    moment = dn / (dn + p) if target.modulus is None else 1.0
    return (target.variation(max(grid.step) / 2) or 0.0) * (target.volume * dn * moment) ** (1 / p)
