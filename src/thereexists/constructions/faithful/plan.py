"""What a build will give, before it is built: the grid, the layers, the bits of the ids, the memory, the error.

The predicted error is that of ``budget.py``. A grid for ``epsilon`` is chosen by what its certificate will prove, which
looks at f more closely: ``within.py``.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, final

from thereexists.certificates.units import over_share
from thereexists.constructions.faithful.budget import error_budget, grid_part
from thereexists.constructions.faithful.guard import layer_counts, refuse_unguarded
from thereexists.constructions.faithful.quantise import layer_count as quantiser_layers
from thereexists.constructions.faithful.selective_shift import SelectiveShift
from thereexists.constructions.faithful.softmax_limit import WIDTH, clamp_levels, softmax_limit
from thereexists.constructions.faithful.sparse_shift import Route, SparseShift
from thereexists.constructions.faithful.value_mapping import Extremes, Progress, ValueTable, layer_count, tabulate
from thereexists.constructions.within import Steps, candidates, check_epsilon, predicted_within
from thereexists.core.errors import CannotBuild, InvalidInput, InvalidTarget
from thereexists.core.plain_numbers import positive
from thereexists.core.rounded_figures import rounded_up
from thereexists.functions.claims import refute
from thereexists.functions.exponent import exponent
from thereexists.functions.grid import Grid, cells_per_axis, check_ends
from thereexists.functions.target import BATCH, Target
from thereexists.model import Transformer
from thereexists.patterns import Pattern
from thereexists.witness.plan import ErrorBudget, FunctionPlan, beyond_float64

MAX_ID_BITS = 52
THREE_PIECES = 2 + 3 + 3  # parameters of one φ: knots, slopes, intercepts
MOST_BITS = 1 << 10  # of sizes that are computed before they are refused
_MUCH = 0.1  # of the inputs: worth a sentence
_COMPACT = (
    " Equal columns, which Theorem 1 answers by 0, cost the compact construction nothing (--construction compact)."
)
_ASKED = 8  # batches of sequences and answers that ``Target.check_one_by_one`` holds at once
_FIRST_USE = 10 << 20  # what NumPy and torch take when they are first used: measured


@dataclass(frozen=True, kw_only=True, repr=False)
class DeepPlan(FunctionPlan):
    """A network as the proof builds it: its sweeps over the values, and the bits that its ids need.

    ``width``: units of a feed-forward layer, the r of T^{2,1,r}; 1 of the modified class.
    """

    construction = "faithful"

    sweeps: int
    id_bits: float
    width: int = WIDTH

    def own(self) -> dict[str, Any]:
        return {"sweeps": self.sweeps, "id_bits": self.id_bits}

    def before_the_last_step(self) -> DeepPlan:
        """Of the modified network: as many layers, each feed-forward one with a single unit, of three pieces."""
        if self.grid.low:
            raise InvalidInput("The modified network has no guard layers: build it without 'compact_support'.")
        layers = self.layers["total"] - self.layers["context"]
        fewer = layers * (_feed_forward(self.grid.d, WIDTH) - _feed_forward(self.grid.d, 1) - THREE_PIECES)
        return dataclasses.replace(self, width=1, parameters=self.parameters - fewer)

    def advice(self) -> list[str]:
        share = self.grid.equal_column_share()
        if share < _MUCH:
            return []
        return [
            f"On {rounded_up(100 * share, 2)}% of the inputs two tokens lie in one cell, and there the network of "
            "Theorem 1 answers 0, far from the function: --construction compact has the function's values there too "
            "(and --no-equivariant, Theorem 2, which tells tokens apart by their positions)."
        ]


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class FaithfulPlan(DeepPlan):
    """Dense attention: Theorems 1 and 2."""


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class SparsePlan(DeepPlan):
    """Sparse attention: Theorem B. ``pattern``: its name, cycle, connections, Hamiltonian path and depth s."""

    pattern: dict[str, Any]

    def own(self) -> dict[str, Any]:
        return super().own() | {"pattern": self.pattern}

    def stated_pattern(self) -> dict[str, Any] | None:
        return self.pattern

    def advice(self) -> list[str]:
        n = self.grid.n
        if min(self.pattern["connections"]) < n * n:
            return super().advice()
        words = f"The pattern {self.pattern['name']} has all {n * n:,} connections at n = {n}: this attention is dense."
        return [*super().advice(), words]

    def command_options(self) -> list[str]:
        return ["--pattern", str(self.pattern["name"])]


def deep_plan(route: Route | None, **sizes: Any) -> DeepPlan:
    """The plan of a route through a pattern, or of dense attention."""
    return FaithfulPlan(**sizes) if route is None else SparsePlan(**sizes, pattern=route.describe())


def read_plan(stated: dict[str, Any], grid: Grid) -> DeepPlan:
    """The plan of a record, after ``check_plan`` has looked at it."""
    sizes = {key: stated[key] for key in ("theorem", "layers", "parameters", "memory_bytes", "sweeps", "id_bits")}
    sizes |= {"grid": grid, "error": ErrorBudget.read(stated["error"]), "epsilon": stated.get("epsilon")}
    sizes["read"] = True
    return SparsePlan(**sizes, pattern=stated["pattern"]) if "pattern" in stated else FaithfulPlan(**sizes)


class Prepared(NamedTuple):
    """What building starts with: the plan, and the contextual mapping and the table it was made from."""

    plan: DeepPlan
    mapping: SelectiveShift | SparseShift
    table: ValueTable


@dataclass(frozen=True)
class Request:
    """A grid width ``delta``, or the coarsest power-of-two grid that is proved to keep ``epsilon`` in d_p."""

    delta: float | str | Fraction | None = None
    epsilon: float | None = None
    p: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", exponent(self.p))
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", positive(self.epsilon, "'epsilon'"))


def prepare(
    target: Target, request: Request, pattern: Pattern | None = None, progress: Progress | None = None
) -> Prepared:
    """Choose the grid, refuse what cannot be built, tabulate."""
    if request.epsilon is not None:
        return predicted_within(within(target, request, pattern, progress), request.epsilon)
    route = _checked_route(target, request, pattern)
    assert request.delta is not None  # or the request was refused
    return _plan_for(target, request.delta, request.p, route, progress)


def within(
    target: Target, request: Request, pattern: Pattern | None = None, progress: Progress | None = None
) -> Iterator[Prepared]:
    """What is prepared on the grids that may keep epsilon, coarse to fine."""
    route = _checked_route(target, request, pattern)
    assert request.epsilon is not None

    def lay(delta: Fraction) -> Grid:
        mapping = _mapping(target, delta, route)
        refuse_if_too_large(mapping)
        return mapping.grid

    steps = Steps(
        lay=lay,
        prepare=lambda delta: _plan_for(target, delta, request.p, route, progress),
        output=lambda prepared: _output(prepared.table.extremes),
        network=_network,
        part=lambda grid: grid_part(target, grid, request.p),
        all_columns=False,
        hint=_COMPACT if route is None and target.equivariant and target.n > 1 else "",
    )
    return candidates(target, request.epsilon, request.p, steps)


def _network(prepared: Prepared) -> Transformer:
    from thereexists.constructions.faithful.build import modified_network

    plan, mapping, table = prepared
    return softmax_limit(modified_network(mapping, table, plan.grid), table, plan.grid)


def _output(extremes: Extremes) -> list[float]:
    """A bound of |output| for every feature: the clamp's M, and the moves from its layer on (``softmax_limit.py``)."""
    levels = clamp_levels(extremes)
    return [3 * float(levels.max())] * len(levels)


