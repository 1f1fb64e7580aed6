"""How far is a linear spline from its function? Proved with Arb for functions it knows, else from a stated curvature.

On a piece of width h the interpolant of values off by at most e is within h²·sup|f''|/8 + e of f. The argument y of f
in the ideal program and the argument x of the spline may differ by a gap g, and x may leave the knots by a little, o.
With x' the nearest number between the knots, spline(x) = spline(x') and

    |f(y) − spline(x)|  ≤  |f(y) − f(x')| + |f(x') − spline(x')|  ≤  sup|f'|·(g + o) + own,

``own`` over the pieces that x' can be on, sup|f'| over what lies between x' and y (y may be known to stay within some
ends). Where only sup|f''| ≤ curvature is stated, f' equals the slope of the piece somewhere on each piece, so
|f'| ≤ |slope| + curvature·h there, and curvature·o more when it is o beyond the knots. A square root has no slope at 0,
but |√y − √x| ≤ √|y − x|, and it is |y − x|/(√y + √x).
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb

from thereexists.arithmetic.powers import whole_power
from thereexists.certificates.program_numbers import SMALLEST, TINY, Number, above, below, exact, ratio
from thereexists.certificates.program_profile import PARTS, ROUNDED_UP, Profile, down, mapped, up
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import power_of_two

_CURVATURE = re.compile(r"a function of the program has \|f''\| ≤ (\S+) from (\S+) to (\S+), as its author states")
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


def _power(k: int) -> Known:
    return Known(
        lambda x: whole_power(x, k),
        lambda x: k * whole_power(x, k - 1),
        lambda x: k * (k - 1) * whole_power(x, k - 2),
        k % 2 == 1,
    )


KNOWN |= {f"power{k}": _power(k) for k in range(3, 9)}
EVEN = ("square", *(f"power{k}" for k in range(4, 9, 2)))


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

    def range(self, low: Number, high: Number) -> tuple[Number, Number]:
        """Ends that the spline keeps on [low, high], as short numbers: its values at knots, or just outside of it."""
        first, last = bisect.bisect_right(self.knots, low), bisect.bisect_left(self.knots, high)
        found = [*self.values[first:last], self._at(low), self._at(high)]
        least, most = min(self.values), max(self.values)
        return max(exact(below(min(found))), least), min(exact(above(max(found))), most)

    def _at(self, x: Number) -> Number:
        k = bisect.bisect_right(self.knots, x)
        if k in (0, len(self.knots)):
            return self.values[max(k - 1, 0)]
        (s, t), (v, w) = self.knots[k - 1 : k + 1], self.values[k - 1 : k + 1]
        return exact(v + ratio(exact((w - v) * (x - s)), exact(t - s)))

    @property
    def steepest(self) -> float:
        pairs = zip(self.values, self.values[1:], self.knots, self.knots[1:], strict=False)
        return _up(max(above(abs(ratio(exact(w - v), exact(t - s)))) for v, w, s, t in pairs))


@dataclass(frozen=True)
class SplineError:
    own: float
    slope: float
    outside: float
    assumptions: tuple[str, ...]


@dataclass(frozen=True)
class Pieces:
    """Of every piece of a spline: how far it is from f, and how steep f is there; and f' beyond the knots."""

    spline: Spline
    knots: np.ndarray
    own: np.ndarray
    slope: np.ndarray

    @classmethod
    def of(cls, spline: Spline) -> Pieces:
        knots = np.array([float(t) for t in spline.knots])
        return cls(spline, knots, *(_proved(spline) if spline.name else _stated(spline, knots)))

    def nearest(self, low: float, high: float) -> tuple[int, int]:
        """The pieces first … last − 1 that [low, high] meets, or the one at the end that it lies beyond."""
        first = int(np.searchsorted(self.knots[1:-1], low - abs(low) * 2.0**-50, side="left"))
        last = int(np.searchsorted(self.knots[1:-1], high + abs(high) * 2.0**-50, side="right")) + 1
        return min(first, last - 1), last

    def own_on(self, low: float, high: float) -> float:
        first, last = self.nearest(low, high)
        return float(self.own[first:last].max())

    def steepest_on(self, low: float, high: float) -> float:
        """sup|f'| from ``low`` to ``high``; infinite if nothing is known."""
        first, last = self.nearest(low, high)
        found = float(self.slope[first:last].max())
        for end, beyond, k in ((self.spline.knots[0], low, 0), (self.spline.knots[-1], high, -1)):
            past = exact(beyond) - end if k else end - exact(beyond)
            if past > 0:
                found = max(found, self._beyond(end, beyond, float(past), k))
        return found

    def _beyond(self, end: Number, beyond: float, past: float, k: int) -> float:
        if self.spline.name:
            return _most(KNOWN[self.spline.name].first(_ball(end).union(arb(beyond))))
        return _up(float(self.slope[k]) + _up(float(self.spline.curvature or 0.0) * past + SMALLEST))

    def image(self, low: float, high: float) -> tuple[float, float]:
        """Where f of [low, high] is; all numbers if that is not known."""
        known = KNOWN.get(self.spline.name)
        if known is None or not (known.monotone or self.spline.name in EVEN):
            return -math.inf, math.inf
        if self.spline.name in EVEN:  # it rises with |x|
            low, high = max(low, -high, 0.0), max(abs(low), abs(high))
        low = max(low, 0.0) if self.spline.name == "sqrt" else low
        ball = known.f(arb(low)).union(known.f(arb(max(low, high))))
        if not ball.is_finite():
            return -math.inf, math.inf
        return _least(ball), -_least(-ball)

    def moved(self, low: float, high: float, gap: float, y_low: float, y_high: float) -> float:
        """sup |f(x') − f(y)| for x in [low, high], y in [y_low, y_high], |x − y| ≤ gap."""
        x_low, x_high = (min(max(end, float(self.knots[0])), float(self.knots[-1])) for end in (low, high))
        reach = _up(gap + max(x_low - low, high - x_high, 0.0))
        if reach == 0:
            return 0.0
        least, most = min(x_low, y_low), max(x_high, y_high)
        if self.spline.name == "sqrt":
            lower = max(x_low - reach, 0.0) * (1 - 2.0**-50)  # below it no y is
            roots = math.sqrt(x_low) + math.sqrt(lower)
            return min(_up(math.sqrt(reach)), _up(_up(reach / roots + SMALLEST)) if roots > 0 else math.inf)
        return _up(self.steepest_on(least, most) * reach + SMALLEST)


