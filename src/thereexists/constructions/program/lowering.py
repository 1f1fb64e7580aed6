"""Stage 2, ranges: the graph becomes *atoms*, each with the interval it stays in at every position.

An atom is a number per token that needs a row of the residual stream: a token's feature, a constant that depends on the
position, one value dimension of an attention head, or one output of a feed-forward layer. Everything linear in atoms is
a *form*, and costs nothing: whoever reads it (W_V, W_1 or W_out) has the coefficients among its weights.

    Attend   a(i) = scale · Σ_j softmax_j(⟨query(i), key(j)⟩) · v(j)              one head
    Hinge    a(i) = f(i) + Σ_u c_u · ReLU(f_u(i))                                 one feed-forward layer

A head is a *gather* (the query is the code of σ(i): one-hot), an *average* (equal logits over the tokens that count),
or *soft* (queries and keys are data).

Two options change what a token may see. In a **causal** network token i attends to the tokens 0 … i only. For programs
of **shorter lengths** ``valid`` is a 0/1 flag that comes with every token; a head may then look at earlier positions
(they are there whenever i is), and everything that looks further must ask the flag. What cannot be done is refused by
the name of the operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from thereexists.constructions.program.graph import Value, nodes
from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Array


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
    value: Form
    scale: int
    query: tuple[Form, ...] = ()
    key: tuple[Form, ...] = ()

    @property
    def head(self) -> tuple:
        """Atoms with equal queries and keys are value dimensions of one head."""
        return (tuple(form.key for form in self.query), tuple(form.key for form in self.key))


@dataclass(frozen=True)
class Hinge:
    units: tuple[tuple[Fraction, Form], ...]
    carried: Form


Definition = Token | Constant | Attend | Hinge


SHARPNESS = 512  # a gather's logits differ by twice that
MASKED = 1024  # how far the logit of a padded token is below that of a real one


@dataclass
class Atoms:
    """All atoms of a program in the order of their definition; equal ones are one."""

    n: int
    causal: bool = False
    free: bool = False  # for ranges only: a missing causal mask is not refused
    valid: Form | None = None
    width: int | None = None  # the most units of one hinge; longer ones become chains
    definitions: list[Definition] = field(default_factory=list)
    low: list[Array] = field(default_factory=list)  # (n,) each
    high: list[Array] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    snapped: set[int] = field(default_factory=set)
    _known: dict[tuple, int] = field(default_factory=dict)

    def token(self, feature: int, low: float, high: float) -> Form:
        form = self._atom(("token", feature), Token(feature), np.full(self.n, low), np.full(self.n, high), "tokens")
        self.snapped |= set(form.terms)
        return form

    def constant(self, values: Array, name: str = "constant") -> Form:
        """A number if it is the same at all positions; else a row of E. −v and v share a row."""
        if (values == values[0]).all():
            return Form.number(float(values[0]))
        sign = -1 if values[np.flatnonzero(values)[0]] < 0 else 1
        values = values * sign
        return self._atom(("constant", values.tobytes()), Constant(values), values, values, name) * sign

    def gather(self, source: Array, value: Form, name: str, padded: bool = False) -> Form:
        """Token i reads token source[i]: softmax over 512·⟨code of source[i], code of j⟩ is one-hot (weights.py).

        ``padded``: padded tokens may be read too, because something harmless was put there.
        """
        if not value.terms or (source == np.arange(self.n)).all():
            return value
        ahead = np.flatnonzero(source > np.arange(self.n))
        if len(ahead) and (self.causal or (self.valid is not None and not padded)):
            i = int(ahead[0])
            why = "a causal mask hides" if self.causal else "a shorter sequence does not have"
            raise InvalidInput(f"'{name}' needs token {source[i]} at position {i}, which {why}.")
        low, high = self.range(value)
        query = tuple(form * SHARPNESS for form in self.code(source))
        head = Attend(value, 1, query, self.code(np.arange(self.n)))
        return self._attend(head, low[source], high[source], name)

    def average(self, value: Form, scale: int, name: str, everywhere: bool = False) -> Form:
        """scale · mean over the tokens that count: the earlier ones if causal, the real ones if some are padding.

        Real tokens have the logit 1024, padded ones 0: their weight is 0 in every dtype. ``everywhere`` counts them.
        """
        if not value.terms:
            return value * scale
        low, high = (scale * bound for bound in self.range(value))
        if self.causal:
            count = np.arange(1, self.n + 1)
            return self._attend(Attend(value, scale), np.cumsum(low) / count, np.cumsum(high) / count, name)
        if self.valid is None or everywhere:
            low, high = (np.full(self.n, bound.mean()) for bound in (low, high))
            return self._attend(Attend(value, scale), low, high, name)
        head = Attend(value, scale, (Form.number(MASKED),), (self.valid,))
        return self._attend(head, np.full(self.n, low.min()), np.full(self.n, high.max()), name)

    def soft(self, query: list[Form], key: list[Form], value: Form, name: str) -> Form:
        """Σ_j softmax_j(⟨query(i), key(j)⟩) · value(j), over the tokens that count."""
        if not value.terms:
            return value
        low, high = self.range(value)
        if self.causal:
            low, high = np.minimum.accumulate(low), np.maximum.accumulate(high)
        else:
            low, high = np.full(self.n, low.min()), np.full(self.n, high.max())
        if self.valid is not None:  # above all differences of logits, and the gap of a one-hot head besides
            sizes = [[max(float(np.abs(end).max()) for end in self.range(f)) for f in forms] for forms in (query, key)]
            spread = 2 * sum(a * b for a, b in zip(*sizes, strict=True))
            below = MASKED * 2 ** max(0, math.ceil(math.log2((MASKED + spread) / MASKED)))
            query, key = [*query, Form.number(below)], [*key, self.valid]
        return self._attend(Attend(value, 1, tuple(query), tuple(key)), low, high, name)

    def real(self, value: Form, otherwise: float, name: str) -> Form:
        """The value at real tokens, a number at padded ones; ``valid`` is 0 or 1, so one gated unit is enough:

        ReLU(x − l − R·(1 − v)) + l·v + otherwise·(1 − v), l the lower end of x and R at least its span.
        """
        if self.valid is None:
            return value
        low, high = self.range(value)
        bottom, top = short_bottom(float(low.min()), float(high.max())), float(high.max())
        snapped = self.is_snapped(value)
        R, missing = gate_height(bottom, top, snapped), Form.number(1) - self.valid
        units = [(Fraction(1), value - Form.number(bottom) - missing * R)]
        ends = np.minimum(low, otherwise), np.maximum(high, otherwise)
        out = self.hinge(units, self.valid * bottom + missing * otherwise, ends[0], ends[1], f"{name}: padding")
        self.snapped |= set(out.terms) if snapped else set()
        return out

    def is_snapped(self, form: Form) -> bool:
        """Whether a form is a token, perhaps with its padding replaced: rounding never carries it out of its range."""
        return (
            len(form.terms) == 1
            and not form.constant
            and all(c == 1 for c in form.terms.values())
            and all(atom in self.snapped for atom in form.terms)
        )

    def code(self, positions: Array) -> tuple[Form, ...]:
        """The ⌈log2 n⌉ bits of every position in the list, as ±1. Equal or opposite bits share a row of E."""
        bits = (self.n - 1).bit_length()
        return tuple(self.constant(2.0 * (positions >> b & 1) - 1.0, "position") for b in range(bits))

    def hinge(self, units: list[tuple[Fraction, Form]], carried: Form, low: Array, high: Array, name: str) -> Form:
        """carried + Σ c·ReLU(form), in the layers that the width asks for; two units of each carry what came before."""
        most = len(units) if self.width is None else max(1, self.width - 2)
        while len(units) > most:
            first, units = units[:most], units[most:]
            below, above = self.range(carried)
            for c, form in first:
                ends = [float(c) * np.maximum(end, 0.0) for end in self.range(form)]
                below, above = below + np.minimum(*ends), above + np.maximum(*ends)
            carried = self._hinge(first, carried, below, above, f"{name} (part)")
        return self._hinge(units, carried, low, high, name)

    def _hinge(self, units: list[tuple[Fraction, Form]], carried: Form, low: Array, high: Array, name: str) -> Form:
        key = ("hinge", tuple((c, form.key) for c, form in units), carried.key)
        return self._atom(key, Hinge(tuple(units), carried), low, high, name)

    def range(self, form: Form) -> tuple[Array, Array]:
        low, high = np.full(self.n, float(form.constant)), np.full(self.n, float(form.constant))
        for atom, c in form.terms.items():
            ends = (float(c) * self.low[atom], float(c) * self.high[atom])
            low, high = low + np.minimum(*ends), high + np.maximum(*ends)
        return low, high

    def _attend(self, head: Attend, low: Array, high: Array, name: str) -> Form:
        return self._atom(("attend", head.value.key, head.scale, head.head), head, low, high, name)

    def _atom(self, key: tuple, definition: Definition, low: Array, high: Array, name: str) -> Form:
        if key not in self._known:
            self._known[key] = len(self.definitions)
            self.definitions.append(definition)
            self.low.append(low)
            self.high.append(high)
            self.names.append(name)
        return Form({self._known[key]: Fraction(1)})


def short_bottom(low: float, high: float) -> float:
    """A number ≤ low of few bits, lower by at most 2^-20 of the span.

    With it x − bottom − R·… has a bias that is a float64, so that it is never below 0 where a unit must stay open, not
    even by the rounding of a weight: a bend at the very end of a range is one that the verifier cannot account for.
    """
    q = max(2.0 ** (math.frexp(high - low)[1] - 21), math.ulp(0.0))  # of which every float64 is a multiple
    return math.floor(low / q) * q


def gate_height(low: float, high: float, snapped: bool = False) -> float:
    """A power of two R ≥ high − low. Snapped tokens never leave their range; others may by rounding: a quarter more.

    Without it a unit that ought to be closed would let a rounding error through.
    """
    span = (Fraction(high) - Fraction(low)) * (1 if snapped else Fraction(5, 4))
    R = 2.0 ** math.ceil(math.log2(span)) if span > 0 else 1.0
    return R if span <= R else 2.0 * R  # log2 rounds


Lower = Callable[[Atoms, Value, list[list[Form]]], list[Form]]


def lower(output: Value, rules: dict[str, Lower], atoms: Atoms | None = None) -> tuple[Atoms, list[Form]]:
    """Every node's forms, one per feature, by the rule of its operation; the last node is the output."""
    atoms = Atoms(output.n) if atoms is None else atoms
    forms: dict[int, list[Form]] = {}
    for node in nodes(output):
        forms[id(node)] = rules[node.operation](atoms, node, [forms[id(a)] for a in node.arguments])
    return atoms, forms[id(output)]
