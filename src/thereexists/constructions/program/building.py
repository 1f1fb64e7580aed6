"""The main path of a program: compile, certify, and, if epsilon asks for it, make the splines finer and do it again."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from typing import Any, final

import torch

from thereexists.certificates.program_bound import rounding
from thereexists.certificates.program_certificate import ProgramCertificate, certify_program
from thereexists.constructions.program import splines
from thereexists.constructions.program.compiler import Compiled
from thereexists.constructions.program.compiler import compile as compile_program
from thereexists.constructions.program.graph import Value, nodes
from thereexists.constructions.program.kept_errors import own_error, product, spline
from thereexists.constructions.program.plan import ProgramPlan
from thereexists.constructions.program.saving import to_record
from thereexists.constructions.program.witness import ProgramWitness
from thereexists.core.dtypes import DTYPES, as_dtype, dtype_name
from thereexists.core.errors import CannotBuild, InvalidInput, ThereExistsError
from thereexists.core.plain_numbers import positive
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_up
from thereexists.model import EmbeddedTransformer
from thereexists.witness.method import Method

_ROUNDS = 3
_LARGE = 1 << 15  # tokens times blocks: a bound for each dtype takes seconds from there on


def build_program(
    program: Value, epsilon: float | None = None, dtype: Any = None, dtypes: tuple[str, ...] | None = None,
    **options: Any,
) -> ProgramWitness:  # fmt: skip
    """A certified witness. The bound for ``dtype`` (default float64) is at most ``epsilon``, or it is refused.

    ``dtypes`` get a bound too: by default all of them, or for large networks float64 only. ``options`` are those of
    ``compile``.
    """
    name = dtype_name(as_dtype(dtype or "float64"))
    epsilon = None if epsilon is None else positive(epsilon, "'epsilon'")
    for turn in range(_ROUNDS):
        compiled = compile_program(program, **options)
        asked = dtypes_to_try(compiled, name, dtypes)
        written = to_record(program)
        certificate = certify_program(written, compiled.network, name, epsilon, asked)
        certificate = dataclasses.replace(certificate, reasons=certificate.reasons | not_tried(asked))
        if name in certificate.bounds:
            return ProgramWitness(compiled.network, program, compiled.source, places(compiled), certificate, written)
        own = certificate.parts["approximation"]
        if epsilon is None or own == 0 or own < epsilon / 4 or turn == _ROUNDS - 1:
            break
        program = refine(program, epsilon / 2 / own)
    raise CannotBuild(_blame(compiled, certificate, name, epsilon))


def dtypes_to_try(compiled: Compiled, name: str, dtypes: tuple[str, ...] | None) -> tuple[str, ...]:
    """The dtype asked for, and those that get a bound too, float64 among them: the network is in it."""
    large = compiled.program.n * compiled.blocks > _LARGE
    names = isinstance(dtypes, list | tuple) and all(isinstance(other, str) for other in dtypes)
    if dtypes is not None and not names:
        raise InvalidInput(f"'dtypes' must be a list of names such as 'float32'; got {dtypes!r} instead.")
    wanted = dtypes if dtypes is not None else ("float64",) if large else DTYPES
    return tuple(dict.fromkeys((name, *wanted, "float64")))


def not_tried(asked: tuple[str, ...]) -> dict[str, str]:
    return {other: f"no bound was asked for; build with dtype='{other}'." for other in DTYPES if other not in asked}


@final
@dataclass(frozen=True, kw_only=True)
class Compiling(Method):
    """How a program is built: the bound for ``dtype`` is at most ``epsilon``; ``dtypes``: those that get a bound too.

    ``causal``, ``heads`` and ``width`` are those of ``compile``.
    """

    epsilon: float | None = None
    dtype: Any = None
    dtypes: tuple[str, ...] | None = None
    causal: bool = False
    heads: int | None = None
    width: int | None = None

    def plan(self, target: Value) -> ProgramPlan:
        return self.build(target).plan

    def build(self, target: Value) -> ProgramWitness:
        limits = {"causal": self.causal, "heads": self.heads, "width": self.width}
        return build_program(target, self.epsilon, self.dtype, self.dtypes, **limits)


def places(compiled: Compiled) -> tuple[dict[str, Any], ...]:
    """Which operation lives in which block, half and row."""
    found = []
    for time in range(compiled.schedule.end + 1):
        made = [[compiled.atoms.names[atom], compiled.layout.row[atom]] for atom in compiled.schedule.at(time)]
        if made:
            half = "embedding" if time == 0 else "attention" if time % 2 else "feed-forward"
            found.append({"block": (time + 1) // 2, "half": half, "made": made})
    return tuple(found)


def refine(program: Value, factor: float) -> Value:
    """The same program, with splines whose own errors are ``factor`` times as large."""
    made: dict[int, Value] = {}
    for node in nodes(program):
        arguments = tuple(made[id(argument)] for argument in node.arguments)
        own = own_error(node) if node.operation in ("apply", "multiply") else 0.0
        if node.operation == "apply" and own:
            made[id(node)] = _spline(node, arguments[0], own * factor)
        elif node.operation == "multiply" and own:
            made[id(node)] = product(arguments[0], arguments[1], own * factor)
        elif all(a is b for a, b in zip(arguments, node.arguments, strict=True)):
            made[id(node)] = node
        else:
            made[id(node)] = dataclasses.replace(node, arguments=arguments)
    return made[id(program)]


def _spline(node: Value, x: Value, epsilon: float) -> Value:
    function = node.settings["function"]
    if isinstance(function, splines.Remembered):
        raise CannotBuild(
            f"'apply' of a function of your own cannot be refined to {in_full(epsilon)} in a program that was loaded: "
            "the file has its spline, not the function; write the program with the function and build that."
        )
    return spline(function, x, epsilon, node.settings.get("curvature"))


def _blame(compiled: Compiled, certificate: ProgramCertificate, dtype: str, epsilon: float | None) -> str:
    """One sentence: which operation is to blame, and by how much."""
    if dtype in certificate.reasons and epsilon is None:
        return f"This program cannot be certified in {dtype}: {certificate.reasons[dtype]}"
    own, total = certificate.parts["approximation"], _total(compiled, certificate, dtype)
    if total is None:
        return f"This program cannot be certified in {dtype}: {certificate.reasons[dtype]}"
    head = f"The bound in {dtype} is {rounded_up(total, 3)}, more than epsilon = {in_full(epsilon)}"
    if own > total / 2 and certificate.splines:
        worst = max(certificate.splines, key=lambda spline: spline["own"])
        return f"{head}: the spline of '{worst['function'] or 'apply'}' alone is off by {rounded_up(worst['own'], 3)}."
    name, block, grown = worst_operation(compiled, dtype)
    most = f"grows most in '{name}' (block {block}), by {rounded_up(grown, 3)} in a row itself, before it is read"
    return f"{head}: rounding {most}; a wider dtype rounds less."


def _total(compiled: Compiled, certificate: ProgramCertificate, dtype: str) -> float | None:
    try:
        part = rounding(compiled.network, tuple((a, b) for a, b in certificate.box), dtype)
    except ThereExistsError:
        return None
    return part + sum(certificate.parts.values())


def worst_operation(compiled: Compiled, dtype: str) -> tuple[str, int, float]:
    """The operation at which the rounding error of the residual stream grows most, its block, and by how much.

    That is an error of single rows, and no part of the bound on the outputs: what reads the rows may make it smaller.
    """
    network, ends = compiled.network, compiled.source.settings
    box = ((ends["low"], ends["high"]),) * compiled.source.d
    before, worst = 0.0, ("tokens", 0, 0.0)
    for block in range(network.depth + 1):
        stages = dict(list(network.stages.items())[:block])
        rows = {a: r for a, r in compiled.layout.row.items() if compiled.schedule.made[a] <= 2 * block}
        alive = {r for a, r in rows.items() if compiled.schedule.last[a] > 2 * block or block == network.depth}
        W_out = torch.zeros(max(len(alive), 1), network.W_out.shape[1], dtype=torch.float64)
        for k, row in enumerate(sorted(alive)):
            W_out[k, row] = 1.0
        part = EmbeddedTransformer({}, W_out, W_in=network.W_in.detach(), E=network.E.detach())  # pyright: ignore
        part.stages = torch.nn.ModuleDict({k: copy.deepcopy(s) for k, s in stages.items()})  # pyright: ignore
        error = rounding(part, box, dtype)
        if error - before > worst[2]:
            here = [a for a in rows if compiled.schedule.made[a] in (2 * block - 1, 2 * block)] or list(rows)
            worst = (compiled.atoms.names[here[-1]], block, error - before)
        before = max(before, error)
    return worst
