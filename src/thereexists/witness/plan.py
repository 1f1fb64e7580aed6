"""What a build will give, before it is built."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from thereexists.certificates.units import norm
from thereexists.core.authors_word import Figures, as_its_author_says
from thereexists.core.errors import CannotBuild
from thereexists.core.notebook import InNotebook
from thereexists.core.plain_text import brief, d_of, in_full
from thereexists.core.rounded_figures import rounded_up
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target

__all__ = ["BlocksPlan", "ErrorBudget", "FunctionPlan", "Plan"]


class Plan(InNotebook, ABC):
    """The sizes of a network before it is built; what ``te.plan`` returns.

        te.plan(te.targets.builtin("sort", n=2), delta=1 / 2).layers["total"]

    Attributes:
        layers: how many blocks each stage has, and their ``total``.
        parameters: how many there are.
    """

    layers: dict[str, int]
    parameters: int

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The plan as plain data, for JSON and for the record."""

    @abstractmethod
    def facts(self) -> list[str]:
        """At most four lines, for ``repr``: what it is for, and how good it will be."""

    def __repr__(self) -> str:
        parts = {name: depth for name, depth in self.layers.items() if name != "total"}
        stages = f": {', '.join(f'{depth:,} {name}' for name, depth in parts.items())}" if len(parts) < 8 else ""
        size = f"{self.layers['total']:,} blocks{stages}; {self.parameters:,} parameters"
        return brief(type(self).__name__, size, *self.facts())


@dataclass(frozen=True, repr=False, kw_only=True)
class BlocksPlan(Plan):
    """The plan of a network of standard blocks: of a table, a program or an automaton.

        te.plan(te.Table([[0, 1], [1, 0]], [[1, 1], [0, 0]])).d_model

    Attributes:
        layers: how many blocks each part has, and their ``total``.
        parameters: how many there are.
        d_model: rows of the residual stream.
        heads: the most heads of a block.
        head_size: the size of a head.
        width: the most units of a feed-forward layer.
    """

    layers: dict[str, int]
    parameters: int
    d_model: int
    heads: int
    head_size: int
    width: int


@dataclass(frozen=True, repr=False)
class ErrorBudget(Figures):
    """The predicted parts of d_p; they live on disjoint sets, so total^p is the sum of the p-th powers.

        te.plan(te.targets.builtin("sort", n=2), delta=1 / 2).error.total

    Attributes:
        p: the p of d_p.
        grid: the error inside the cells, where the network is constant.
        equal_columns: the error where two columns share a cell and the network cannot tell them apart.
        ramps: the error on the ramps between cells.
        stated: a record says so; it was not predicted again.
    """

    p: float
    grid: float
    equal_columns: float
    ramps: float
    stated: bool = field(default=False, compare=False, kw_only=True)

    @property
    def total(self) -> float:
        return norm([self.grid, self.equal_columns, self.ramps], self.p)

    def describe(self) -> dict[str, float]:
        return {**super().describe(), "total": self.total}

    @classmethod
    def read(cls, stated: dict[str, Any] | None) -> ErrorBudget | None:
        if stated is None:
            return None
        return cls(*(stated[key] for key in ("p", "grid", "equal_columns", "ramps")), stated=True)


def stated(budget: ErrorBudget, target: Target) -> ErrorBudget:
    """The budget, if float64 holds its total: infinity is no prediction."""
    if math.isfinite(budget.total):
        return budget
    raise beyond_float64(target, budget.p)


def beyond_float64(target: Target, p: float) -> CannotBuild:
    """d_p is about volume^{1/p}·|f − g|, and |f − g| at most 2^400: with volume^{1/p} ≤ 2^600 it is a float64."""
    bits = target.n * sum(math.log2(width) for width in (target.high - target.low).tolist())
    return CannotBuild(
        f"{d_of(p)} over this domain, of a volume of about 2^{bits:.0f}, is a number beyond float64, so nothing could "
        f"be predicted or certified. Choose p = {max(math.ceil(bits / 600), 2)} or larger, or rescale the function to "
        "a smaller domain."
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class FunctionPlan(Plan):
    """The plan for a function on a grid: exact sizes, and a bound on the error where the target states a modulus.

        te.plan(te.targets.builtin("sort", n=2), delta=1 / 2).memory_bytes

    Attributes:
        theorem: which theorem the network follows: 1, 2 or B.
        grid: the cells that the domain is cut into.
        layers: how many layers each stage has, and their ``total``.
        parameters: how many there are.
        memory_bytes: what the weights take.
        error: the predicted d_p, part by part; None if the target states no modulus of continuity.
        epsilon: the d_p that was asked for; None if a grid was. With it, ``error`` is what a certificate is predicted
            to prove, and is at most ``epsilon``.
        read: whether it was read from a record, which says more than was counted again.
    """

    construction: ClassVar[str]

    theorem: int | str
    grid: Grid
    layers: dict[str, int]
    parameters: int
    memory_bytes: int
    error: ErrorBudget | None
    epsilon: float | None = None
    read: bool = field(default=False, compare=False)

    def describe(self) -> dict[str, Any]:
        return {
            "n": self.grid.n,
            "d": self.grid.d,
            "delta": float(self.grid.delta),
            "construction": self.construction,
            "theorem": self.theorem,
            "layers": self.layers,
            "parameters": self.parameters,
            "memory_bytes": self.memory_bytes,
            "error": None if self.error is None else self.error.describe(),
            "epsilon": self.epsilon,
            **self.own(),
        }

    def facts(self) -> list[str]:
        grid, error = self.grid, self.error
        sizes = f"n = {grid.n}, d = {grid.d}, delta = {grid.delta}: {grid.N:,} cells per feature, {grid.K:,} per token"
        promise = "no error predicted" if error is None else f"{d_of(error.p)} ≤ {rounded_up(error.total, 4)} predicted"
        promise += "" if self.epsilon is None else f", {in_full(self.epsilon)} asked for"
        words = [sizes, f"{self.memory_bytes:,} bytes; {promise}"]
        words = list(map(as_its_author_says, words)) if self.read else words
        return [f"{self.construction}, Theorem {self.theorem}", *words]

    @abstractmethod
    def own(self) -> dict[str, Any]:
        """What only this construction has."""

    def advice(self) -> list[str]:
        """What you should know before you build this, one sentence each."""
        return []

    def stated_pattern(self) -> dict[str, Any] | None:
        """Of sparse attention: name, cycle, connections, path and depth; None where it is dense."""
        return None

    def command_options(self) -> list[str]:
        """How the command line asks for this construction."""
        return []
