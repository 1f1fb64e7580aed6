"""What a saved program can be on strings: every number that each of its features may take there, written out.

The input of a program over symbols is a whole number at every token, 0 … |Σ| − 1. So each feature of each operation has
finitely many values over all strings, all positions and all lengths. This file follows the saved operations one by one,
with a rule for each, in exact rationals, and keeps a finite set that *holds* all those values (it may hold more: what
two operations know of each other is forgotten). A value is

    at[j] + one of ``values``, up to ``off``                    at position j,

``at`` for what only depends on the position, ``off`` for what a softmax leaves. An operation without a rule, or a set
that grows too large, is *not proved*, and nothing else.

**Look-ups.** Σ_j softmax_j(⟨q_i, k_j⟩)·v_j. Let every logit of a row i be r_j + d_ij, where r_j depends on the position
j alone and all d_ij of the row differ by multiples of U. Two logits then differ by r_j − r_j' + (a multiple of U), by
at least the distance of r_j − r_j' from the multiples of U: at least the smallest gap, around the circle, of the
numbers r_j modulo U. Call it the lead. One token has the largest logit, every other weighs at most exp(−lead), and the
sum is within (n − 1)·exp(−lead)·(spread of v) of the value at that token; over fewer tokens (a mask, a shorter string)
all the more. An ``interp`` that is flat that far around each of its values then gives exactly the value there.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

from thereexists.certificates.program_numbers import Number, exact, linear_weights, ratio
from thereexists.core.errors import NotProved

MOST_VALUES = 1 << 12  # of one feature
MOST_PAIRS = 1 << 14  # sums of two sets that are written out one by one
MOST_WORK = 1 << 23  # values of all features of all operations


@dataclass(frozen=True)
class Held:
    """A feature over all strings: at position j it is ``at[j]`` plus one of ``values`` (ascending), up to ``off``."""

    values: tuple[Number, ...]
    at: tuple[Number, ...] | None = None
    off: Number = 0

    @property
    def flat(self) -> Held:
        """The same, whatever the position."""
        if self.at is None:
            return self
        return replace(added(Held(_set(self.at)), Held(self.values)), off=self.off)

    @property
    def only(self) -> Number | None:
        """The one number that it always is, if there is one."""
        return self.values[0] if self.at is None and len(self.values) == 1 and not self.off else None

    @property
    def ends(self) -> tuple[Number, Number]:
        """Of a flat one: what it never leaves."""
        return self.values[0] - self.off, self.values[-1] + self.off


@dataclass(frozen=True)
class Strings:
    """What the strings are: ``n`` tokens, or 1 to n if they may be ``shorter``, of so many ``symbols``."""

    n: int
    symbols: int
    shorter: bool


Features = list[Held]


def values_at_strings(program: dict[str, Any], symbols: int) -> Held:
    """What the output, one feature, may be on strings over this many symbols. Of a program whose form was checked."""
    last = every_value(program, symbols)[-1]
    if len(last) != 1:
        raise NotProved(f"A program over symbols gives one feature, a number; this one has {len(last)}.")
    return last[0].flat


def every_value(program: dict[str, Any], symbols: int) -> list[Features]:
    """What the features of every operation may be, in their order."""
    nodes = program["nodes"]
    shorter = any(node["operation"] == "tokens" and node["settings"]["shorter"] for node in nodes)
    strings = Strings(program["n"], symbols, shorter)
    found: list[Features] = []
    written = 0
    for node in nodes:
        name = node["operation"]
        if name not in RULES:
            raise NotProved(f"This verifier cannot prove which numbers '{name}' gives on strings.")
        try:
            features = RULES[name](strings, node["settings"], *(found[a] for a in node["arguments"]))
        except NotProved as error:
            raise NotProved(f"'{name}': {error}") from None
        written += sum(len(held.values) for held in features)
        if written > MOST_WORK:
            raise NotProved(f"Its features have more than {MOST_WORK:,} values in all.")
        found.append(list(features))  # its own list: ``_linear`` knows an operation by it
    return found


# ---- sets of numbers -------------------------------------------------------------------------------------------------


def _set(numbers: Iterable[Number]) -> tuple[Number, ...]:
    found = tuple(sorted({exact(number) for number in numbers}))
    if len(found) > MOST_VALUES:
        raise NotProved(f"A feature has more than {MOST_VALUES:,} values on strings.")
    return found


def common(numbers: Iterable[Number]) -> Number:
    """The largest number of which all are whole multiples; 0 if all are 0."""
    top, bottom = 0, 1
    for p, q in map(_parts, numbers):
        top, bottom = math.gcd(top * q, p * bottom), bottom * q
        shorter = math.gcd(top, bottom)
        top, bottom = top // shorter, bottom // shorter
    return ratio(top, bottom)


def _parts(number: Number) -> tuple[int, int]:
    return (number, 1) if isinstance(number, int) else (int(number.p), int(number.q))


def modulo(number: Number, step: Number) -> Number:
    """What is left above the last whole multiple of a positive step."""
    (p, q), (top, bottom) = _parts(number), _parts(step)
    return exact(number - (p * bottom) // (q * top) * step)


def apart(values: tuple[Number, ...]) -> Number:
    """What all differences of these numbers are multiples of."""
    return common(b - a for a, b in pairwise(values))


def _steps(low: Number, high: Number, step: Number) -> tuple[Number, ...]:
    """low, low + step, …, high."""
    count = 0 if step == 0 else ratio(high - low, step)
    if count >= MOST_VALUES:
        raise NotProved(f"A feature has more than {MOST_VALUES:,} values on strings.")
    return tuple(exact(low + k * step) for k in range(int(count) + 1))


def added(a: Held, b: Held) -> Held:
    """Every sum of the two; where these are many, the evenly spaced numbers that hold them."""
    if len(a.values) * len(b.values) <= MOST_PAIRS:
        values = _set(x + y for x, y in product(a.values, b.values))
    else:
        step = common((apart(a.values), apart(b.values)))
        values = _steps(a.values[0] + b.values[0], a.values[-1] + b.values[-1], step)
    ats = [held.at for held in (a, b) if held.at is not None]
    at = None if not ats else tuple(exact(sum(parts)) for parts in zip(*ats, strict=True))
    return Held(values, at, exact(a.off + b.off))


def times(c: Number, held: Held) -> Held:
    if c == 0:
        return Held((0,))
    at = None if held.at is None else tuple(exact(c * x) for x in held.at)
    return Held(_set(c * x for x in held.values), at, exact(abs(c) * held.off))


def mapped(function: Callable[[Number], Number], held: Held, off: Callable[[Number], Number] | None = None) -> Held:
    """A function of every value: 1-Lipschitz, or with ``off``: how far it moves within ``held.off`` of a value."""
    if held.at is not None and held.values == (0,) and not held.off:
        return Held((0,), tuple(exact(function(x)) for x in held.at))
    held = held.flat
    moved = max(map(off, held.values)) if off is not None and held.off else held.off
    return Held(_set(function(x) for x in held.values), None, moved)


def union(*helds: Held) -> Held:
    flat = [held.flat for held in helds]
    return Held(_set(x for held in flat for x in held.values), None, max(held.off for held in flat))


# ---- the rules -------------------------------------------------------------------------------------------------------


def _tokens(strings: Strings, settings: dict[str, Any]) -> Features:
    if settings["d"] != 1 or settings["low"] != 0 or settings["high"] != max(strings.symbols - 1, 1):
        raise NotProved(
            f"The input of a program over {strings.symbols} symbols must be one number, from 0 to the last."
        )
    return [Held(tuple(range(strings.symbols)))]


def _constant(strings: Strings, settings: dict[str, Any]) -> Features:
    return [_by_position(column) for column in zip(*settings["array"], strict=True)]


def _by_position(numbers: Iterable[Any]) -> Held:
    at = tuple(exact(number) for number in numbers)
    return Held((at[0],)) if len(set(at)) == 1 else Held((0,), at)


def _linear(strings: Strings, settings: dict[str, Any], *arguments: Features) -> Features:
    """An argument that stands there twice is one number: x − x is 0."""
    terms: list[tuple[Number, Features]] = []
    for c, features in zip(linear_weights(settings), arguments, strict=True):
        before = next((k for k, (_, other) in enumerate(terms) if other is features), None)
        if before is None:
            terms.append((c, features))
        else:
            terms[before] = exact(terms[before][0] + c), features
    coefficients = [c for c, _ in terms]
    return _each(lambda *parts: _sum(zip(coefficients, parts, strict=True)), *(features for _, features in terms))


def _mix(strings: Strings, settings: dict[str, Any], x: Features) -> Features:
    return [_sum((exact(c), part) for c, part in zip(row, x, strict=True)) for row in settings["matrix"]]


def _sum(parts: Iterable[tuple[Number, Held]]) -> Held:
    total = Held((0,))
    for c, held in parts:
        total = added(total, times(c, held)) if c else total
    return total


def _scale(strings: Strings, settings: dict[str, Any], x: Features) -> Features:
    columns = zip(*settings["factors"], strict=True)
    found = []
    for held, column in zip(x, columns, strict=True):
        factors = sorted({exact(c) for c in column})
        found.append(times(factors[0], held) if len(factors) == 1 else union(*(times(c, held) for c in factors)))
    return found


def _take(strings: Strings, settings: dict[str, Any], x: Features) -> Features:
    source = settings["source"]
    return [held if held.at is None else replace(held, at=tuple(held.at[j] for j in source)) for held in x]


def _among(strings: Strings, settings: dict[str, Any], x: Features) -> Features:
    """One of the tokens, whichever: sort, max, min."""
    return [held.flat for held in x]


def _mean(strings: Strings, settings: dict[str, Any], x: Features) -> Features:
    if strings.shorter:
        raise NotProved("a mean of more or fewer tokens.")
    factor = ratio(exact(settings["scale"]), strings.n)
    return [times(factor, _total(held.flat, (strings.n, strings.n))) for held in x]


def _all(strings: Strings, settings: dict[str, Any], x: Features) -> Features:
    return [_total(held.flat, (1 if strings.shorter else strings.n, strings.n)) for held in x]


def _total(held: Held, tokens: tuple[int, int]) -> Held:
    """The sum of so many tokens, from the first number to the last: k·v_0 plus multiples of the differences."""
    (least, most), (first, last) = tokens, (held.values[0], held.values[-1])
    step = common((apart(held.values), first if least < most else 0))
    low, high = min(least * first, most * first), max(least * last, most * last)
    return Held(_steps(low, high, step), None, exact(most * held.off))


def _interp(strings: Strings, settings: dict[str, Any], x: Features) -> Features:
    knots, values = ([exact(number) for number in settings[key]] for key in ("knots", "values"))

    def through(t: Number) -> Number:
        k = bisect_right(knots, t)
        if k in (0, len(knots)):
            return values[max(k - 1, 0)]
        return values[k - 1] + ratio((values[k] - values[k - 1]) * (t - knots[k - 1]), knots[k] - knots[k - 1])

    def one(held: Held) -> Held:
        def moved(t: Number) -> Number:
            inside = [k for k in knots if t - held.off < k < t + held.off]
            return max(abs(through(s) - through(t)) for s in (t - held.off, t + held.off, *inside))

        return mapped(through, held, moved)

    return _each(one, x)


def _where(strings: Strings, settings: dict[str, Any], g: Features, a: Features, b: Features) -> Features:
    """For g = 1 max(a, l) + max(b, l + R) − l − R: a, up to how far a falls below l and b rises above l + R."""
    bottom, top = exact(settings["bottom"]), exact(settings["bottom"]) + exact(settings["height"])

    def chosen(held: Held, other: Held) -> Held:
        missed = max(bottom - held.flat.ends[0], 0) + max(other.flat.ends[1] - top, 0)
        return replace(held, off=exact(held.off + missed))

    def one(flag: Held, first: Held, second: Held) -> Held:
        flag = flag.flat
        if flag.off or not set(flag.values) <= {0, 1}:
            raise NotProved("its flag is not 0 or 1 on strings, as far as is known.")
        found = [chosen(first, second) if g else chosen(second, first) for g in flag.values]
        return found[0] if len(found) == 1 else union(*found)

    return _each(one, g, a, b)


def _extreme(smaller: bool) -> Callable[..., Features]:
    """max(a, b) is a number of a or b, and not below the least of either."""

    def one(a: Held, b: Held) -> Held:
        a, b = a.flat, b.flat
        both = (*a.values, *b.values)
        if smaller:
            edge = min(a.values[-1], b.values[-1])
            return Held(_set(x for x in both if x <= edge), None, max(a.off, b.off))
        edge = max(a.values[0], b.values[0])
        return Held(_set(x for x in both if x >= edge), None, max(a.off, b.off))

    return lambda strings, settings, a, b: _each(one, a, b)


def _clip(strings: Strings, settings: dict[str, Any], x: Features) -> Features:
    low, high = exact(settings["low"]), exact(settings["high"])
    return _each(lambda held: mapped(lambda t: min(max(t, low), high), held), x)


def _ranks(strings: Strings, settings: dict[str, Any], x: Features) -> Features:
    """Of numbers that are equal or a margin apart every ramp of ``rank`` is 0 or 1: ranks are those of a sort."""
    margin = exact(settings["margin"])
    for held in x:
        held = held.flat
        if held.off or any(b - a < margin for a, b in pairwise(held.values)):
            raise NotProved("numbers on strings may be closer than its margin.")
    return [Held(tuple(range(strings.n))) for _ in x]


def _attend(strings: Strings, settings: dict[str, Any], q: Features, k: Features, v: Features) -> Features:
    """See the head of this file."""
    lead = _lead(strings.n, q, k)
    others = 0 if strings.n == 1 else (strings.n - 1) * exact(_exp_up(lead))
    found = []
    for held in v:
        held = held.flat
        low, high = held.ends
        found.append(Held(held.values, None, exact(held.off + others * (high - low))))
    return found


def _lead(n: int, q: Features, k: Features) -> Number:
    """By how much the largest logit of a row leads, at least."""
    r: list[Number] = [0] * n
    steps: list[Number] = []  # of the part of a logit that depends on the string
    for query, key in zip(q, k, strict=True):
        if query.off or key.off:
            raise NotProved("a query or a key is only known up to what a softmax leaves; put a step after that one.")
        c = query.only
        if c is not None and key.at is not None:
            r = [exact(before + c * x) for before, x in zip(r, key.at, strict=True)]
            key = Held(key.values)
        query, key = query.flat, key.flat
        steps.append(exact(common(query.values) * apart(key.values)))  # q·k_j − q·k_j' = q·(k_j − k_j')
    U = common(steps)
    around = sorted(r if U == 0 else [modulo(x, U) for x in r])
    gaps = [b - a for a, b in pairwise(around)]
    return min([*gaps, around[0] + U - around[-1]] if U else gaps, default=1)


def _exp_up(lead: Number) -> float:
    """A number not below exp(−lead)."""
    return math.exp(-float(min(lead, 700)) * (1 - 2.0**-50)) * (1 + 2.0**-40)


def _each(one: Callable[..., Held], *arguments: Features) -> Features:
    """A rule for every feature; features that are alike (one-hot ones are) are looked at once."""
    known: dict[tuple[Held, ...], Held] = {}
    found = []
    for parts in zip(*arguments, strict=True):
        if parts not in known:
            known[parts] = one(*parts)
        found.append(known[parts])
    return found


RULES: dict[str, Callable[..., Features]] = {
    "tokens": _tokens,
    "constant": _constant,
    "linear": _linear,
    "mix": _mix,
    "scale": _scale,
    "take": _take,
    "sort": _among,
    "max": _among,
    "min": _among,
    "mean": _mean,
    "sum": _all,
    "relu": lambda strings, settings, x: _each(lambda held: mapped(lambda t: max(t, 0), held), x),
    "abs": lambda strings, settings, x: _each(lambda held: mapped(abs, held), x),
    "maximum": _extreme(smaller=False),
    "minimum": _extreme(smaller=True),
    "clip": _clip,
    "interp": _interp,
    "where": _where,
    "rank": _ranks,
    "argsort": _ranks,
    "attend": _attend,
}
