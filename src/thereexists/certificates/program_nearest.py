"""Weights are floats, a program's coefficients rationals: which quantity of the program is a form of a network *near*?

Two questions, two kinds of answer.

*Where to look* may be guessed: all quantities are evaluated at a few inputs, in float64, and those with nearly the same
numbers are candidates. A wrong guess proves nothing and costs nothing.

*How far apart* is proved: |a − b| ≤ range of the exact difference, over the whole box, after three identities that make
small things small, each with its own error:

    a·ReLU(s − t) = a·(s − t) + a·ReLU(t − s),   and ReLU(t − s) ≤ t − inf s:  a breakpoint at the very beginning;
    a·ReLU(s − t) ≤ a·(sup s − t):                                             a breakpoint at the very end;
    a bend whose values all lie in a short interval is the middle of that interval, up to half its length.

A rounded weight puts a unit that ought to stay open (or closed) on the whole range a hair away from that: relatively to
the range, or to numbers that the unit adds up, which may be far larger (``Terms.traces``). And terms that are nothing
but names (long means, bends that the identities make linear) are written out.
"""

from __future__ import annotations

import numpy as np

from thereexists.certificates.program_forms import NO_BEND, Form, Number, Soft, Terms, exact, ratio
from thereexists.certificates.program_numbers import above
from thereexists.functions.anywhere import anywhere

POINTS = 64  # at a few of them, many ramps and gates with neighbouring steps look alike
EDGE = exact(2.0**-36)  # of the span of a direction: nearer to an end is at the end
ALIKE = 1e-6  # of their size: how much values of candidates may differ
MOST_CANDIDATES = 1024  # with nearly the same values
TRIED = 4  # of these: those made of the same terms, with bends at nearly the same places, come first
UP = 1 + 2.0**-30
CLOSE = 2.0**-30  # forms that differ by more, relatively to their size, are different things
NOISE = exact(2.0**-40)  # what rounded weights may leave of a sum that ought to vanish, relatively to its parts


def flattened(terms: Terms, form: Form) -> tuple[Form, Number]:
    """A form of the same values up to the error, with as few bends and names as the identities above allow."""
    error: Number = 0
    for _ in range(8):  # names of names
        form, away, changed = _written_out(terms, form)
        error = error + away
        form, away, bent = _straightened(terms, form)
        error = error + away
        if not (changed or bent):
            break
    return form, exact(error)


def _written_out(terms: Terms, form: Form) -> tuple[Form, Number, bool]:
    found = {t: plain for t in form.linear if (plain := _plain(terms, t)) is not None}
    if not found:
        return form, 0, False
    rest = Form({t: c for t, c in form.linear.items() if t not in found}, form.bends, form.constant)
    parts = [(form.linear[t], plain) for t, (plain, _) in found.items()]
    away = sum((abs(form.linear[t]) * e for t, (_, e) in found.items()), start=0)
    return terms.combine([(1, rest), *parts]), away, True


def _plain(terms: Terms, term: int) -> tuple[Form, Number] | None:
    """What a term is without its name, if that is linear."""
    if term in terms.means:
        forms = terms.means[term]
        return terms.combine([(ratio(1, len(forms)), form) for form in forms]), 0
    if term not in terms.plain:
        made = terms.made.get(term)
        plain = None if made is None else _straightened(terms, made)
        terms.plain[term] = None if plain is None or plain[0].bends else plain[:2]
    return terms.plain[term]


