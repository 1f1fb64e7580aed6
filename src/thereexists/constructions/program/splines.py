"""Knots for token-wise functions, and a bound on what the straight pieces miss: |f − chord| ≤ h²·max|f''|/8.

For the functions of the table below the bound is *derived*: on every piece f'' is enclosed by Arb (python-flint), so no
statement of the caller is believed. Knots are placed by curvature: pieces are as long as the enclosure allows. Where
f'' is not bounded (a square root at 0) a piece may use that a monotone f and its chord both lie between the two ends.
For any other function the caller states a bound on |f''|, and the knots are equally spaced.

How far a spline is from its function is worked out from knots, values and the function (or the stated curvature)
whenever it is asked for (``own_error``), of a spline that was just placed and of one that a file holds alike.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.constructions.program.given import real_array
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import from_to
from thereexists.functions.target import Array

MOST_KNOTS = 1 << 14


@dataclass(frozen=True)
class Known:
    """f and f'' over Arb balls; both are nan where the ball leaves the domain."""

    name: str
    f: Callable[[Any], Any]
    second: Callable[[Any], Any]
    monotone: bool = False  # on every piece of its domain
    image: tuple[float, float] = (-math.inf, math.inf)  # what no value of it leaves


def _sigmoid(X: Array) -> Array:
    """1/(1 + exp(−x)).

        P.apply(P.sigmoid, P.tokens(n=4))

    Args:
        X: an array.

    Returns:
        An array of the same shape.
    """
    return 1 / (1 + np.exp(-X))


def reciprocal(X: Array) -> Array:
    """1/x.

        P.apply(P.reciprocal, P.tokens(n=4) + 1.0)

    Args:
        X: an array; away from 0, where it is divided by.

    Returns:
        An array of the same shape.
    """
    return 1 / X


def rsqrt(X: Array) -> Array:
    """1/√x.

        P.apply(P.rsqrt, P.tokens(n=4) + 1.0)

    Args:
        X: an array; away from 0, where it is divided by.

    Returns:
        An array of the same shape.
    """
    return 1 / np.sqrt(X)


def _hyperbolic(x: Any) -> Any:
    return -2 * x.tanh() * (1 - x.tanh() ** 2)


def _logistic_second(x: Any) -> Any:
    s = 1 / (1 + (-x).exp())
    return s * (1 - s) * (1 - 2 * s)


_POSITIVE = (0.0, math.inf)
KNOWN: dict[Callable[..., Any], Known] = {
    np.sin: Known("sin", lambda x: x.sin(), lambda x: -x.sin(), image=(-1.0, 1.0)),
    np.cos: Known("cos", lambda x: x.cos(), lambda x: -x.cos(), image=(-1.0, 1.0)),
    np.exp: Known("exp", lambda x: x.exp(), lambda x: x.exp(), True, _POSITIVE),
    np.log: Known("log", lambda x: x.log(), lambda x: -1 / x**2, True),
    np.sqrt: Known("sqrt", lambda x: x.sqrt(), lambda x: -1 / (4 * x * x.sqrt()), True, _POSITIVE),
    np.square: Known("square", lambda x: x**2, lambda x: 0 * x + 2, image=_POSITIVE),
    np.tanh: Known("tanh", lambda x: x.tanh(), _hyperbolic, True, (-1.0, 1.0)),
    np.arctan: Known("arctan", lambda x: x.atan(), lambda x: -2 * x / (1 + x**2) ** 2, True),
    np.log1p: Known("log1p", lambda x: (1 + x).log(), lambda x: -1 / (1 + x) ** 2, True),
    _sigmoid: Known("sigmoid", lambda x: 1 / (1 + (-x).exp()), _logistic_second, True, (0.0, 1.0)),
    reciprocal: Known("reciprocal", lambda x: 1 / x, lambda x: 2 / x**3),
    rsqrt: Known("rsqrt", lambda x: 1 / x.sqrt(), lambda x: 3 / (4 * x**2 * x.sqrt()), True, _POSITIVE),
}
sigmoid = _sigmoid


@dataclass(frozen=True)
class Power:
    """x^k, k a whole number from 3 on; x² is np.square."""

    k: int

    @property
    def __name__(self) -> str:
        return f"power{self.k}"

    def __call__(self, X: Any) -> Any:
        return X**self.k


def _power(k: int) -> Known:
    from thereexists.arithmetic.powers import whole_power

    second = lambda x: k * (k - 1) * whole_power(x, k - 2)  # noqa: E731
    return Known(f"power{k}", lambda x: whole_power(x, k), second, k % 2 == 1, (-math.inf if k % 2 else 0.0, math.inf))


MOST_POWER = 8
POWERS = {2: np.square} | {k: Power(k) for k in range(3, MOST_POWER + 1)}
KNOWN |= {POWERS[k]: _power(k) for k in range(3, MOST_POWER + 1)}


@dataclass(frozen=True, eq=False)
class Remembered:
    """What a file knows of a user's own function: its spline. The function itself is not there."""

    knots: Array
    values: Array

    def __call__(self, X: Any) -> Array:
        return np.interp(np.asarray(X, dtype=np.float64), self.knots, self.values)


