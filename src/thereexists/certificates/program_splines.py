"""How far is a linear spline from its function? Proved with Arb for functions it knows, else from a stated curvature.

On a piece of width h the interpolant of values off by at most e is within h²·sup|f''|/8 + e of f. The argument y of f
in the ideal program and the argument x of the spline may differ by a gap g, and x may leave the knots by a little, o.
With x' the nearest number between the knots, spline(x) = spline(x') and

    |f(y) − spline(x)|  ≤  |f(y) − f(x')| + |f(x') − spline(x')|  ≤  sup|f'|·(g + o) + own,

sup|f'| over the knots' interval made larger by g + o (or less far, where y is known to stay within some ends). Where
only sup|f''| ≤ curvature is stated, f' equals the slope of the piece somewhere on each piece, so
|f'| ≤ max|slope| + curvature·(h + g + o).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb

from thereexists.certificates.program_forms import Number, exact, ratio
from thereexists.core.errors import InvalidInput

EVALUATION = 2.0**-50  # how well a function of the user's own computes its values, relatively: an assumption


@dataclass(frozen=True)
class Known:
    """f, f' and f'' on balls, and whether f is monotone wherever it is defined."""

    f: Callable[[arb], arb]
    first: Callable[[arb], arb]
    second: Callable[[arb], arb]
    monotone: bool = True


def _by_its_ends(f: Callable[[arb], arb]) -> Callable[[arb], arb]:
    """A monotone function on a ball, from its two ends: no wider than the values, however wide the ball is."""
    return lambda x: f(x.lower()).union(f(x.upper()))


def _within(ball: arb, low: float, high: float) -> arb:
    """The part of a ball between two ends that its numbers are known to keep; all of that where Arb knows less."""
    least, most = ball.lower(), ball.upper()  # comparisons with NaN are false
    return (least if least >= low else arb(low)).union(most if most <= high else arb(high))


_tanh = _by_its_ends(lambda x: x.tanh())
_logistic = _by_its_ends(lambda x: 1 / (1 + (-x).exp()))


def _tanh_first(x: arb) -> arb:
    return _within((1 - _tanh(x)) * (1 + _tanh(x)), 0, 1)


def _logistic_first(x: arb) -> arb:
    return _within(_logistic(x) * (1 - _logistic(x)), 0, 0.25)


# Where the balls are too wide to say more: |tanh''| ≤ 4/(3√3) < 0.77, |arctan''| ≤ 9/(8√3) < 0.65, and |σ''| < 0.0963.
KNOWN = {
    "sin": Known(lambda x: x.sin(), lambda x: x.cos(), lambda x: -x.sin(), monotone=False),
    "cos": Known(lambda x: x.cos(), lambda x: -x.sin(), lambda x: -x.cos(), monotone=False),
    "exp": Known(lambda x: x.exp(), lambda x: x.exp(), lambda x: x.exp()),
    "log": Known(lambda x: x.log(), lambda x: 1 / x, lambda x: -1 / (x * x)),
    "sqrt": Known(lambda x: x.sqrt(), lambda x: 1 / (2 * x.sqrt()), lambda x: -1 / (4 * x * x.sqrt())),
    "square": Known(lambda x: x * x, lambda x: 2 * x, lambda x: arb(2), monotone=False),
    "reciprocal": Known(lambda x: 1 / x, lambda x: -1 / (x * x), lambda x: 2 / (x * x * x), monotone=False),
    "tanh": Known(_tanh, _tanh_first, lambda x: _within(-2 * _tanh(x) * _tanh_first(x), -0.77, 0.77)),
    "arctan": Known(
        lambda x: x.atan(),
        lambda x: _within(1 / (1 + x * x), 0, 1),
        lambda x: _within(-2 * x / ((1 + x * x) * (1 + x * x)), -0.65, 0.65),
    ),
    "log1p": Known(lambda x: (1 + x).log(), lambda x: 1 / (1 + x), lambda x: -1 / ((1 + x) * (1 + x))),
    "rsqrt": Known(lambda x: 1 / x.sqrt(), lambda x: -1 / (2 * x * x.sqrt()), lambda x: 3 / (4 * x * x * x.sqrt())),
    "sigmoid": Known(
        _logistic,
        _logistic_first,
        lambda x: _within(_logistic_first(x) * (1 - 2 * _logistic(x)), -0.0963, 0.0963),
    ),
}


@dataclass(frozen=True)
class Spline:
    name: str  # of a known function, or "" for one of the user's own
    knots: tuple[Number, ...]
    values: tuple[Number, ...]
    jumps: tuple[tuple[Number, Number], ...]  # (knot, change of slope)
    curvature: float | None

    @classmethod
    def of(cls, settings: dict[str, Any]) -> Spline:
        knots, values = (tuple(exact(v) for v in settings[k]) for k in ("knots", "values"))
        if len(knots) < 2 or len(knots) != len(values) or any(a >= b for a, b in itertools.pairwise(knots)):
            raise InvalidInput("'apply' has at least two knots that rise, and a value for each.")
        pairs = zip(values, values[1:], knots, knots[1:], strict=False)
        slopes = [ratio(exact(w - v), exact(t - s)) for v, w, s, t in pairs]
        jumps = [exact(after - before) for before, after in zip([0, *slopes], [*slopes, 0], strict=True)]
        name, curvature = settings.get("function", ""), settings.get("curvature")
        name = name if name in KNOWN else ""
        if not name and not (isinstance(curvature, float | int) and 0 <= curvature < math.inf):
            raise InvalidInput("'apply' of a function of your own needs a stated bound on its second derivative.")
        bends = tuple((t, c) for t, c in zip(knots, jumps, strict=True) if c != 0)
        return cls(name, knots, values, bends, None if curvature is None else float(curvature))

    @property
    def steepest(self) -> float:
        pairs = zip(self.values, self.values[1:], self.knots, self.knots[1:], strict=False)
        return _up(max(float(abs(ratio(exact(w - v), exact(t - s)))) for v, w, s, t in pairs))


