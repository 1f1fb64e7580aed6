"""Where a value stays, and how far the network's version of it may be from the program's, in real arithmetic.

Both are kept with the values, so that a program that is written step by step is not lowered again at every step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from thereexists.constructions.program import splines
from thereexists.constructions.program.given import within_float64
from thereexists.constructions.program.graph import Notes, Value, are_the_same, nodes
from thereexists.constructions.program.lowering import Atoms, Form
from thereexists.constructions.program.primitives import PRIMITIVES
from thereexists.constructions.program.primitives.products import product_range, square_range

_Memo = tuple[Atoms, Notes[list[Form]]]
_memos: Notes[_Memo] = Notes()  # of every 'tokens'
_ranges: Notes[tuple[float, float]] = Notes()
_errors: Notes[float] = Notes()


_AMONG = {"take", "prefix_mean", "sort", "max", "min", "soft_largest"}


def value_range(value: Value) -> tuple[float, float]:
    """An interval that the value stays in, in the program and in the network."""
    for node in nodes(value):
        if node not in _ranges:
            with within_float64():
                _ranges[node] = _range(node)
    return _ranges[value]


def _range(value: Value) -> tuple[float, float]:
    source = next((node for node in nodes(value) if node.operation == "tokens"), None)
    fresh: _Memo = (Atoms(value.n, free=True), Notes())
    atoms, known = fresh if source is None else _memos.setdefault(source, fresh)
    for node in nodes(value):
        if node not in known:
            known[node] = PRIMITIVES[node.operation].lower(atoms, node, [known[a] for a in node.arguments])
    ranges = [atoms.range(form) for form in known[value]]
    low, high = float(min(low.min() for low, _ in ranges)), float(max(high.max() for _, high in ranges))
    if value.operation == "constant" or all(atoms.is_snapped(form) for form in known[value]):
        return low, high
    slack = approximation(value) + 2.0**-40 * max(abs(low), abs(high))  # the latter for our own float64 sums
    low, high = low - slack, high + slack
    for least, most in _exactly(value):
        low, high = max(low, least), min(high, most)
    return low, high


def _exactly(value: Value) -> Iterator[tuple[float, float]]:
    """Intervals that need no slack: what an operation says of itself, or those of its argument."""
    ranges = [_ranges[argument] for argument in value.arguments]
    if value.operation == "linear":
        yield _sum([c / value.settings.get("divisor", 1.0) for c in value.settings["coefficients"]], ranges)
    if value.operation == "apply":
        yield splines.image(value.settings, *ranges[0])
    if value.operation == "interp":
        yield float(value.settings["values"].min()), float(value.settings["values"].max())
    if value.operation == "multiply":
        yield product_range(value, *ranges)
        if are_the_same(*value.arguments):
            yield square_range(value, ranges[0])
    if value.operation == "attend":
        yield ranges[2]
    if value.operation == "clip":
        yield value.settings["low"], value.settings["high"]
    if value.operation in ("relu", "abs"):
        yield 0.0, math.inf
    if value.operation in _AMONG or (value.operation == "mean" and value.settings["scale"] == 1):
        yield ranges[0]
    if value.operation in ("maximum", "minimum"):
        larger = max if value.operation == "maximum" else min
        (low_a, high_a), (low_b, high_b) = ranges
        yield larger(low_a, low_b), larger(high_a, high_b)


def _sum(coefficients: list[float], ranges: list[tuple[float, float]]) -> tuple[float, float]:
    ends = [sorted((c * low, c * high)) for c, (low, high) in zip(coefficients, ranges, strict=True)]
    low, high = sum(end[0] for end in ends), sum(end[1] for end in ends)
    slack = 2.0**-48 * sum(max(-end[0], end[1]) for end in ends)
    return low - slack, high + slack


def approximation(program: Value) -> float:
    """What the operations leave by themselves (splines, soft maxima), carried through Lipschitz constants."""
    for node in nodes(program):
        if node not in _errors:
            errors = [_errors[a] for a in node.arguments]
            _errors[node] = float(PRIMITIVES[node.operation].carry(node, errors, value_range))
    return _errors[program]