def _checked_route(target: Target, request: Request, pattern: Pattern | None) -> Route | None:
    """The route through the pattern, if there is one, after refusing what cannot be built."""
    if pattern is not None and not isinstance(pattern, Pattern):
        raise InvalidInput(f"'pattern' must be a pattern, such as te.patterns.star(n=4); got {type(pattern).__name__}.")
    check_arguments(target, request)
    refuse_hopeless(target, request)
    route = None if pattern is None else _route(target, pattern)
    refuse_if_too_large(_mapping(target, coarsest(request), route))
    if request.epsilon is not None:
        check_epsilon(target, request.epsilon)
    check_claims(target)
    return route


def check_arguments(target: Target, request: Request) -> None:
    """Refuse arguments that make no sense, and sequences so long that f cannot be asked about them; asks nothing."""
    if not isinstance(target, Target):
        raise InvalidInput(
            f"A target is needed: te.Target(f, n=…), or te.targets.builtin(name, n=…); got {type(target).__name__}."
        )
    if (request.delta is None) == (request.epsilon is None):
        raise InvalidInput("Give either 'delta' (the grid) or 'epsilon' (the error), and not both.")
    for low, high in set(zip(target.low.tolist(), target.high.tolist(), strict=True)):
        check_ends(low, high)
    if over_share(1.0, target, 1.0, request.p) == math.inf:
        raise beyond_float64(target, request.p)
    need, have = _ASKED * 8 * BATCH * target.n * target.d, physical_memory()
    if need > have:
        raise CannotBuild(
            f"Asking {target.name} about {BATCH} sequences of n = {target.n}, d = {target.d} takes {gib(need)}; this "
            f"machine has {gib(have)}. Choose fewer tokens or features."
        )


