"""What a compact build will give, before it is built: what ``faithful/plan.py`` is for the faithful one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, final

from thereexists.certificates.ramps import extent
from thereexists.certificates.units import PLAIN, over_share
from thereexists.constructions.compact.blocks import (
    Memory,
    compact_network,
    context_count,
    layer_counts,
    parameter_count,
    row_counts,
    rows_of,
    tabulate_contexts,
    widths,
)
from thereexists.constructions.faithful.budget import over_ramps
from thereexists.constructions.faithful.plan import (
    Request,
    ask_one_by_one,
    check_arguments,
    check_claims,
    coarsest,
    counted,
    gib,
    physical_memory,
)
from thereexists.constructions.within import Steps, candidates, check_epsilon, predicted_within
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.functions.grid import Grid, cells_per_axis
from thereexists.functions.target import Target
from thereexists.model.sizes import MOST_CELL_BITS, too_many_cubes
from thereexists.witness.plan import ErrorBudget, FunctionPlan, stated


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class CompactPlan(FunctionPlan):
    """Four blocks. ``sizes``: d_model, widths, contexts, units, max_width; once built, the safe dtypes and why."""

    construction = "compact"

    sizes: dict[str, Any]

    def own(self) -> dict[str, Any]:
        return {"sizes": self.sizes}

    def command_options(self) -> list[str]:
        width = self.sizes.get("max_width")
        return ["--construction", "compact", *([] if width is None else ["--max-width", str(width)])]

    @classmethod
    def read(cls, stated: dict[str, Any], grid: Grid) -> CompactPlan:
        """The plan of a record, after ``check_plan`` has looked at it."""
        kept = {key: stated[key] for key in ("theorem", "layers", "parameters", "memory_bytes", "sizes")}
        return cls(**kept, grid=grid, error=ErrorBudget.read(stated["error"]), epsilon=stated.get("epsilon"), read=True)


class Prepared(NamedTuple):
    """What building starts with."""

    plan: CompactPlan
    memory: Memory


def prepare(target: Target, request: Request, max_width: int | None) -> Prepared:
    """Choose the grid, refuse what cannot be built, tabulate f̄ and merge what shares a value."""
    if request.epsilon is not None:
        return predicted_within(within(target, request, max_width), request.epsilon)
    _check(target, request, max_width)
    assert request.delta is not None  # or the request was refused
    return _plan_for(target, Grid.for_target(target, request.delta), request.p, max_width)


def within(target: Target, request: Request, max_width: int | None) -> Iterator[Prepared]:
    """What is prepared on the grids that may keep epsilon, coarse to fine."""
    _check(target, request, max_width)
    assert request.epsilon is not None

    def lay(delta: Fraction) -> Grid:
        refuse_if_not_counted(target.n, target.d, cells_per_axis(delta))
        grid = Grid.for_target(target, delta)
        refuse_if_too_large(grid)
        return grid

    steps = Steps(
        lay=lay,
        prepare=lambda delta: _plan_for(target, Grid.for_target(target, delta), request.p, max_width),
        output=lambda prepared: [prepared.memory.largest] * target.d,
        network=lambda prepared: compact_network(prepared.plan.grid, prepared.memory, max_width),
        part=lambda grid: _grid_part(target, grid, request.p),
        all_columns=True,
    )
    return candidates(target, request.epsilon, request.p, steps)


def _check(target: Target, request: Request, max_width: int | None) -> None:
    if max_width is not None and (isinstance(max_width, bool) or not isinstance(max_width, int) or max_width < 1):
        raise InvalidInput(f"'max_width' must be an integer of at least 1; got {max_width!r} instead.")
    check_arguments(target, request)
    refuse_if_not_counted(target.n, target.d, cells_per_axis(coarsest(request)))
    refuse_if_too_large(Grid.for_target(target, coarsest(request)))
    if request.epsilon is not None:
        check_epsilon(target, request.epsilon)
    check_claims(target)


def _plan_for(target: Target, grid: Grid, p: float, max_width: int | None) -> Prepared:
    refuse_if_too_large(grid)
    ask_one_by_one(target)
    memory = tabulate_contexts(target, grid)
    layers = layer_counts(grid, memory, max_width)
    parameters = parameter_count(grid, memory, max_width)
    need, have = 3 * 8 * parameters, physical_memory()  # the arrays, their tensors, and a copy while saving
    if need > have:
        raise CannotBuild(
            f"The compact network of n = {grid.n}, d = {grid.d}, delta = 1/{grid.N} has {parameters:,} parameters and "
            f"needs {gib(need)} to build; this machine has {gib(have)}. Choose a coarser grid."
        )
    plan = CompactPlan(
        theorem=2 if grid.positional else 1,
        grid=grid,
        layers={**layers, "total": sum(layers.values())},
        parameters=parameters,
        memory_bytes=8 * parameters + _table_bytes(grid),
        error=_error_budget(target, grid, memory, p),
        sizes={
            "d_model": rows_of(grid).d_model,
            "widths": widths(grid, memory),
            "contexts": memory.contexts,
            "units": memory.units,
            "max_width": max_width,
        },
    )
    return Prepared(plan, memory)


def refuse_if_not_counted(n: int, d: int, N: int) -> None:
    """Refuse, from the sizes alone, more cubes than a saved witness may have: nobody could load it again."""
    if too_many_cubes(n, d, N):
        raise CannotBuild(
            f"The grid of n = {n}, d = {d}, delta = 1/{N} has about 2^{n * d * math.log2(N):.0f} cubes, and a witness "
            f"carries at most 2^{MOST_CELL_BITS}. Choose a coarser grid, or fewer tokens or features."
        )


def refuse_if_too_large(grid: Grid) -> None:
    """Refuse before any work what this machine cannot tabulate."""
    refuse_if_not_counted(grid.n, grid.d, grid.N)
    need, have = _table_bytes(grid), physical_memory()
    if need > have:
        raise CannotBuild(
            f"The compact table of n = {grid.n}, d = {grid.d}, delta = 1/{grid.N} has "
            f"{counted(context_count(grid))} contexts and needs {gib(need)}; this machine has {gib(have)}. Choose a "
            "coarser grid, or fewer tokens or features."
        )


def _table_bytes(grid: Grid) -> int:
    """Codes (a byte a bit), values and the sorted copies of the merging."""
    literals = row_counts(grid)["literals"]
    return context_count(grid) * (literals + 8 * (grid.d + 6 + literals // 31))


def _error_budget(target: Target, grid: Grid, memory: Memory, p: float) -> ErrorBudget | None:
    """As for the faithful network, with no cube lost to equal columns; B is the largest stored value (mass lemma)."""
    variation = target.variation(grid.reach)
    if variation is None:
        return None
    F = max(abs(float(v)) for table in memory.values for v in (table.min(), table.max())) + variation
    ramps = over_ramps(F + memory.largest, target, grid, p)
    return stated(ErrorBudget(p, _grid_part(target, grid, p), 0.0, ramps), target)


def _grid_part(target: Target, grid: Grid, p: float) -> float:
    dn = grid.d * grid.n
    variation = target.variation(grid.reach) or 0.0
    if grid.domain is not None:  # as in faithful/budget.py
        return variation * (dn * extent(target, grid, PLAIN).whole) ** (1 / p)
    moment = dn / (dn + p) if target.modulus is None else 1.0
    return over_share(variation, target, dn * moment, p)