@dataclass(frozen=True)
class SplineError:
    own: float
    slope: float
    outside: float
    assumptions: tuple[str, ...]


def spline_error(
    spline: Spline, gap: float, low: Number, high: Number, ends: tuple[Number, Number] | None = None
) -> SplineError:
    """``own``, a bound on |f'|, and how far the argument's range [low, high] leaves the knots."""
    outside = _up(float(max(spline.knots[0] - low, high - spline.knots[-1], 0)))
    reach = _up(gap + outside)
    knots = np.array([float(t) for t in spline.knots])
    widest = _up(float(np.diff(knots).max()) + abs(float(knots[0])) * 2.0**-52 + abs(float(knots[-1])) * 2.0**-52)
    if spline.name == "sqrt" and spline.knots[0] == 0:
        return _square_root(spline, reach, outside)
    if spline.name:
        least, most = ends or (spline.knots[0] - exact(reach), spline.knots[-1] + exact(reach))
        below, above = (_up(float(max(way, 0))) for way in (spline.knots[0] - least, most - spline.knots[-1]))
        own, slope = _proved(spline, (min(reach, below), min(reach, above)))
        return SplineError(own, slope, outside, ())
    curvature = float(spline.curvature or 0.0)
    values = np.array([float(v) for v in spline.values])
    own = _up(widest**2 * curvature / 8 + float(np.abs(values).max()) * EVALUATION)
    steepest = float(np.abs(np.diff(values) / np.diff(knots)).max()) * (1 + 2.0**-40)
    noise = 2 * float(np.abs(values).max()) * EVALUATION / float(np.diff(knots).min())
    texts = (
        f"a function of the program has |f''| ≤ {curvature:g} from {float(spline.knots[0]) - reach:.6g} to "
        f"{float(spline.knots[-1]) + reach:.6g}, as its author states",
        f"that function's values at the knots are right to within {EVALUATION:.1e}, relatively to the largest",
    )
    return SplineError(own, _up(steepest + noise + curvature * (widest + reach)), outside, texts)


def _square_root(spline: Spline, reach: float, outside: float) -> SplineError:
    """From 0 on: √x − x/√b is at most √b/4 on [0, b], and |√y − √x| ≤ √|y − x| for y, x ≥ 0, where f' has no bound.

    (Of an argument below 0, where the ideal program has no value, the square root counts as 0.)
    """
    own, _ = _proved(spline, (0.0, 0.0), first=1)
    edge = _most(_ball(spline.knots[1]).sqrt() / 4)
    off = [_most(_ball(t).sqrt() - _ball(v)) for t, v in zip(spline.knots[:2], spline.values[:2], strict=True)]
    return SplineError(_up(max(own, edge + max(off)) + math.sqrt(reach)), 0.0, outside, ())


def _proved(spline: Spline, reach: tuple[float, float], first: int = 0) -> tuple[float, float]:
    """The largest distance on a piece, and the largest |f'| on the knots' interval made larger by ``reach``."""
    known = KNOWN[spline.name]
    own = steepest = 0.0
    balls = [_ball(t) for t in spline.knots]
    off = [_most(known.f(t) - _ball(v)) for t, v in zip(balls, spline.values, strict=True)]
    for k in range(first, len(balls) - 1):
        piece = balls[k].union(balls[k + 1])
        bend = _most(known.second(piece) * (balls[k + 1] - balls[k]) ** 2 / 8)
        slope = known.first(piece)
        if known.monotone or slope > 0 or slope < 0:  # f and its chord both lie between the two ends
            bend = min(bend, _most(known.f(balls[k + 1]) - known.f(balls[k])))
        own = max(own, bend + max(off[k], off[k + 1]))
        steepest = max(steepest, _most(slope))
    for end, way in ((balls[first], -arb(reach[0])), (balls[-1], arb(reach[1]))):
        steepest = max(steepest, _most(known.first(end.union(end + way))))
    if not (math.isfinite(own) and math.isfinite(steepest)):
        raise InvalidInput(f"'apply' of {spline.name} is not differentiable on the range of its argument.")
    return _up(own), _up(steepest)


def _ball(number: Number) -> arb:
    return arb(number) if isinstance(number, int) else arb(number.p) / arb(number.q)


def _most(ball: arb) -> float:
    """An upper bound on |ball|; infinite if Arb knows none."""
    if not ball.is_finite():
        return math.inf
    return _up(float(ball.abs_upper()))


def _up(value: float) -> float:
    return value * (1 + 2.0**-50) + 5e-324 if value > 0 else 0.0