def refuse_hopeless(target: Target, request: Request) -> None:
    """Refuse ids of thousands of bits from n, d and N alone: no grid is laid, and no path searched, to say so."""
    N = cells_per_axis(coarsest(request))
    least = target.n * target.d * math.log2(N)  # the largest id is at least N^{nd}
    if least > MOST_BITS:
        raise CannotBuild(
            f"The ids of n = {target.n}, d = {target.d}, delta = 1/{N} need more than {least:.0f} bits and float64 "
            f"carries {MAX_ID_BITS} safely. Choose far fewer tokens or features."
        )


def coarsest(request: Request) -> float | str | Fraction:
    """No grid of the request has fewer cells than this one: if it is too large, all are, whatever f is."""
    return Fraction(1, 2) if request.delta is None else request.delta


def check_claims(target: Target) -> None:
    """Refuse claims about the function that are false. It asks f: sizes that cannot be built are refused before."""
    if claims_something(target):
        target.check_one_by_one()
    if target.equivariant:
        target.check_equivariance()
    counterexample = refute(target)
    if counterexample is not None:
        raise InvalidTarget(f"{target.name} is not what it claims to be: {counterexample}. State what is true of it.")


def claims_something(target: Target) -> bool:
    return target.equivariant or target.provable


def ask_one_by_one(target: Target) -> None:
    """The check of ``check_claims`` for a target that claims nothing; the others have been through it."""
    if not claims_something(target):
        target.check_one_by_one()


def _route(target: Target, pattern: Pattern) -> Route:
    if pattern.n != target.n:
        raise InvalidInput(f"The pattern {pattern.name} is for {pattern.n} tokens, and the target has n = {target.n}.")
    return Route.through(pattern)


Mapping = SelectiveShift | SparseShift


def mapping_for(target: Target, delta: float | str | Fraction, pattern: Pattern | None) -> Mapping:
    """The contextual mapping of a request that has been checked."""
    refuse_hopeless(target, Request(delta))
    return _mapping(target, delta, None if pattern is None else _route(target, pattern))


def _mapping(target: Target, delta: float | str | Fraction, route: Route | None) -> Mapping:
    grid = Grid.for_target(target, delta, () if route is None else route.slots)
    refuse_unguarded(grid)
    return SelectiveShift(grid) if route is None else SparseShift(grid, route)


