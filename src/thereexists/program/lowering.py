"""Stage 2, ranges: the graph becomes *atoms*, each with the interval it stays in at every position.

An atom is a number per token that needs a row of the residual stream: a token's feature, a constant that depends on the
position, one value dimension of an attention head, or one output of a feed-forward layer. Everything linear in atoms is
a *form*, and costs nothing: whoever reads it (W_V, W_1 or W_out) has the coefficients among its weights.

    Attend   a(i) = scale · v(σ(i)), or scale · mean of v over all tokens          one head
    Hinge    a(i) = f(i) + Σ_u c_u · ReLU(f_u(i))                                 one feed-forward layer
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from thereexists.program.graph import Value, nodes
from thereexists.target import Array


@dataclass(frozen=True)
class Form:
    """Σ terms[a] · a + constant over atoms a. Rational numbers: folding many linear steps into one rounds nothing."""

    terms: dict[int, Fraction] = field(default_factory=dict)
    constant: Fraction = Fraction(0)

    def __add__(self, other: Form) -> Form:
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            terms[atom] = terms.get(atom, Fraction(0)) + coefficient
        return Form({a: c for a, c in terms.items() if c}, self.constant + other.constant)

    def __mul__(self, factor: float | Fraction) -> Form:
        factor = Fraction(factor)
        return Form({a: c * factor for a, c in self.terms.items() if factor}, self.constant * factor)

    def __sub__(self, other: Form) -> Form:
        return self + other * -1

    @classmethod
    def number(cls, value: float | Fraction) -> Form:
        return cls(constant=Fraction(value))

    @property
    def key(self) -> tuple:
        return (tuple(sorted(self.terms.items())), self.constant)


@dataclass(frozen=True)
class Token:
    feature: int


@dataclass(frozen=True)
class Constant:
    values: Array  # (n,)


@dataclass(frozen=True)
class Attend:
    source: tuple[int, ...] | None  # σ, or None for the mean over all tokens
    value: Form
    scale: int
    query: tuple[Form, ...] = ()  # the ±1 code of σ(i)


@dataclass(frozen=True)
class Hinge:
    units: tuple[tuple[Fraction, Form], ...]
    carried: Form


Definition = Token | Constant | Attend | Hinge


@dataclass
class Atoms:
    """All atoms of a program in the order of their definition; equal ones are one."""

    n: int
    definitions: list[Definition] = field(default_factory=list)
    low: list[Array] = field(default_factory=list)  # (n,) each
    high: list[Array] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    _known: dict[tuple, int] = field(default_factory=dict)

    def token(self, feature: int, low: float, high: float) -> Form:
        return self._atom(("token", feature), Token(feature), np.full(self.n, low), np.full(self.n, high), "tokens")

    def constant(self, values: Array, name: str = "constant") -> Form:
        """A number if it is the same at all positions; else a row of E. −v and v share a row."""
        if (values == values[0]).all():
            return Form.number(float(values[0]))
        sign = -1 if values[np.flatnonzero(values)[0]] < 0 else 1
        values = values * sign
        return self._atom(("constant", values.tobytes()), Constant(values), values, values, name) * sign

    def attend(self, source: tuple[int, ...] | None, value: Form, scale: int, name: str) -> Form:
        if not value.terms or source == tuple(range(self.n)):
            return value * scale
        low, high = self.range(value)
        if source is None:
            low, high = (np.full(self.n, scale * bound.mean()) for bound in (low, high))
        else:
            low, high = scale * low[list(source)], scale * high[list(source)]
        query = () if source is None else self.code(np.array(source))
        return self._atom(("attend", source, value.key, scale), Attend(source, value, scale, query), low, high, name)

    def code(self, positions: Array) -> tuple[Form, ...]:
        """The ⌈log2 n⌉ bits of every position in the list, as ±1. Equal or opposite bits share a row of E."""
        bits = (self.n - 1).bit_length()
        return tuple(self.constant(2.0 * (positions >> b & 1) - 1.0, "position") for b in range(bits))

    def hinge(self, units: list[tuple[Fraction, Form]], carried: Form, low: Array, high: Array, name: str) -> Form:
        key = ("hinge", tuple((c, form.key) for c, form in units), carried.key)
        return self._atom(key, Hinge(tuple(units), carried), low, high, name)

    def range(self, form: Form) -> tuple[Array, Array]:
        low, high = np.full(self.n, float(form.constant)), np.full(self.n, float(form.constant))
        for atom, c in form.terms.items():
            ends = (float(c) * self.low[atom], float(c) * self.high[atom])
            low, high = low + np.minimum(*ends), high + np.maximum(*ends)
        return low, high

    def _atom(self, key: tuple, definition: Definition, low: Array, high: Array, name: str) -> Form:
        if key not in self._known:
            self._known[key] = len(self.definitions)
            self.definitions.append(definition)
            self.low.append(low)
            self.high.append(high)
            self.names.append(name)
        return Form({self._known[key]: Fraction(1)})


Lower = Callable[[Atoms, Value, list[list[Form]]], list[Form]]


def lower(output: Value, rules: dict[str, Lower]) -> tuple[Atoms, list[Form]]:
    """Every node's forms, one per feature, by the rule of its operation; the last node is the output."""
    atoms = Atoms(output.n)
    forms: dict[int, list[Form]] = {}
    for node in nodes(output):
        forms[id(node)] = rules[node.operation](atoms, node, [forms[id(a)] for a in node.arguments])
    return atoms, forms[id(output)]