def spline_error(
    spline: Spline, gap: float, low: Number, high: Number, ends: tuple[float, float] | None = None
) -> SplineError:
    """``own``, a bound on |f'|, and how far the argument's range [low, high] leaves the knots."""
    pieces = Pieces.of(spline)
    outside = _up(above(max(spline.knots[0] - low, high - spline.knots[-1], 0)))
    reach = _up(gap + outside)
    texts = _assumptions(spline, reach) if not spline.name else ()
    x_low, x_high = below(low), above(high)
    own = pieces.own_on(x_low, x_high)
    if spline.name == "sqrt" and spline.knots[0] == 0:
        return SplineError(_up(own + _up(math.sqrt(reach))), 0.0, outside, texts)
    least, most = Profile.flat(x_low, x_high, gap, ends).ends
    near = [min(max(end, float(pieces.knots[0])), float(pieces.knots[-1])) for end in (x_low, x_high)]
    slope = pieces.steepest_on(min(least, near[0]), max(most, near[1]))
    return SplineError(own, _up(slope), outside, texts)


def spline_profile(pieces: Pieces, profile: Profile) -> Profile | None:
    """The profile of spline(x) against f(y), for x and y of a profile; None if it is infinite somewhere."""
    knots = pieces.knots
    some = knots[np.linspace(0, len(knots) - 1, min(len(knots), PARTS)).astype(int)]
    cells = profile.cut(np.append(some, np.linspace(profile.edges[0], profile.edges[-1], 2 * PARTS + 1)))
    values = np.array([float(v) for v in pieces.spline.values])

    def one(x_low: float, x_high: float, y_low: float, y_high: float, gap: float) -> tuple[float, ...]:
        off = (pieces.own_on(x_low, x_high) + pieces.moved(x_low, x_high, gap, y_low, y_high)) * ROUNDED_UP + TINY
        inner = values[(knots > x_low) & (knots < x_high)]
        here = np.append(inner, np.interp([x_low, x_high], knots, values))  # its extremes are among these
        size = float(np.abs(values).max())
        least, most = down(float(here.min()), size), up(float(here.max()), size)
        ideal = pieces.image(y_low, y_high)
        return least, most, max(least - off, ideal[0]), min(most + off, ideal[1]), off

    return mapped(cells, one)


