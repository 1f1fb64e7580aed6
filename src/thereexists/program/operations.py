"""What a user writes: ``tokens``, arithmetic, and the functions below. Bad input is refused here, by operation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from thereexists.errors import InvalidInput
from thereexists.program.graph import Value, as_value, only_value, same_shape
from thereexists.target import Array

_MOST_KNOTS = 1 << 14


def tokens(n: int, d: int = 1, low: float = 0.0, high: float = 1.0) -> Value:
    """The input: n tokens of d features, each anywhere between ``low`` and ``high``."""
    for name, size in (("n", n), ("d", d)):
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise InvalidInput(f"'tokens' takes a whole number {name} of at least 1; got {size!r} instead.")
    if n > 1 << 15:
        raise InvalidInput(f"'tokens' takes at most {1 << 15:,} tokens (codes of 15 bits); got {n:,} instead.")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"'tokens' takes finite ends low < high; got {low} and {high} instead.")
    return Value("tokens", (), int(n), int(d), {"low": float(low), "high": float(high)})


def constant(array: Any, like: Value) -> Value:
    """A number, or an array (n,) or (n, d): the same for every input."""
    return as_value("constant", array, only_value("constant", like))


def mix(x: Value, matrix: Any) -> Value:
    """Every token's features times a matrix (features out, features in)."""
    x = only_value("mix", x)
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != x.d or not len(matrix) or not np.isfinite(matrix).all():
        raise InvalidInput(f"'mix' takes a finite matrix (out, {x.d}); got the shape {matrix.shape} instead.")
    return Value("mix", (x,), x.n, len(matrix), {"matrix": matrix})


def gather(x: Value, source: Any) -> Value:
    """Token i becomes token ``source[i]``."""
    x = only_value("gather", x)
    places = np.asarray(source)
    if places.shape != (x.n,) or not np.issubdtype(places.dtype, np.integer):
        raise InvalidInput(f"'gather' takes {x.n} whole numbers, one for each token; got {_shape(places)} instead.")
    outside = places[(places < 0) | (places >= x.n)]
    if len(outside):
        raise InvalidInput(f"'gather' takes positions from 0 to {x.n - 1}; got {outside[0]} instead.")
    return Value("gather", (x,), x.n, x.d, {"source": tuple(places.tolist())})


def shift(x: Value, by: Any = 1) -> Value:
    """Token i becomes token i − by, around the end."""
    x = only_value("shift", x)
    if isinstance(by, bool) or not isinstance(by, int | np.integer):
        raise InvalidInput(f"'shift' takes a whole number of places; got {by!r} instead.")
    return gather(x, (np.arange(x.n) - int(by)) % x.n)


def reverse(x: Value) -> Value:
    x = only_value("reverse", x)
    return gather(x, np.arange(x.n)[::-1])


def broadcast(x: Value, position: Any) -> Value:
    """Every token becomes the one at ``position``."""
    x = only_value("broadcast", x)
    if not isinstance(position, int | np.integer) or not 0 <= position < x.n:
        raise InvalidInput(f"'broadcast' takes a position from 0 to {x.n - 1}; got {position!r} instead.")
    return gather(x, np.full(x.n, int(position)))


def mean(x: Value) -> Value:
    """Every token becomes the mean of all."""
    x = only_value("mean", x)
    return Value("mean", (x,), x.n, x.d, {"scale": 1})


def total(x: Value) -> Value:
    """Every token becomes the sum of all."""
    x = only_value("total", x)
    return Value("mean", (x,), x.n, x.d, {"scale": x.n})


def relu(x: Value) -> Value:
    x = only_value("relu", x)
    return Value("relu", (x,), x.n, x.d)


def absolute(x: Value) -> Value:
    x = only_value("absolute", x)
    return Value("abs", (x,), x.n, x.d)


def maximum(a: Any, b: Any) -> Value:
    return _two("maximum", a, b)


def minimum(a: Any, b: Any) -> Value:
    return _two("minimum", a, b)


def _two(name: str, a: Any, b: Any) -> Value:
    like = only_value(name, a if isinstance(a, Value) else b)
    a, b = as_value(name, a, like), as_value(name, b, like)
    same_shape(name, a, b)
    return Value(name, (a, b), like.n, like.d)


def clip(x: Value, low: float, high: float) -> Value:
    x = only_value("clip", x)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise InvalidInput(f"'clip' takes finite ends low ≤ high; got {low} and {high} instead.")
    return Value("clip", (x,), x.n, x.d, {"low": float(low), "high": float(high)})


def sort(x: Value) -> Value:
    """Each feature in ascending order along the tokens."""
    x = only_value("sort", x)
    return Value("sort", (x,), x.n, x.d)


def largest(x: Value) -> Value:
    """Every token becomes the largest: a tournament of log2 n rounds."""
    return _tournament("largest", maximum, x)


def smallest(x: Value) -> Value:
    return _tournament("smallest", minimum, x)


def _tournament(name: str, better: Callable[[Value, Value], Value], x: Value) -> Value:
    x = only_value(name, x)
    for k in range((x.n - 1).bit_length()):  # after round k token i has the best of i, i+1, …, i+2^(k+1)−1
        x = better(x, shift(x, -(2**k)))
    return x


def apply(function: Callable[[Array], Array], x: Value, *, epsilon: float, curvature: float) -> Value:
    """Token-wise f, by a linear spline: off by at most h²·curvature/8 ≤ epsilon if |f''| ≤ ``curvature`` on the range.

    The bound on the second derivative is the caller's statement about f; everything else is computed.
    """
    from thereexists.program.compiler import value_range

    x = only_value("apply", x)
    if not (epsilon > 0 and math.isfinite(epsilon) and curvature >= 0 and math.isfinite(curvature)):
        raise InvalidInput(f"'apply' takes epsilon > 0 and curvature ≥ 0; got {epsilon} and {curvature} instead.")
    low, high = value_range(x)
    pieces = max(1, math.ceil((high - low) * math.sqrt(curvature / (8 * epsilon))))
    if pieces > _MOST_KNOTS:
        raise InvalidInput(f"'apply' would need {pieces:,} knots, more than {_MOST_KNOTS:,}; choose a larger epsilon.")
    knots = np.linspace(low, high, pieces + 1) if high > low else np.array([low, low + 1.0])
    values = np.asarray(function(knots), dtype=np.float64)
    if values.shape != knots.shape or not np.isfinite(values).all():
        raise InvalidInput("'apply' takes a function of arrays with finite values on the range; this one is not that.")
    settings = {"function": function, "knots": knots, "values": values}
    settings["own"] = float(np.diff(knots).max() ** 2 * curvature / 8 + np.abs(values).max() * 2.0**-50)
    settings["slope"] = float(np.abs(np.diff(values) / np.diff(knots)).max() * (1 + 2.0**-40))
    return Value("apply", (x,), x.n, x.d, settings)


def _shape(array: Array) -> str:
    return f"an array of the shape {array.shape} and kind {array.dtype}"
