"""Splines and products made for an error, with what float64 makes of their values counted.

The values of a spline are float64 numbers: of a function as large as 1e14 they are off by 0.01, however close its knots
are. What is made here is off by at most ``epsilon`` if float64 can keep that, and else by little more than its values.
Whoever stated ``epsilon`` is refused then (``check_kept``); our own default gives way.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from thereexists.constructions.program import splines
from thereexists.constructions.program.given import within_float64
from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.primitives import products
from thereexists.constructions.program.ranges import value_range
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_up
from thereexists.functions.target import Array

DEFAULT = 1e-3
_ROOM = 1.25  # times what the values are off by: then a fifth of the error is left for the straight pieces
_BELOW = 1 - 2.0**-10  # what is left for the pieces, less what their lengths are rounded by


def own_error(node: Value) -> float:
    """How far an ``apply`` or a product may be from what it stands for: its pieces and its values."""
    ranges = [value_range(argument) for argument in node.arguments]
    if node.operation == "apply":
        return splines.own_error(node.settings, *ranges[0])
    return products.own_error(node, *ranges)


def check_kept(name: str, epsilon: float | None, node: Value) -> None:
    """Refuse a stated error that float64 values cannot keep."""
    own = own_error(node)
    if epsilon is not None and own > epsilon:
        raise InvalidInput(
            f"'{name}' cannot keep epsilon = {in_full(epsilon)} here: float64 rounds the values of its splines, and it "
            f"is off by up to {rounded_up(own, 3)}; choose a larger epsilon, or make the numbers smaller, by a factor "
            "or by taking a constant off."
        )


def spline(function: Callable[[Array], Array], x: Value, epsilon: float, curvature: float | None) -> Value:
    """``apply``, for a function of the table (without a curvature) or one with a stated curvature."""
    low, high = value_range(x)
    high = high if high > low else low + max(1.0, abs(low))  # a spline has two knots at least

    def made(own: float) -> Value:
        if curvature is None:
            knots, values, _ = splines.place(function, low, high, own)
            return Value("apply", (x,), x.n, x.d, {"function": function, "knots": knots, "values": values})
        knots, values, _ = splines.uniform(function, low, high, own, curvature)
        word = {"curvature": curvature, "source_sha256": splines.source_sha256(function)}
        return Value("apply", (x,), x.n, x.d, {"function": function, "knots": knots, "values": values} | word)

    if curvature is None:
        epsilon = max(epsilon, _ROOM * 2.0**-53 * splines.largest_at_ends(function, low, high))
    node = made(epsilon)
    if own_error(node) <= epsilon:
        return node
    off = (2.0**-52 if curvature is None else 2.0**-50) * float(np.abs(node.settings["values"]).max())
    return made((max(epsilon, _ROOM * off) - off) * _BELOW)


def product(a: Value, b: Value, epsilon: float) -> Value:
    """``multiply``."""
    (low_a, high_a), (low_b, high_b) = value_range(a), value_range(b)
    # a range that is (nearly) a point counts as a 64th of its size: the difference of squares is divided by 4t
    wide_a, wide_b = (max(h - l, 2.0**-6 * max(-l, h), 2.0**-30) for l, h in ((low_a, high_a), (low_b, high_b)))
    t = 2.0 ** round(math.log2(wide_b / wide_a))
    plus, minus = (t * low_a + low_b, t * high_a + high_b), (t * low_a - high_b, t * high_a - low_b)

    size = max(map(abs, (*plus, *minus)))

    def made(own: float) -> Value:
        h = _step(own, t)
        settings = {"plus": _multiples(h, *plus), "minus": _multiples(h, *minus), "balance": t}
        return Value("multiply", (a, b), a.n, a.d, settings)

    with within_float64():
        if _step(epsilon, t) < 2.0**-26 * size:  # knots of more than 26 bits: their squares are rounded
            epsilon = max(epsilon, _ROOM * _rounded(size, t))
        node = made(epsilon)
        if own_error(node) <= epsilon:
            return node
        off = _rounded(max(float(np.abs(node.settings[side]).max()) for side in ("plus", "minus")), t)
        return made((max(epsilon, _ROOM * off) - off) * _BELOW)


def _step(own: float, t: float) -> float:
    """The distance of the knots, a number of three bits: h²/(16t) is at most ``own``.

    Float64 tells the knots apart. If they have at most 26 bits, that is clear. Else ``own`` is at least a quarter of
    what squares as large as size² are off by, size²·2^-53/t, so h² is at least size²·2^-53.
    """
    widest = 4 * math.sqrt(own) * math.sqrt(t)  # their product may underflow
    h = 2.0 ** math.floor(math.log2(widest))
    return h * max(k for k in (1.0, 1.25, 1.5, 1.75) if k * h <= widest)


def _rounded(size: float, t: float) -> float:
    """What the float64 values of two splines of squares, up to size², make of a product (``products.own_error``)."""
    return size * size * 2.0**-53 / t


def _multiples(h: float, low: float, high: float) -> Array:
    first, last = math.floor(low / h - 2.0**-20), math.ceil(high / h + 2.0**-20)
    if last - first > splines.MOST_KNOTS:
        raise InvalidInput(f"'multiply' would need more than {splines.MOST_KNOTS:,} knots; choose a larger epsilon.")
    return h * np.arange(first, last + 1)