def _straightened(terms: Terms, form: Form) -> tuple[Form, Number, bool]:
    parts: list[tuple[Number, Form]] = []
    error: Number = 0
    left: dict[int, int] = {}
    for s, bend in form.bends.items():
        ends = terms.directions[s]
        edge = EDGE * (ends.high - ends.low)
        slope: Number = 0
        offset: Number = 0
        kept: dict[Number, Number] = {}
        for t, jump in terms.jumps(bend):
            near = edge if terms.traces == 0 else max(edge, ratio(terms.traces, abs(jump)))
            if t <= ends.low + near:
                slope, offset = slope + jump, offset - jump * t
                error = error + abs(jump) * max(t - ends.low, 0)
            elif t >= ends.high - near:
                error = error + abs(jump) * max(ends.high - t, 0)
            else:
                kept[t] = jump
        rest = terms.bend(kept)
        if rest != NO_BEND:
            values = terms.values_of_bend(rest, s)
            low, high = min(values), max(values)
            steep = sum(abs(jump) for jump in kept.values())
            if high - low <= max(EDGE * steep * (ends.high - ends.low), terms.traces):
                offset, error = offset + ratio(exact(low + high), 2), error + ratio(exact(high - low), 2)
                rest = NO_BEND
        if rest != NO_BEND:
            left[s] = rest
        if slope != 0 or offset != 0:
            parts.append((1, terms.combine([(exact(slope), terms.as_form(s))], exact(offset))))
    if left == form.bends:
        return form, 0, False
    return terms.combine([(1, Form(form.linear, left, form.constant)), *parts]), exact(error), True


def distance(terms: Terms, a: Form, b: Form) -> float:
    """A bound on |a − b| over the box."""
    form, error = flattened(terms, terms.combine([(1, a), (-1, b)]))
    return above(exact(terms.size(form) + error)) * UP