def _plan_for(
    target: Target, delta: float | str | Fraction, p: float, route: Route | None, progress: Progress | None
) -> Prepared:
    mapping = _mapping(target, delta, route)
    grid = mapping.grid
    refuse_if_too_large(mapping)
    ask_one_by_one(target)
    table = tabulate(target, grid, mapping.ids, progress)
    sweeps = 2 if table.two_sweeps else 1
    guarded = layer_counts(grid)
    layers = {
        **{name: guarded[name] for name in ("guard",) if guarded},
        "quantise": quantiser_layers(grid),
        "context": mapping.layers,
        **{name: guarded[name] for name in ("outside",) if guarded},
        "value": sweeps * layer_count(grid),
    }
    layers["total"] = sum(layers.values())
    d = grid.d
    parameters = (
        (layers["total"] - layers["context"]) * _feed_forward(d, WIDTH)
        + layers["context"] * (2 * 4 * d + 2)
        + (grid.n * d if grid.positional else 0)
    )
    budget = error_budget(target, grid, table.extremes, p)
    planned = deep_plan(
        route,
        theorem="B" if route is not None else 2 if grid.positional else 1,
        grid=grid,
        layers=layers,
        sweeps=sweeps,
        parameters=parameters,
        id_bits=id_bits(mapping),
        memory_bytes=_memory(grid, sweeps),
        error=budget,
    )
    return Prepared(planned, mapping, table)


def _feed_forward(d: int, r: int) -> int:
    """Parameters of one layer of r units."""
    return 2 * r * d + r + d


def refuse_if_too_large(mapping: SelectiveShift | SparseShift) -> None:
    """Refuse before any work what float64 cannot hold or this machine cannot store."""
    grid = mapping.grid
    bits = id_bits(mapping)
    if bits <= MAX_ID_BITS and layer_count(grid) < grid.d:
        raise CannotBuild(
            f"Only {layer_count(grid)} ids lie in this domain on the grid delta = 1/{grid.N}, and the clamp of d = "
            f"{grid.d} features needs {grid.d} layers. Choose a finer grid, or --construction compact."
        )
    if bits > MAX_ID_BITS:
        raise CannotBuild(
            f"The ids of n = {grid.n}, d = {grid.d}, delta = 1/{grid.N} need {bits:.0f} bits and float64 carries "
            f"{MAX_ID_BITS} safely. {_remedy(mapping)}"
        )
    need, have = _memory(grid, 1), physical_memory()
    if need > have:
        raise CannotBuild(
            f"The table of n = {grid.n}, d = {grid.d}, delta = 1/{grid.N} has {layer_count(grid):,} ids and needs "
            f"{gib(need)}; this machine has {gib(have)}. {_remedy(mapping)}"
        )


def id_bits(mapping: SelectiveShift | SparseShift) -> float:
    """Bits of the largest id, counted in the finest unit its float64 has to resolve."""
    grid = mapping.grid
    odd = Fraction(grid.unit).numerator
    while odd % 2 == 0:
        odd //= 2
    return round(math.log2(mapping.largest_id) + math.log2(odd), 2)


def _remedy(mapping: SelectiveShift | SparseShift) -> str:
    """The finest power-of-two grid that fits."""
    have, N = physical_memory(), 1 << (mapping.grid.N - 1).bit_length()
    while (N := N // 2) >= 2:
        grid = dataclasses.replace(mapping.grid, N=N, step=(1.0,) * mapping.grid.d, domain=None)
        coarser = dataclasses.replace(mapping, grid=grid)
        if N < mapping.grid.N and id_bits(coarser) <= MAX_ID_BITS and _memory(grid, 1) <= have:
            return f"Choose a coarser grid (delta = 1/{N} fits), or fewer tokens or features."
    return "Choose fewer tokens or features: no grid of this shape fits."


def _memory(grid: Grid, sweeps: int) -> int:
    """Peak bytes of a build, above what the process holds when it has imported this package.

    The peak comes when ReLU layers are made of three-piece ones: the table, the modified value layers, the standard
    ones, and 6 + d columns for the knots and coefficients of the units under way. The rest does not grow.
    """
    d, ids = grid.d, layer_count(grid)
    table, units = 1 + 2 * d, 6 + d
    modified, standard = _feed_forward(d, 1) + THREE_PIECES, _feed_forward(d, WIDTH)
    return _FIRST_USE + 8 * ids * (table + sweeps * (modified + standard + units))


def gib(size: int) -> str:
    """A number of bytes, however large, in words."""
    return f"{size / 2**30:.1f} GiB" if size < 1 << 80 else f"about 2^{size.bit_length() - 31} GiB"


def counted(number: int) -> str:
    """A whole number, however long, in words."""
    return f"{number:,}" if number < 1 << 80 else f"about 2^{number.bit_length() - 1}"


def physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
