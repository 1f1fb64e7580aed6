"""What a saved program computes on strings, as tables (``finite.py``): a rule for every causal operation.

Rules are those of ``symbol_values.py``, with everything that the parts of a program know of each other kept. A softmax
is read as the token with the largest logit. That is the program: ``prove_symbols`` follows how far a softmax is from
that token, and holds only if nothing of it is left at the end. So at every string both give the same symbol.

**Look-ups.** The logit of token j is r_j + d, r_j a number of its position and d one of query and key. Let the largest
d of a query be larger than all its others by more than all r_j differ. Then the keys with the largest d *hit*: a token
that hits comes before every other, and among those that hit r_j decides, which must rise with j (the last one is found)
or fall (the first one). If no token hits, the others decide; ``cells.py`` wants that not to matter.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np

from thereexists.certificates.llama.finite import MOST_FOUND, Found, Space, Table, constant, joined, mapped, pruned
from thereexists.certificates.program_numbers import Number, exact, linear_weights, ratio
from thereexists.core.errors import NotProved
from thereexists.functions.target import Array

Features = list[Table]
Settings = dict[str, Any]


def tables_of(program: dict[str, Any], symbols: int) -> tuple[Space, list[Features]]:
    """Every operation of a program that ``prove_symbols`` holds for (the last is the output), or ``NotProved`` with the
    operation that is none of a causal network's."""
    space = Space.of(program["n"], symbols)
    found: list[Features] = []
    for node in program["nodes"]:
        name, settings = node["operation"], node["settings"]
        if name not in RULES:
            raise NotProved(_refused(name, settings))
        found.append(RULES[name](space, settings, *(found[a] for a in node["arguments"])))
        space.write(sum(table.codes.size + len(table.values) for table in found[-1]))
    return space, found


def _refused(name: str, settings: Settings) -> str:
    if name in ("mean", "sum", "max", "min", "sort", "rank", "argsort", "soft_largest"):
        name = "sum" if name == "mean" and settings["scale"] != 1 else name
        return f"'{name}' is taken over all tokens of a string, and a causal network has not seen the later ones."
    return f"'{name}' has no certain numbers on strings that gates could make."


def _made(space: Space, called: str, function: Callable[..., Number], *tables: Table) -> Table:
    return mapped(function, joined(space.fitting(list(tables), called)))


def _each(called: str, function: Callable[..., Number]) -> Callable[..., Features]:
    """A function of one feature of every argument."""

    def rule(space: Space, settings: Settings, *arguments: Features) -> Features:
        return [_made(space, called, function, *parts) for parts in zip(*arguments, strict=True)]

    return rule


def _tokens(space: Space, settings: Settings) -> Features:
    size = space.symbol.size
    return [pruned(Table((space.symbol,), np.arange(size), tuple(range(size))))]


def _by_position(space: Space, numbers: Any) -> Table:
    values = tuple(exact(number) for number in numbers)
    return mapped(lambda x: x, joined([Table((space.position,), np.arange(space.n), values)]))


def _constant(space: Space, settings: Settings) -> Features:
    return [_by_position(space, column) for column in zip(*settings["array"], strict=True)]


def _sum(space: Space, called: str, coefficients: Any, tables: Any) -> Table:
    total = constant(0)
    for c, table in zip(map(exact, coefficients), tables, strict=True):
        if c != 0:
            total = _made(space, called, lambda s, x, c=c: exact(s + c * x), total, table)
    return total


def _linear(space: Space, settings: Settings, *arguments: Features) -> Features:
    return [_sum(space, "linear", linear_weights(settings), parts) for parts in zip(*arguments, strict=True)]


def _mix(space: Space, settings: Settings, x: Features) -> Features:
    return [_sum(space, "mix", row, x) for row in settings["matrix"]]


def _scale(space: Space, settings: Settings, x: Features) -> Features:
    factors = [_by_position(space, column) for column in zip(*settings["factors"], strict=True)]
    return [_made(space, "scale", lambda s, t: exact(s * t), *both) for both in zip(factors, x, strict=True)]


def _take(space: Space, settings: Settings, x: Features) -> Features:
    places = np.array(settings["source"])
    return [space.taken(table, places, settings["called"]) for table in x]


def _clip(space: Space, settings: Settings, x: Features) -> Features:
    low, high = exact(settings["low"]), exact(settings["high"])
    return _each("clip", lambda t: min(max(t, low), high))(space, settings, x)


