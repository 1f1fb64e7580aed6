"""Exact linear algebra over named quantities: in what terms a program and a network are compared.

A *form* is Σ c·term + Σ bend(direction) + constant with rational numbers. A term is a number that depends on the input
(a token's feature, a mean, a named intermediate result) and has a range, an interval that holds it on the whole box. A
*direction* is a form without constant, scaled so that its first coefficient is 1; a *bend* of it is a piecewise linear
function Σ jump·ReLU(s − t), given by its breakpoints t and jumps. Two rules make equal things look equal:

    ReLU(−v) = ReLU(v) − v                     so only one sign of every direction is ever bent;
    ReLU(s − t) = 0 if t ≥ sup s,              and s − t if t ≤ inf s: breakpoints outside the range disappear.

Both are identities for all inputs of the box, so whatever follows from equal forms holds for all inputs of the box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from thereexists.certificates.program_joint import Joint, taken_out
from thereexists.certificates.program_numbers import Number as Number
from thereexists.certificates.program_numbers import exact as exact
from thereexists.certificates.program_numbers import ratio as ratio
from thereexists.core.errors import NotProved

NO_BEND = 0
TRACE = 2.0**-49  # of a number that is added and taken away again: sixteen roundings of it
SHORT = 64  # means of more forms are terms of their own
LONGEST = 1 << 13  # bits of a number
DEPTH = 3  # bends of a form, at most, whose range is narrowed by them, one after the other


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """``linear``: coefficient of every term; ``bends``: number of the bend of every direction; and a constant."""

    linear: dict[int, Number] = field(default_factory=dict)
    bends: dict[int, int] = field(default_factory=dict)
    constant: Number = 0

    @property
    def is_constant(self) -> bool:
        return not self.linear and not self.bends


ZERO = Form()


@dataclass(frozen=True, slots=True)
class Direction:
    linear: dict[int, Number]
    bends: dict[int, int]
    low: Number
    high: Number


@dataclass(frozen=True, slots=True)
class Soft:
    """Σ_j softmax_j(⟨query, keys[j]⟩)·values[j]."""

    query: list[Form]
    keys: list[list[Form]]
    values: list[Form]


@dataclass(frozen=True, slots=True)
class Bent:
    """A piecewise linear function of a direction: bend + slope·s + constant on its range."""

    bend: int
    slope: Number
    constant: Number


def differing(query: list[Form], keys: list[list[Form]]) -> list[int]:
    """The dimensions of logits that differ among the tokens: what all logits share changes nothing.

    A product is shared if the query is 0, whatever the keys are; and if the keys are one constant, whatever it is.
    """
    kept = []
    for k, q in enumerate(query):
        column = [key[k] for key in keys]
        zero = q.is_constant and q.constant == 0
        if not zero and any(not form.is_constant or form.constant != column[0].constant for form in column):
            kept.append(k)
    return kept


@dataclass(frozen=True)
class Allowance:
    """How many numbers may be written down, quantities named and units bent, see ``program_limits.py``."""

    numbers: float = math.inf
    names: float = math.inf
    units: float = math.inf


class Terms:
    """The table of all terms, directions, bends and names; each exists once."""

    def __init__(self, allowed: Allowance | None = None) -> None:
        self.allowed = allowed or Allowance()
        self.written = self.bent_units = 0
        self.largest: Number = 0  # of what units add up: their arguments' parts, times what they write
        self.traces: Number = 0  # what such numbers of the program may leave behind in rounded weights
        self.low: list[Number] = []
        self.high: list[Number] = []
        self.labels: list[str] = []
        self.directions: list[Direction] = []
        self.names: dict[tuple, int] = {}
        self.known: dict[tuple, int] = {}  # other terms by what they are: tokens, means
        self.means: dict[int, list[Form]] = {}
        self.softs: dict[int, Soft] = {}
        self.made: dict[int, Form] = {}  # what a name stands for
        self.plain: dict[int, tuple[Form, Number] | None] = {}  # a name as a linear form and an error, if it is one
        self.joint: dict[int, Joint] = {}  # by its last term
        self._form_number: dict[tuple, int] = {}
        self._direction_number: dict[tuple, int] = {}
        self._bends: list[tuple[tuple[Number, Number], ...]] = [()]
        self._bend_number: dict[tuple, int] = {(): NO_BEND}
        self._sums: dict[tuple, int] = {}

    # --- terms ---------------------------------------------------------------------------------------------------

    def term(self, key: tuple, low: Number, high: Number, label: str) -> int:
        if key not in self.known:
            self.known[key] = self.fresh(low, high, label)
        return self.known[key]

    def count(self, numbers: int) -> None:
        self.written += numbers
        if self.written > self.allowed.numbers:
            raise NotProved(f"More than {self.allowed.numbers:,} numbers would have to be written down.")

    def weigh(self, forms: Sequence[Form]) -> None:
        """Count the words of long numbers; none may be longer than any honest program needs."""
        for form in forms:
            numbers = (form.constant, *form.linear.values())
            longest = max(n.bit_length() if isinstance(n, int) else n.height_bits() for n in numbers)
            if longest > LONGEST:
                raise NotProved(f"A number of {longest:,} bits came up; at most {LONGEST:,} are followed.")
            if longest > 256:
                self.count(len(numbers) * longest >> 6)

    def fresh(self, low: Number, high: Number, label: str) -> int:
        self.count(2)
        self.low.append(low)
        self.high.append(high)
        self.labels.append(label)
        return len(self.low) - 1

    def name(self, form: Form, low: Number, high: Number, label: str) -> Form:
        """A form that bends, as one term of the given range; a form without bends stays as it is."""
        if not form.bends:
            return form
        key = self.key(form)
        if key not in self.names:
            if len(self.names) >= self.allowed.names:
                raise NotProved(f"'{label}' has more steps than the network has rows for ({self.allowed.names:,}).")
            self.names[key] = self.fresh(low, high, label)
            self.made[self.names[key]] = form
        return Form({self.names[key]: 1})

    def key(self, form: Form) -> tuple:
        return tuple(sorted(form.linear.items())), tuple(sorted(form.bends.items())), form.constant

    def mean(self, forms: list[Form]) -> Form:
        """The mean of some forms: their sum by their number if they are few or constant, else one term for the list."""
        k = len(forms)
        if k <= SHORT or all(form.is_constant for form in forms):
            return self.combine([(ratio(1, k), form) for form in forms])
        key = ("mean", tuple(self.number_of(form) for form in forms))
        if len(set(key[1])) == 1:
            return forms[0]
        if key not in self.known:
            ranges = [self.range(form) for form in forms]
            low, high = (ratio(sum((r[end] for r in ranges), start=0), k) for end in (0, 1))
            self.known[key] = self.fresh(low, high, "mean")
            self.means[self.known[key]] = forms
        return Form({self.known[key]: 1})

    def soft(self, soft: Soft, label: str) -> Form:
        """A softmax-weighted mean: a term between the smallest and the largest value."""
        if not soft.query:
            return self.mean(soft.values)
        key = self.soft_key(soft)
        if key not in self.known:
            ranges = [self.range(form) for form in soft.values]
            self.known[key] = self.fresh(min(r[0] for r in ranges), max(r[1] for r in ranges), label)
            self.softs[self.known[key]] = soft
        return Form({self.known[key]: 1})

    def soft_key(self, soft: Soft) -> tuple:
        query, values = (tuple(self.number_of(form) for form in forms) for forms in (soft.query, soft.values))
        return "soft", query, tuple(tuple(self.number_of(form) for form in key) for key in soft.keys), values

    def number_of(self, form: Form) -> int:
        key = self.key(form)
        return self._form_number.setdefault(key, len(self._form_number))

    # --- forms ---------------------------------------------------------------------------------------------------

    def combine(self, parts: Sequence[tuple[Number, Form]], constant: Number = 0) -> Form:
        """Σ c·form + constant."""
        parts = [part for part in parts if part[1] is not ZERO and part[0] != 0]
        if not constant and len(parts) == 1 and parts[0][0] == 1:
            return parts[0][1]
        linear: dict[int, Number] = {}
        bends: dict[int, int] = {}
        self.count(1 + sum(len(form.linear) + len(form.bends) for _, form in parts))
        for c, form in parts:
            for term, a in form.linear.items():
                if c != 1:
                    a = c * a
                if term in linear:
                    a = linear[term] + a
                    if a == 0:
                        del linear[term]
                        continue
                linear[term] = a if type(a) is int else exact(a)
            for direction, bend in form.bends.items():
                bends[direction] = self.add_bends(bends.get(direction, NO_BEND), bend, c)
            constant = constant + c * form.constant
        if NO_BEND in bends.values():
            bends = {direction: bend for direction, bend in bends.items() if bend != NO_BEND}
        return Form(linear, bends, constant if type(constant) is int else exact(constant))

    def add_bends(self, first: int, second: int, factor: Number) -> int:
        """first + factor · second."""
        if first == NO_BEND and factor == 1:
            return second
        key = (first, second, factor)
        if key not in self._sums:
            self.count(len(self._bends[first]) + len(self._bends[second]))
            jumps = dict(self._bends[first])
            for t, jump in self._bends[second]:
                jumps[t] = jumps.get(t, 0) + factor * jump
            self._sums[key] = self.bend(jumps)
        return self._sums[key]

    def bend(self, jumps: dict[Number, Number]) -> int:
        key = tuple(sorted((t, exact(jump)) for t, jump in jumps.items() if jump != 0))
        if key not in self._bend_number:
            self._bend_number[key] = len(self._bends)
            self._bends.append(key)
        return self._bend_number[key]

    def jumps(self, bend: int) -> tuple[tuple[Number, Number], ...]:
        return self._bends[bend]

    # --- directions ----------------------------------------------------------------------------------------------

    def split(self, form: Form) -> tuple[tuple, Number]:
        """The key of the direction s of a form that is not constant, and the factor: form = factor·s + constant."""
        if form.linear:
            lead = form.linear[min(form.linear)]
            items = form.linear.items() if lead == 1 else [(term, ratio(a, lead)) for term, a in form.linear.items()]
            linear = tuple(sorted(items))
            if not form.bends:
                return (linear, ()), lead
            inverse = ratio(1, lead)
        else:
            lead = self._bends[form.bends[min(form.bends)]][0][1]
            linear, inverse = (), ratio(1, lead)
        bends = tuple(sorted((s, self.add_bends(NO_BEND, bend, inverse)) for s, bend in form.bends.items()))
        return (linear, bends), lead

    def find_direction(self, key: tuple) -> int | None:
        return self._direction_number.get(key)

    def direction(self, key: tuple) -> int:
        """The number of a direction; its range follows from the ranges of its terms alone."""
        if key not in self._direction_number:
            linear, bends = dict(key[0]), dict(key[1])
            low, high = self._narrow(Form(linear, bends), DEPTH)
            self._direction_number[key] = len(self.directions)
            self.directions.append(Direction(linear, bends, low, high))
        return self._direction_number[key]

    def as_form(self, number: int) -> Form:
        direction = self.directions[number]
        return Form(direction.linear, direction.bends)

    def range(self, form: Form) -> tuple[Number, Number]:
        """An interval that holds the form: joint sums first, the rest term by term."""
        low = high = form.constant
        self.written += len(form.linear) + len(form.bends)
        linear = form.linear
        if self.joint and not self.joint.keys().isdisjoint(linear):
            linear, low, high = taken_out(self, linear, low, high)
        for term, a in linear.items():
            ends = (a * self.low[term], a * self.high[term])
            low, high = low + min(ends), high + max(ends)
        for s, bend in form.bends.items():
            values = self.values_of_bend(bend, s)
            low, high = low + min(values), high + max(values)
        return exact(low), exact(high)

    def _narrow(self, form: Form, depth: int) -> tuple[Number, Number]:
        """The range, where a larger of two may stand in the form: with c·ReLU(s − t) and the rest a of the form,

        a + c·ReLU(s − t) is the larger of a and b = a + c·(s − t) if c > 0, the smaller if c < 0: no term by term.
        """
        low, high = self.range(form)
        for s, bend in form.bends.items() if depth and len(form.bends) <= DEPTH else ():
            if len(jumps := self.jumps(bend)) == 1:
                ((t, c),) = jumps
                a = Form(form.linear, {k: each for k, each in form.bends.items() if k != s}, form.constant)
                b = self.combine([(1, a), (c, self.as_form(s))], -c * t)
                (low_a, high_a), (low_b, high_b) = (self._narrow(each, depth - 1) for each in (a, b))
                of_both = max if c > 0 else min
                low, high = max(low, of_both(low_a, low_b)), min(high, of_both(high_a, high_b))
        return low, high

    def size(self, form: Form) -> Number:
        """A bound on |form|."""
        low, high = self.range(form)
        return max(-low, high)

    def values_of_bend(self, bend: int, s: int) -> list[Number]:
        """A bend at the ends of its direction's range and at its breakpoints: its extremes are among them."""
        low, high = self.directions[s].low, self.directions[s].high
        self.count(len(self._bends[bend]))
        values: list[Number] = []
        slope = offset = 0  # at this point: slope·s + offset
        jumps = self._bends[bend]
        values.append(sum((jump * (low - t) for t, jump in jumps if t < low), start=0))
        for t, jump in jumps:
            if low <= t <= high:
                values.append(slope * t + offset)
            slope, offset = slope + jump, offset - jump * t
        values.append(sum((jump * (high - t) for t, jump in jumps if t < high), start=0))
        return values

    def bent(self, s: int, units: list[tuple[Number, Number, Number]]) -> Bent:
        """Σ c·ReLU(g·s + b) over units (c, g, b), g ≠ 0, on the range of s."""
        low, high = self.directions[s].low, self.directions[s].high
        self.count(2 * len(units))
        self.bent_units += len(units)
        if self.bent_units > self.allowed.units:
            raise NotProved(f"The program bends more often than the network has units for ({self.allowed.units:,}).")
        jumps: dict[Number, Number] = {}
        slope = constant = 0
        size = max(-low, high)
        for c, g, b in units:
            t, a = ratio(-b, g), c * abs(g)  # c·ReLU(g·(s − t)) = a·ReLU(±(s − t))
            self.largest = max(self.largest, abs(a) * size, abs(c * b))
            if g < 0:  # a·ReLU(t − s) = a·ReLU(s − t) − a·(s − t)
                slope, constant = slope - a, constant + a * t
            if t <= low:
                slope, constant = slope + a, constant - a * t
            elif t < high:
                jumps[t] = jumps.get(t, 0) + a
        return Bent(self.bend(jumps), exact(slope), exact(constant))

    def apply(self, s: int, bent: Bent) -> Form:
        form = self.as_form(s)
        bends = {s: bent.bend} if bent.bend != NO_BEND else {}
        return self.combine([(bent.slope, form), (1, Form({}, bends))], bent.constant)

    def relu(self, form: Form) -> Form:
        if form.is_constant:
            return Form({}, {}, max(form.constant, 0))
        key, factor = self.split(form)
        s = self.direction(key)
        return self.apply(s, self.bent(s, [(1, factor, form.constant)]))
