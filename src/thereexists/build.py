"""The main path: a target in, a witness out. The four steps of the proof, in order, each in a file of its own."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import torch

from thereexists.constructions import quantise, softmax_limit, value_mapping
from thereexists.constructions.selective_shift import SelectiveShift
from thereexists.constructions.sparse_shift import SparseShift
from thereexists.constructions.value_mapping import Progress, ValueTable
from thereexists.errors import InvalidInput
from thereexists.grid import Grid
from thereexists.model import Transformer
from thereexists.patterns import Pattern
from thereexists.plan import prepare
from thereexists.program.graph import Value
from thereexists.table import Table, build_table
from thereexists.target import Target
from thereexists.tokens import TokenWitness
from thereexists.witness import Witness

if TYPE_CHECKING:
    from thereexists.program.witness import ProgramWitness


@overload
def build(
    target: Target,
    delta: float | str | Fraction | None = None,
    epsilon: float | None = None,
    p: float = 1.0,
    pattern: Pattern | None = None,
    rho: str = "softmax",
    modified: bool = False,
    progress: Progress | None = None,
    construction: str = "faithful",
    max_width: int | None = None,
) -> Witness: ...


@overload
def build(target: Table, *, construction: str) -> TokenWitness: ...


@overload
def build(target: Value, *, epsilon: float | None = None, dtype: Any = None, **options: Any) -> ProgramWitness: ...


def build(  # pyright: ignore[reportInconsistentOverload]
    target: Target | Table | Value,
    delta: float | str | Fraction | None = None,
    epsilon: float | None = None,
    p: float = 1.0,
    pattern: Pattern | None = None,
    rho: str = "softmax",
    modified: bool = False,
    progress: Progress | None = None,
    construction: str = "faithful",
    max_width: int | None = None,
    **options: Any,
) -> Witness | TokenWitness | ProgramWitness:
    """Construct a Transformer that approximates ``target`` in d_p.

        witness = te.build(te.targets.builtin("sort", n=3), delta=1/8)

    An equivariant target gets a network of T^{2,1,4} (Theorem 1), any other one of T_P^{2,1,4} with a positional
    encoding (Theorem 2). With a ``pattern`` the network is sparse, of ST^{2,1,4} (Theorem B), and ``rho`` may be
    softmax or sparsemax. ``modified=True`` stops before the last step and gives the network of the modified class
    (hardmax, three-piece φ), which agrees with the standard one off the ramps. ``progress(done, total)`` is told the
    ids that have been tabulated.

    ``construction="compact"`` gives the same piecewise constant function in four blocks over scratch rows, equal
    columns included; ``max_width`` spreads its feed-forward units over more blocks. A ``Table`` has only that one.

    A program (``thereexists.program``) takes ``epsilon``, a bound in the sup norm, and ``dtype``, in which it holds.
    """
    if isinstance(target, Value):
        from thereexists.program.building import build_program  # needs python-flint, the rest does not

        defaults = (None, None, None, "faithful", "softmax", 1, False)
        if (delta, pattern, max_width, construction, rho, p, modified) != defaults:
            raise InvalidInput("A program is built with epsilon and dtype; the other arguments are for targets.")
        return build_program(target, epsilon, **options)
    if options:
        raise InvalidInput(f"{next(iter(options))!r} is for programs; see thereexists.program.")
    if isinstance(target, Table):
        if construction != "compact" or delta is not None or epsilon is not None or max_width is not None:
            raise InvalidInput("A table is built with construction='compact', and has no delta and no epsilon.")
        return build_table(target)
    if construction != "faithful" or max_width is not None:
        from thereexists.plan_compact import build_compact

        if rho != "softmax" or modified:
            raise InvalidInput("The compact construction has softmax attention and ReLU: leave out rho and modified.")
        return build_compact(target, delta, epsilon, p, pattern, construction, max_width)
    if rho not in ("softmax", "sparsemax"):
        raise InvalidInput(f"'rho' must be softmax or sparsemax; got {rho!r} instead.")
    plan, mapping, table = prepare(target, delta, epsilon, p, pattern, progress)
    hard = modified_network(mapping, table, plan.grid)
    network = hard if modified else softmax_limit(hard, table, plan.grid, rho)
    return Witness(network=network, plan=plan, target=target)


def modified_network(mapping: SelectiveShift | SparseShift, table: ValueTable, grid: Grid) -> Transformer:
    """Steps 1 to 3: quantise, map contexts to ids, map ids to values; hardmax and three-piece functions."""
    E = grid.encoding
    return Transformer(
        {"quantise": quantise(grid), "context": mapping.stage(), "value": value_mapping(table, grid)},
        rho="hardmax",
        E=None if E is None else torch.from_numpy(E),
        needs=torch.float64,
    )