def _interp(space: Space, settings: Settings, x: Features) -> Features:
    knots, values = ([exact(number) for number in settings[key]] for key in ("knots", "values"))

    def through(t: Number) -> Number:
        k = bisect_right(knots, t)
        if k in (0, len(knots)):
            return values[max(k - 1, 0)]
        rise, run = values[k] - values[k - 1], knots[k] - knots[k - 1]
        return exact(values[k - 1] + ratio(rise * (t - knots[k - 1]), run))

    return _each("interp", through)(space, settings, x)


def _where(space: Space, settings: Settings, g: Features, a: Features, b: Features) -> Features:
    def chosen(flag: Number, first: Number, second: Number) -> Number:
        if flag not in (0, 1):
            raise NotProved("the flag of 'where' is not 0 or 1 on strings, as far as is known.")
        return first if flag else second

    made = _each("where", chosen)(space, settings, g, a, b)
    return [
        space.cut(table) if table.looks_up else table for table in made
    ]  # the end of a look-up: an atom from now on


def _attend(space: Space, settings: Settings, q: Features, k: Features, v: Features) -> Features:
    """See the head of this file."""
    called = settings["called"]
    if not settings["causal"]:
        raise NotProved(f"'{called}' looks at all tokens of a string; with causal=True it looks at those up to here.")
    q, k, v = ([space.cut(table) if table.looks_up else table for table in part] for part in (q, k, v))
    order, found = None, None
    for f in range(len(q)):  # one feature gives the r_j, the others d
        if not q[f].atoms and k[f].atoms in ((), (space.position,)):
            order = order or f"'{called}' takes neither the last nor the first of the tokens with one key."
            at = np.broadcast_to(k[f].codes, space.n).tolist()
            r = [exact(q[f].values[0] * k[f].values[code]) for code in at]
            rises, falls = (all(sign * (b - a) > 0 for a, b in pairwise(r)) for sign in (1, -1))
            if not rises and not falls:
                continue
            others = [g for g in range(len(q)) if g != f]
            query = joined(space.fitting([q[g] for g in others], called, MOST_FOUND))
            key = joined(space.fitting([*(k[g] for g in others), *v], called, MOST_FOUND))
            hits = _hits(space, query, key, max(r) - min(r))
            if hits is not None:
                found = query, key, hits, rises
                break
            order = f"'{called}' weighs positions against keys; a position may only decide among equal ones."
    if found is None:
        raise NotProved(order or f"'{called}' takes a mean of tokens with equal keys.")
    query, key, hits, last = found
    possible = np.logical_or.accumulate(key.reached(space.n), axis=0)
    atom = Found(possible, query, key, hits, last, called)
    each = [tuple(parts[len(q) - 1 + f] for parts in key.values) for f in range(len(v))]
    return [mapped(lambda x: x, joined([Table((atom,), np.arange(len(one)), one)])) for one in each]


def _hits(space: Space, query: Table, key: Table, spread: Number) -> Array | None:
    """(queries, keys): which keys have the largest d; None if another one may be ahead of them by its position."""
    pairs = len(query.values) * len(key.values)
    if pairs > MOST_FOUND:
        raise NotProved(f"a look-up has {len(query.values):,} queries and {len(key.values):,} keys, too many.")
    space.write(pairs)
    features = len(query.values[0])
    (asks, p), (answers, q) = _whole(query.values), _whole([parts[:features] for parts in key.values])
    d, spread = asks @ answers.T, spread * p * q
    top = d.max(axis=1, keepdims=True)
    others = np.where(d == top, d.min(), d).max(axis=1)
    close = (d != top).any(axis=1) & np.array([gap <= spread for gap in (top[:, 0] - others).tolist()])
    return None if close.any() else d == top


def _whole(numbers: Any) -> tuple[Array, int]:
    """Tuples of numbers as rows of whole ones, and what all were multiplied by; int64 where no product of two and no
    sum of products leaves it, else Python's own."""
    scale = lcm(*(int(x.q) for parts in numbers for x in parts if not isinstance(x, int)))
    rows = [[int(exact(x * scale)) for x in parts] for parts in numbers]
    largest = max((abs(x) for row in rows for x in row), default=0)
    small = largest**2 * max(len(rows[0]), 1) < 1 << 62
    return np.array(rows, dtype=np.int64 if small and largest < 1 << 30 else object).reshape(len(rows), -1), scale


RULES: dict[str, Callable[..., Features]] = {
    "tokens": _tokens,
    "constant": _constant,
    "linear": _linear,
    "mix": _mix,
    "scale": _scale,
    "take": _take,
    "relu": _each("relu", lambda t: max(t, 0)),
    "abs": _each("abs", lambda t: max(t, -t)),
    "maximum": _each("maximum", max),
    "minimum": _each("minimum", min),
    "clip": _clip,
    "interp": _interp,
    "where": _where,
    "attend": _attend,
}