class Nearest:
    """The quantities that the program has, before the network adds its own, by their values at a few inputs."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._names = list(terms.made)
        self._means, self._softs = list(terms.means), list(terms.softs)
        self.directions = len(terms.directions)
        self._rng = np.random.default_rng(7)
        self._term: list[np.ndarray] = []
        self._along: dict[int, np.ndarray] = {}
        self._corners: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._tables: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    # --- candidates --------------------------------------------------------------------------------------------------

    def names(self, form: Form) -> list[int]:
        found = self._like("names", self._names, self.value(form), float(self.terms.size(form)))
        return sorted(found, key=lambda term: self._unlike(form, self.terms.made[term]))[:TRIED]

    def means(self, forms: list[Form]) -> list[int]:
        value = np.mean([self.value(form) for form in forms], axis=0)
        return self._like("means", self._means, value, max(float(self.terms.size(form)) for form in forms))[:TRIED]

    def softs(self, soft: Soft) -> list[int]:
        """By their ingredients: two softmaxes of small logits have nearly the same values, whoever asks."""
        if "softs" not in self._tables:
            self._tables["softs"] = _table([self._ingredients(self.terms.softs[number]) for number in self._softs])
        self.terms.count(1 + (len(self._softs) >> 6))
        found = _search(*self._tables["softs"], self._ingredients(soft), ALIKE)
        return [self._softs[k] for k in found][:TRIED]

    def directions_like(self, form: Form) -> list[int]:
        """Directions of which the form may be a multiple, up to a constant."""
        if "directions" not in self._tables:
            values = [_turned(self._direction(s)) for s in range(self.directions)]
            self._tables["directions"] = _table(values)
        self.terms.count(1 + (self.directions >> 6))
        turned = _turned(self.value(form))
        found = {s for sign in (1, -1) for s in _search(*self._tables["directions"], sign * turned, ALIKE)}
        return sorted(found, key=lambda s: (self._unlike(form, self.terms.as_form(s)), s))[:TRIED]

    def _like(self, kind: str, numbers: list[int], value: np.ndarray, size: float) -> list[int]:
        if kind not in self._tables:
            self._tables[kind] = _table([self._of_term(number) for number in numbers])
        self.terms.count(1 + (len(numbers) >> 6))
        return [numbers[k] for k in _search(*self._tables[kind], value, ALIKE * size)]

    def _unlike(self, a: Form, b: Form) -> tuple[int, float]:
        """How many terms and directions only one of two forms has; then how far apart they bend."""
        pairs = [(self._bent(a.bends[s])[0], self._bent(b.bends[s])[0]) for s in a.bends.keys() & b.bends.keys()]
        apart = sum(float(np.abs(t[0] - u[0]) + np.abs(t[-1] - u[-1])) for t, u in pairs)
        return len(a.linear.keys() ^ b.linear.keys()) + len(a.bends.keys() ^ b.bends.keys()), apart

    def _bent(self, bend: int) -> tuple[np.ndarray, np.ndarray]:
        """The breakpoints of a bend and its jumps there."""
        if bend not in self._corners:
            jumps = self.terms.jumps(bend)
            self._corners[bend] = (np.array([float(t) for t, _ in jumps]), np.array([float(c) for _, c in jumps]))
        return self._corners[bend]

    # --- values ------------------------------------------------------------------------------------------------------

    def value(self, form: Form) -> np.ndarray:
        total = np.full(POINTS, float(form.constant))
        for term, c in form.linear.items():
            total += float(c) * self._of_term(term)
        for s, bend in form.bends.items():
            t, c = self._bent(bend)
            total += np.maximum(self._direction(s)[:, None] - t, 0.0) @ c
        return total

    def _direction(self, s: int) -> np.ndarray:
        if s not in self._along:
            self._along[s] = self.value(self.terms.as_form(s))
        return self._along[s]

    def _of_term(self, number: int) -> np.ndarray:
        terms = self.terms
        for k in range(len(self._term), number + 1):  # a term is made of earlier ones
            if k in terms.made:
                value = self.value(terms.made[k])
            elif k in terms.softs:
                value = self._soft(terms.softs[k])
            elif k in terms.means:
                value = np.mean([self.value(form) for form in terms.means[k]], axis=0)
            else:
                low, high = float(terms.low[k]), float(terms.high[k])
                value = anywhere(self._rng, low, high, POINTS)
            self._term.append(value)
        return self._term[number]

    def _soft(self, soft: Soft) -> np.ndarray:
        query = np.array([self.value(form) for form in soft.query])  # (m, points)
        keys = np.array([[self.value(form) for form in key] for key in soft.keys])  # (tokens, m, points)
        logits = (keys * query).sum(axis=1)
        weights = np.exp(logits - logits.max(axis=0))
        values = np.array([self.value(form) for form in soft.values])
        return (weights * values).sum(axis=0) / weights.sum(axis=0)

    def _ingredients(self, soft: Soft) -> np.ndarray:
        """A number for each point, made of query, keys and values in their order, each relatively to its largest."""
        parts = [soft.query, [form for key in soft.keys for form in key], soft.values]
        total = np.zeros(POINTS)
        for part, phase in zip(parts, (0.3, 1.1, 2.3), strict=True):
            values = np.array([self.value(form) for form in part])  # (forms, points)
            largest = float(np.abs(values).max(initial=0.0)) or 1.0
            total += np.cos(np.arange(1, len(part) + 1) * phase) @ (values / largest)
        return total


def _turned(values: np.ndarray) -> np.ndarray:
    """Up to a constant and a factor above 0."""
    values = values - values.mean()
    length = float(np.abs(values).max())
    return values / length if length > 0 else values


def _table(values: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sorted by the first point."""
    table = np.array(values).reshape(len(values), POINTS)
    order = np.argsort(table[:, 0], kind="stable")
    return order, table[order]


def _search(order: np.ndarray, table: np.ndarray, value: np.ndarray, within: float) -> list[int]:
    """Numbers of the entries that differ by at most ``within`` everywhere, nearest first."""
    first, last = np.searchsorted(table[:, 0], [value[0] - within, value[0] + within], side="left")
    off = np.abs(table[first : last + 1] - value).max(axis=1, initial=0.0)
    best = np.argsort(off, kind="stable")[:MOST_CANDIDATES]
    return [int(order[first + k]) for k in best if off[k] <= within]
