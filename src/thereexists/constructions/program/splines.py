"""Knots for token-wise functions, and a bound on what the straight pieces miss: |f − chord| ≤ h²·max|f''|/8.

For the functions of the table below the bound is *derived*: on every piece f'' is enclosed by Arb (python-flint), so no
statement of the caller is believed. Knots are placed by curvature: pieces are as long as the enclosure allows. Where
f'' is not bounded (a square root at 0) a piece may use that a monotone f and its chord both lie between the two ends.
For any other function the caller states a bound on |f''|, and the knots are equally spaced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Array

MOST_KNOTS = 1 << 14


@dataclass(frozen=True)
class Known:
    """f and f'' over Arb balls; both are nan where the ball leaves the domain."""

    name: str
    f: Callable[[Any], Any]
    second: Callable[[Any], Any]
    monotone: bool = False  # on every piece of its domain


def _sigmoid(X: Array) -> Array:
    return 1 / (1 + np.exp(-X))


def reciprocal(X: Array) -> Array:
    return 1 / X


def rsqrt(X: Array) -> Array:
    """1/√x."""
    return 1 / np.sqrt(X)


def _hyperbolic(x: Any) -> Any:
    return -2 * x.tanh() * (1 - x.tanh() ** 2)


def _logistic_second(x: Any) -> Any:
    s = 1 / (1 + (-x).exp())
    return s * (1 - s) * (1 - 2 * s)


KNOWN: dict[Callable[..., Any], Known] = {
    np.sin: Known("sin", lambda x: x.sin(), lambda x: -x.sin()),
    np.cos: Known("cos", lambda x: x.cos(), lambda x: -x.cos()),
    np.exp: Known("exp", lambda x: x.exp(), lambda x: x.exp(), True),
    np.log: Known("log", lambda x: x.log(), lambda x: -1 / x**2, True),
    np.sqrt: Known("sqrt", lambda x: x.sqrt(), lambda x: -1 / (4 * x * x.sqrt()), True),
    np.square: Known("square", lambda x: x**2, lambda x: 0 * x + 2),
    np.tanh: Known("tanh", lambda x: x.tanh(), _hyperbolic, True),
    np.arctan: Known("arctan", lambda x: x.atan(), lambda x: -2 * x / (1 + x**2) ** 2, True),
    np.log1p: Known("log1p", lambda x: (1 + x).log(), lambda x: -1 / (1 + x) ** 2, True),
    _sigmoid: Known("sigmoid", lambda x: 1 / (1 + (-x).exp()), _logistic_second, True),
    reciprocal: Known("reciprocal", lambda x: 1 / x, lambda x: 2 / x**3),
    rsqrt: Known("rsqrt", lambda x: 1 / x.sqrt(), lambda x: 3 / (4 * x**2 * x.sqrt()), True),
}
sigmoid = _sigmoid


def place(function: Callable[..., Any], low: float, high: float, epsilon: float) -> tuple[Array, Array, float]:
    """Knots and values of a function of the table on [low, high], and a proven bound ≤ epsilon on what they miss."""
    known = KNOWN[function]
    knots, own, step = [low], 0.0, high - low
    while knots[-1] < high:
        if len(knots) > MOST_KNOTS:
            raise InvalidInput(f"'apply' would need more than {MOST_KNOTS:,} knots; choose a larger epsilon.")
        start = knots[-1]
        least = max(abs(start), abs(high)) * 2.0**-45
        while True:
            end = high if start + 1.001 * step >= high else start + step
            missed = _missed(known, start, end)
            if missed <= epsilon:
                break
            step = 0.9 * min(step * math.sqrt(epsilon / missed) if math.isfinite(missed) else step / 2, step)
            if step < least:
                raise InvalidInput(
                    f"'apply' cannot bound {known.name} near {start:.6g} by {epsilon}: it must be smooth from "
                    f"{low:.6g} to {high:.6g}, the range of its argument; clip that first, or choose a larger epsilon."
                )
        knots.append(end)
        own, step = max(own, missed), 1.5 * step
    grid = np.array(knots)
    return grid, _values(known, grid), own


def _missed(known: Known, low: float, high: float) -> float:
    from flint import arb

    h = arb(high) - arb(low)
    by_bend = _above(h * h * abs(known.second(arb(low).union(arb(high)))) / 8)
    return min(by_bend, _above(known.f(arb(high)) - known.f(arb(low)))) if known.monotone else by_bend


def _above(ball: Any) -> float:
    """A float64 that is certainly not below the ball; infinity if it is not finite."""
    if not ball.is_finite():
        return math.inf
    return math.nextafter(float(ball.abs_upper()) * (1 + 2.0**-50), math.inf)


def _values(known: Known, knots: Array) -> Array:
    from flint import arb

    values = [known.f(arb(t)) for t in knots.tolist()]
    if not all(v.is_finite() for v in values):
        raise InvalidInput(f"'apply' takes a function with finite values on the range; {known.name} is not that.")
    return np.array([float(v.mid()) for v in values])


def uniform(
    function: Callable[..., Any], low: float, high: float, epsilon: float, curvature: float
) -> tuple[Array, Array, float]:
    """Equal pieces for any other function, on the caller's word that |f''| ≤ curvature."""
    pieces = max(1, math.ceil((high - low) * math.sqrt(curvature / (8 * epsilon))))
    if pieces > MOST_KNOTS:
        raise InvalidInput(f"'apply' would need {pieces:,} knots, more than {MOST_KNOTS:,}; choose a larger epsilon.")
    knots = np.linspace(low, high, pieces + 1)
    values = np.asarray(function(knots), dtype=np.float64)
    if values.shape != knots.shape or not np.isfinite(values).all():
        raise InvalidInput("'apply' takes a function of arrays with finite values on the range; this one is not that.")
    return knots, values, float(np.diff(knots).max() ** 2 * curvature / 8)
