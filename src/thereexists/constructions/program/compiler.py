"""The compiler, stage by stage: graph → ranges → schedule → rows → weights. Each stage's result can be looked at.

What is claimed of the result, for every input of the box whose numbers are numbers of the dtype:

    |network in dtype − program|  ≤  rounding + approximation

``rounding`` is computed from the weights and the box alone (``rounding.py``). ``approximation`` is what the primitives
leave by themselves (splines only; 0 otherwise), carried to the output through Lipschitz constants. That the weights, in
real arithmetic, compute the program up to ``approximation`` rests here on proofs beside the primitives and on tests:
this is a bound. ``te.build`` gives a certificate, for which that is re-derived from the weights (``certificates/``).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from thereexists.arithmetic.rounding import rounding_bound
from thereexists.arithmetic.simplest import simplest
from thereexists.constructions.program.given import real_array, within_float64
from thereexists.constructions.program.graph import Value, nodes, only_value
from thereexists.constructions.program.lowering import Atoms, Form, lower
from thereexists.constructions.program.primitives import PRIMITIVES
from thereexists.constructions.program.ranges import approximation, value_range
from thereexists.constructions.program.schedule import Layout, Limits, Schedule, allocate, schedule
from thereexists.constructions.program.weights import network_of
from thereexists.core.dtypes import DTYPES, as_dtype, dtype_name
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import brief, in_full
from thereexists.core.rounded_figures import rounded_up
from thereexists.functions.target import Array
from thereexists.model import EmbeddedTransformer

__all__ = ["Bound", "Compiled", "approximation", "check_inputs", "compile", "interpret", "value_range"]

_RULES = {name: primitive.lower for name, primitive in PRIMITIVES.items()}


def compile(program: Value, *, causal: bool = False, heads: int | None = None, width: int | None = None) -> Compiled:
    """A network of standard blocks that computes the program.

        P.compile(P.sort(P.tokens(n=4)))

    ``causal``: every attention layer is masked, token i sees the tokens 0 … i only. ``heads`` and ``width`` limit the
    heads of an attention layer (2 at least) and the units of a feed-forward layer (4 at least); what does not fit goes
    into later blocks.

    Args:
        program: the last value of a program.
        causal: whether every attention layer is masked.
        heads: the most heads of an attention layer, 2 at least.
        width: the most units of a feed-forward layer, 4 at least.

    Returns:
        The network, and where every operation is in it.

    Raises:
        InvalidInput: it is not a program, looks ahead although it is ``causal``, or a limit is too small.
    """
    source = _tokens(only_value("compile", program))
    limits = _limits(heads, width)
    with within_float64():
        atoms, outputs = lower(program, _RULES, Atoms(program.n, causal, width=width))
        times = schedule(atoms, outputs, limits)
        layout = allocate(atoms, times, limits)
        network = network_of(atoms, outputs, times, layout, source.d + (atoms.valid is not None))
    network.safe = DTYPES
    return Compiled(program, source, atoms, tuple(outputs), times, layout, network)


@dataclass(frozen=True)
class Bound:
    """An analytic bound on |network − program| in the sup norm, for every input in the box that is exact in the dtype.

        P.compile(P.sort(P.tokens(n=4))).bound("float32").total

    The head of ``constructions/program/compiler.py`` says what it rests on.

    Attributes:
        dtype: in which the network runs.
        rounding: how much of it is rounding.
        approximation: how much of it the operations leave by themselves: splines only, 0 for the others.
        kind: what sort of bound this is.
    """

    dtype: str
    rounding: float
    approximation: float
    kind: str = "analytic bound, not a certificate"

    @property
    def total(self) -> float:
        return self.rounding + self.approximation


@dataclass(frozen=True, repr=False)
class Compiled:
    """The network, and what every stage of the compiler found.

        P.compile(P.sort(P.tokens(n=4))).network.depth

    Args:
        program: as it was written.
        source: the same without what is not needed.
        atoms: its operations, one by one.
        outputs: the rows that hold the answer.
        schedule: the block of each.
        layout: the row of each.
        network: the network.
    """

    program: Value
    source: Value
    atoms: Atoms
    outputs: tuple[Form, ...]
    schedule: Schedule
    layout: Layout
    network: EmbeddedTransformer

    def __repr__(self) -> str:
        shape, low, high = self.network.shape(), self.source.settings["low"], self.source.settings["high"]
        return brief(
            f"Compiled: {self.program!r} of {self.source.n} tokens of {self.source.d} features "
            f"in [{in_full(low)}, {in_full(high)}]",
            f"{self.blocks} blocks, {self.network.parameter_count:,} parameters, "
            f"{shape['h']} heads of size {shape['m']}, width {shape['r']}, {shape['d']} rows",
            f"off by at most {rounded_up(self.approximation, 3)} in real arithmetic; .bound(dtype) adds rounding",
        )

    def __call__(self, X: Array, dtype: str = "float64") -> Array:
        """Inputs (batch, n, d) through the network in a dtype; float64 out. Inputs are rounded to the dtype first."""
        X = check_inputs(self.source, X)
        return self.to(dtype).run(self.padded(X))[:, : X.shape[1]]

    def padded(self, X: Array) -> Array:
        """What the network itself takes: (batch, n, d); for programs of shorter lengths with a last feature that is 1

        at real tokens and 0 at padded ones (a causal network does not need it). Padding is the box's simplest number.
        """
        if not self.source.settings["shorter"]:
            return X
        missing = ((0, 0), (0, self.source.n - X.shape[1]), (0, 0))
        full = np.pad(X, missing, constant_values=simplest(self.source.settings["low"], self.source.settings["high"]))
        flags = np.pad(np.ones((*X.shape[:2], 1)), missing)
        return full if self.atoms.valid is None else np.concatenate([full, flags], axis=2)

    @property
    def box(self) -> tuple[Array, Array]:
        """The ends of every feature that the network takes."""
        low, high = (np.full(self.source.d, self.source.settings[end]) for end in ("low", "high"))
        return (low, high) if self.atoms.valid is None else (np.append(low, 0.0), np.append(high, 1.0))

    def to(self, dtype: str) -> EmbeddedTransformer:
        return self.network if as_dtype(dtype) == torch.float64 else copy.deepcopy(self.network).to(as_dtype(dtype))

    def bound(self, dtype: str = "float64") -> Bound:
        rounding = float(rounding_bound(self.network, *self.box, dtype_name(dtype)).max())
        return Bound(dtype_name(dtype), rounding, self.approximation)

    @cached_property
    def approximation(self) -> float:
        return approximation(self.program)

    @property
    def blocks(self) -> int:
        return self.schedule.blocks

    def listing(self) -> str:
        """Which operation lives in which half block and row."""
        shape = self.network.shape()
        lines = [
            f"{self.blocks} blocks, d_model {shape['d']}, at most {shape['h']} heads of size {shape['m']}, "
            f"feed-forward width {shape['r']}, {self.network.parameter_count:,} parameters"
        ]
        for time in range(self.schedule.end + 1):
            half = (
                "embedding" if time == 0 else f"block {(time + 1) // 2} {'attention' if time % 2 else 'feed-forward'}"
            )
            made = [f"{self.atoms.names[a]} → row {self.layout.row[a]}" for a in self.schedule.at(time)]
            if made:
                lines.append(f"{half}: {', '.join(made)}")
        return "\n".join(lines)


def interpret(program: Value, X: Array) -> Array:
    """The program itself on arrays (batch, n, d), operation by operation, in the dtype of X if that is a wide float."""
    program = only_value("interpret", program)
    X = check_inputs(_tokens(program), X)
    values: dict[int, Array] = {}
    for node in nodes(program):
        arguments = [X] if node.operation == "tokens" else [values[id(a)] for a in node.arguments]
        values[id(node)] = PRIMITIVES[node.operation].interpret(*arguments, **node.settings)[:, : X.shape[1]]
    return np.array(np.broadcast_to(values[id(program)], (len(X), X.shape[1], program.d)))


def check_inputs(source: Value, X: Array) -> Array:
    wide = isinstance(X, np.ndarray) and X.dtype == np.longdouble
    X = X if wide else real_array("tokens", "inputs", X)
    shorter = source.settings["shorter"] and X.ndim == 3 and 1 <= X.shape[1] <= source.n
    if X.ndim != 3 or X.shape[2] != source.d or not (X.shape[1] == source.n or shorter):
        n = f"1 … {source.n}" if source.settings["shorter"] else source.n
        raise InvalidInput(f"'tokens' wants inputs (batch, {n}, {source.d}); got the shape {X.shape} instead.")
    low, high = source.settings["low"], source.settings["high"]
    if X.size and not bool(((X >= low) & (X <= high)).all()):
        raise InvalidInput(f"'tokens' wants inputs between {low} and {high}; got {X.min()} … {X.max()} instead.")
    return X


def _limits(heads: int | None, width: int | None) -> Limits:
    for name, limit, least in (("heads", heads, 2), ("width", width, 4)):
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < least):
            raise InvalidInput(f"'compile' takes {name} of at least {least}, or None; got {limit!r} instead.")
    return Limits(heads, width)


def _tokens(program: Value) -> Value:
    sources = [node for node in nodes(program) if node.operation == "tokens"]
    if len(sources) != 1:
        raise InvalidInput(f"'compile' takes a program with one 'tokens'; this one has {len(sources)}.")
    return sources[0]
