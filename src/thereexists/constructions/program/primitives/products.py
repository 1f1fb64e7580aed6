"""Products on a range: a·b = ((t·a + b)² − (t·a − b)²)/(4t), both squares by splines.

A linear spline through the squares at the multiples of h is above the square by at most h²/4 (h²·2/8) and never below.
So the difference of two such splines is off by at most h²/4, and the product by own = h²/(16t). t is a power of two
that makes t·a about as wide as b. Two feed-forward outputs, one half block; the sum over both is free.

That is so between the knots. A spline is constant outside, so a number y that is o beyond the last knot k misses
|y² − k²| ≤ o·(2|k| + o) more. The knots of ``multiply`` leave nothing outside; those of a file may.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.lowering import Atoms, Form
from thereexists.constructions.program.primitives.base import Ends, Primitive, Ranges
from thereexists.constructions.program.primitives.hinges import through
from thereexists.functions.target import Array


def _multiply(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    s, t = node.settings, node.settings["balance"]
    out = []
    for a, b in zip(*arguments, strict=True):
        plus = through(atoms, a * t + b, s["plus"], s["plus"] ** 2, "multiply")
        minus = through(atoms, a * t - b, s["minus"], s["minus"] ** 2, "multiply")
        out.append((plus - minus) * (Fraction(1, 4) / Fraction(t)))
    return out


def _carry(node: Value, errors: list[float], ranges: Ranges) -> float:
    """|a'b' − ab| ≤ |b'|·e_a + |a|·e_b, and the product's own error. (Ranges are those of a and a' alike.)"""
    e_a, e_b = errors
    a, b = (ranges(argument) for argument in node.arguments)
    size_a, size_b = (max(map(abs, ends)) for ends in (a, b))
    return (size_b * e_a + size_a * e_b + own_error(node, a, b)) * (1 + 2.0**-50)


def own_error(node: Value, a: Ends, b: Ends) -> float:
    """How far the product may be from a·b, for factors in these ranges."""
    s, t = node.settings, node.settings["balance"]
    plus = _square_error(s["plus"], t * a[0] + b[0], t * a[1] + b[1])
    minus = _square_error(s["minus"], t * a[0] - b[1], t * a[1] - b[0])
    chord, off, outside = (max(pair) for pair in zip(plus, minus, strict=True))
    return (chord + 2 * (off + outside)) / (4 * t)


def _square_error(knots: Array, low: float, high: float) -> tuple[float, float, float]:
    """Of the spline of one square: its chords, its float64 values (of 26 bits at most: exact), what lies outside."""
    chord, size = float(np.diff(knots).max()) ** 2 / 4, float(np.abs(knots).max())
    short = bool((np.frexp(knots)[0] * 2.0**26 % 1 == 0).all())
    below, above = max(float(knots[0]) - low, 0.0), max(high - float(knots[-1]), 0.0)
    outside = max(o * (2 * abs(float(k)) + o) for o, k in ((below, knots[0]), (above, knots[-1])))
    return chord, 0.0 if short else size * size * 2.0**-52, outside * (1 + 2.0**-40)


def product_range(node: Value, a: Ends, b: Ends) -> Ends:
    """Where a product stays, in the program and in the network."""
    corners = [x * y for x in a for y in b]
    slack = own_error(node, a, b) + 2.0**-50 * max(map(abs, corners))
    return min(corners) - slack, max(corners) + slack


def square_range(node: Value, a: Ends) -> Ends:
    """Where a·a stays: chords of a square are never below it, and its values at the knots never below 0.

    One of the two splines has the argument (t − 1)·a, which is 0 for t = 1; and that of 0 is 0 if 0 is a knot.
    """
    if node.settings["balance"] != 1 or 0.0 not in node.settings["minus"]:
        return -math.inf, math.inf
    return 0.0, product_range(node, a, a)[1]


TABLE = {"multiply": Primitive(lambda a, b, **_: a * b, _multiply, _carry)}