def _assumptions(spline: Spline, reach: float) -> tuple[str, str]:
    return (
        f"a function of the program has |f''| ≤ {in_full(float(spline.curvature or 0.0))} from "
        f"{in_full(below(spline.knots[0] - exact(reach)))} to {in_full(above(spline.knots[-1] + exact(reach)))}, "
        "as its author states",
        f"that function's values at the knots are right to within {power_of_two(EVALUATION)}, relatively to the "
        "largest",
    )


def assumes_as_much(stated: str, needed: str) -> bool:
    """Whether a statement on a curvature is another one, or the same on a wider interval: what it is said of is proved

    under the other one already. (Older versions carried errors less closely, and so asked for wider intervals.)
    """
    if stated == needed:
        return True
    found = [_CURVATURE.fullmatch(text) for text in (stated, needed)]
    try:
        (less, a, b), (more, c, d) = ((float(m[1]), float(m[2]), float(m[3])) for m in found if m is not None)
    except ValueError:  # another statement, or words that are not numbers
        return False
    return 0 <= less <= more and -math.inf < a <= c and d <= b < math.inf


def _proved(spline: Spline) -> tuple[np.ndarray, np.ndarray]:
    """The distance from f on every piece, and sup|f'| there; infinite where Arb knows none."""
    known = KNOWN[spline.name]
    own, steepest = [], []
    balls = [_ball(t) for t in spline.knots]
    off = [_most(known.f(t) - _ball(v)) for t, v in zip(balls, spline.values, strict=True)]
    for k in range(len(balls) - 1):
        piece = balls[k].union(balls[k + 1])
        bend = _most(known.second(piece) * (balls[k + 1] - balls[k]) ** 2 / 8)
        slope = known.first(piece)
        if known.monotone or slope > 0 or slope < 0:  # f and its chord both lie between the two ends
            bend = min(bend, _most(known.f(balls[k + 1]) - known.f(balls[k])))
        if spline.name == "sqrt" and spline.knots[k] == 0:  # √x − x/√b is at most √b/4 on [0, b]
            bend = _most(balls[k + 1].sqrt() / 4)
        own.append(_up(bend + max(off[k], off[k + 1])))
        steepest.append(_most(slope))
    return np.array(own), np.array(steepest)


def _stated(spline: Spline, knots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same on the author's word that |f''| ≤ curvature."""
    curvature = float(spline.curvature or 0.0)
    values = np.array([float(v) for v in spline.values])
    wide = (np.diff(knots) + (np.abs(knots[:-1]) + np.abs(knots[1:])) * 2.0**-52) * (1 + 2.0**-50)
    noise = float(np.abs(values).max()) * EVALUATION + SMALLEST
    bend = (wide * math.sqrt(curvature / 8) * (1 + 2.0**-50)) ** 2  # the square last: nothing enlarges what underflows
    own = (bend + noise) * (1 + 2.0**-48)
    slope = np.abs(np.diff(values) / np.diff(knots)) + 2 * noise / np.diff(knots) + curvature * wide
    return own, slope * (1 + 2.0**-40) + 4 * SMALLEST


def _ball(number: Number) -> arb:
    return arb(number) if isinstance(number, int) else arb(number.p) / arb(number.q)


def _most(ball: arb) -> float:
    """An upper bound on |ball|; infinite if Arb knows none."""
    if not ball.is_finite():
        return math.inf
    most = ball.abs_upper()
    return _up(float(most)) if most == 0 else _up(float(most) + SMALLEST)


def _least(ball: arb) -> float:
    least = float(ball.lower())
    return least - abs(least) * 2.0**-50 - 5e-324


def _up(value: float) -> float:
    return value * (1 + 2.0**-50) + 5e-324 if value > 0 else 0.0