def known_as(function: Callable[..., Any]) -> Known | None:
    """The entry of a function of the table; None of one of the user's own."""
    return next((known for other, known in KNOWN.items() if other is function), None)


def source_sha256(function: Callable[..., Any]) -> str:
    """Which function of the user's own it is; of one without a source, by its name."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = repr(getattr(function, "__name__", ""))
    return hashlib.sha256(source.encode()).hexdigest()


def steepest(knots: Array, values: Array) -> float:
    return float(np.abs(np.diff(values) / np.diff(knots)).max() * (1 + 2.0**-40))


def image(settings: dict[str, Any], low: float, high: float) -> tuple[float, float]:
    """Where an ``apply`` of [low, high] stays: its spline between the values, its function within ``own_error`` of that

    (the values at the knots are f itself there), or in what no value of that function leaves.
    """
    values, known = settings["values"], known_as(settings["function"])
    off, least, most = own_error(settings, low, high), float(values.min()), float(values.max())
    lowest, highest = (-math.inf, math.inf) if known is None else known.image
    return max(least - off, min(lowest, least)), min(most + off, max(highest, most))


def own_error(settings: dict[str, Any], low: float, high: float) -> float:
    """How far the spline of an ``apply`` may be from its function, for arguments in [low, high].

    Values of a function of the table are compared with it; those of any other one are right to within 2^-50. Outside
    of the knots a spline is constant: o beyond the last one, f is off by o·sup|f'| more, and |f'| is at most the slope
    of the last piece (which it has somewhere there) plus (h + o)·curvature.
    """
    function, knots, values = (settings[key] for key in ("function", "knots", "values"))
    known, largest = known_as(function), float(np.abs(values).max())
    below, above = max(float(knots[0]) - low, 0.0), max(high - float(knots[-1]), 0.0)
    if known is not None:
        return _proved_error(known, knots, values, low if below else None, high if above else None)
    curvature, widest, o = settings["curvature"], float(np.diff(knots).max()), max(below, above)
    slope = steepest(knots, values) + 2.0**-49 * largest / float(np.diff(knots).min())
    outside = o * (slope + curvature * (widest + o)) * (1 + 2.0**-40)
    return widest**2 * curvature / 8 + largest * 2.0**-50 + outside


def _proved_error(known: Known, knots: Array, values: Array, low: float | None, high: float | None) -> float:
    from flint import arb

    t, v = knots.tolist(), values.tolist()
    off = [_above(known.f(arb(knot)) - arb(value)) for knot, value in zip(t, v, strict=True)]
    own = max(_missed(known, a, b) for a, b in itertools.pairwise(t)) + max(off)
    for end, knot, value in ((low, t[0], v[0]), (high, t[-1], v[-1])):
        if end is not None:
            own = max(own, _above(known.f(arb(end).union(arb(knot))) - arb(value)))
    if not math.isfinite(own):
        raise InvalidInput(
            f"'apply' cannot bound {known.name} {from_to(t[0], t[-1])}: it must be smooth on the range of its "
            "argument; clip that first."
        )
    return own


def place(function: Callable[..., Any], low: float, high: float, epsilon: float) -> tuple[Array, Array, float]:
    """Knots and values of a function of the table on [low, high], and a proven bound ≤ epsilon on what they miss."""
    from flint import arb

    known = KNOWN[function]
    if not known.f(arb(low)).is_finite():  # f'' alone may be bounded where f is not real: that of the logarithm is
        raise _not_smooth(known, low, low, high, epsilon)
    knots, own, step = [low], 0.0, high - low
    while knots[-1] < high:
        if len(knots) > MOST_KNOTS:
            raise InvalidInput(f"'apply' would need more than {MOST_KNOTS:,} knots; choose a larger epsilon.")
        start = knots[-1]
        least = closest(start, high)
        while True:
            end = high if start + 1.001 * step >= high else start + step
            missed = _missed(known, start, end)
            if missed <= epsilon:
                break
            step = 0.9 * min(step * math.sqrt(epsilon / missed) if math.isfinite(missed) else step / 2, step)
            if step < least:
                raise _not_smooth(known, start, low, high, epsilon)
        knots.append(end)
        own, step = max(own, missed), 1.5 * step
    grid = np.array(knots)
    return grid, _values(known, grid), own


def closest(low: float, high: float) -> float:
    """How close knots may be: float64 numbers between the two are told apart, with eight bits to spare."""
    return max(max(abs(low), abs(high)) * 2.0**-45, 2.0**-1022)


def largest_at_ends(function: Callable[..., Any], low: float, high: float) -> float:
    """|f| of a function of the table, at the ends where it is a number."""
    from flint import arb

    values = [KNOWN[function].f(arb(end)) for end in (low, high)]
    return max((float(abs(v).mid()) for v in values if v.is_finite()), default=0.0)


def _not_smooth(known: Known, near: float, low: float, high: float, epsilon: float) -> InvalidInput:
    return InvalidInput(
        f"'apply' cannot bound {known.name} near {near:.6g} by {in_full(epsilon)}: it must be smooth "
        f"{from_to(low, high)}, the range of its argument; clip that first, or choose a larger epsilon."
    )


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
        raise InvalidInput(f"'apply' takes a function with finite values on the range; {known.name} has others.")
    return np.array([float(v.mid()) for v in values])


def uniform(
    function: Callable[..., Any], low: float, high: float, epsilon: float, curvature: float
) -> tuple[Array, Array, float]:
    """Equal pieces for any other function, on the caller's word that |f''| ≤ curvature."""
    pieces = max(1, math.ceil((high - low) * math.sqrt(curvature / (8 * epsilon))))
    if pieces > MOST_KNOTS:
        raise InvalidInput(f"'apply' would need {pieces:,} knots, more than {MOST_KNOTS:,}; choose a larger epsilon.")
    if pieces > 1 and (high - low) / pieces < closest(low, high):
        raise InvalidInput(
            f"'apply' would need knots closer together than float64 tells numbers apart {from_to(low, high)}; choose a "
            "larger epsilon, or make the numbers smaller, by a factor or by taking a constant off."
        )
    knots = np.linspace(low, high, pieces + 1)
    try:
        values = real_array("apply", "a function with values", function(knots))
    except InvalidInput:
        raise
    except Exception as error:
        raised = f"{len(knots)} numbers, and it raised {type(error).__name__}: {error}"
        raise InvalidInput(f"'apply' called its function with an array of {raised}") from error
    if values.shape != knots.shape or not np.isfinite(values).all():
        raise InvalidInput(
            "'apply' takes a function of arrays with finite values on the range; this one does not give them."
        )
    return knots, values, float(np.diff(knots).max() ** 2 * curvature / 8)
