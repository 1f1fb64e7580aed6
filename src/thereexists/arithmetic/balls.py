"""Ball arithmetic on float64 arrays: a ball (mid, rad) contains every real x with |x − mid| ≤ rad.

Rounding never gets lost: the exact error of a sum or product of two floats is itself a float (two-sum, Knuth;
two-product, Dekker), and it goes into the radius. An operation whose result is exact therefore adds nothing, and a
radius can be as small as 1e-300: numbers like 1 − e^-1024 keep their midpoint 1. Radii are computed in ordinary floats
and enlarged by ``_up``: a relative 2^-45, more than the rounding of the few dozen terms that are ever added, and an
absolute 1e-300 that covers underflow. No hardware rounding mode is touched. A ball that overflows ends with radius inf
or NaN, which every user of an enclosure must treat as "nothing is known".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray

TINY = 1e-300
_SPLIT = 2.0**27 + 1
_LN2_HIGH = 0.6931471805599453  # the float nearest to ln 2
_LN2_LOW = 2.3190468138462996e-17  # ln 2 − _LN2_HIGH, to 1e-33
_LN2_ERROR = 1e-32
_DEGREE = 24


class Ball(NamedTuple):
    """Arrays of midpoints and radii of one shape."""

    mid: Array
    rad: Array

    @property
    def low(self) -> Array:
        """A lower bound of the ball."""
        return np.where(self.rad == 0, self.mid, np.nextafter(self.mid - self.rad, -np.inf))

    @property
    def high(self) -> Array:
        """An upper bound of the ball."""
        return np.where(self.rad == 0, self.mid, np.nextafter(self.mid + self.rad, np.inf))

    def __getitem__(self, index) -> Ball:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Ball(self.mid[index], self.rad[index])


def exact(values) -> Ball:
    """Floats as balls of radius 0."""
    mid = np.asarray(values, dtype=np.float64)
    return Ball(mid, np.zeros_like(mid))


def add(x: Ball, y: Ball) -> Ball:
    sum_, error = _two_sum(x.mid, y.mid)
    return Ball(sum_, _up(x.rad + y.rad + np.abs(error)))


def negate(x: Ball) -> Ball:
    return Ball(-x.mid, x.rad)


def subtract(x: Ball, y: Ball) -> Ball:
    return add(x, negate(y))


def multiply(x: Ball, y: Ball) -> Ball:
    product, error = _two_product(x.mid, y.mid)
    error = np.abs(error)
    # Below 1e-280 the error term itself may underflow; there the product is known to 1e-290 anyway.
    error = np.where((np.abs(product) < 1e-280) & (x.mid != 0) & (y.mid != 0), error + 1e-290, error)
    vanishes = ((x.mid == 0) & (x.rad == 0)) | ((y.mid == 0) & (y.rad == 0))
    radius = np.abs(x.mid) * y.rad + np.abs(y.mid) * x.rad + x.rad * y.rad + error
    return Ball(product, _up(np.where(vanishes, 0.0, radius), np.where(vanishes, 0.0, x.rad + y.rad)))


def total(x: Ball, axis: int) -> Ball:
    """The sum along an axis, one term after the other in order."""
    parts = [Ball(m, r) for m, r in zip(_along(x.mid, axis), _along(x.rad, axis), strict=True)]
    result = parts[0]
    for part in parts[1:]:
        result = add(result, part)
    return result


def _along(x: Array, axis: int) -> Array:
    """That axis first: ``np.moveaxis(x, axis, 0)`` without its many checks, which took longer than small sums."""
    axis %= x.ndim
    return x.transpose(axis, *range(axis), *range(axis + 1, x.ndim))


def dot(x: Ball, y: Ball) -> Ball:
    """Σ x·y over the last axis (broadcasting)."""
    return total(multiply(x, y), axis=-1)


def dot_of_floats(x: Array, y: Array) -> Ball:
    """Σ x·y over the last axis for floats, as if in twice the precision (Ogita, Rump, Oishi 2005, Dot2).

    The exact errors of all products and sums are themselves summed; what remains unknown is the rounding of that
    second sum, at most (2k)²·2^-106 Σ|x·y| for k terms.
    """
    product, errors = _two_product(x, y)
    terms = _along(product, -1)
    size, correction = np.abs(product).sum(-1), errors.sum(-1)
    sum_ = terms[0]
    for term in terms[1:]:
        sum_, error = _two_sum(sum_, term)
        correction = correction + error
    unknown = (2 * len(terms)) ** 2 * 2.0**-104 * size
    underflow = (np.abs(product) < 1e-280) & (x != 0) & (y != 0)  # there the error terms are not exact
    unknown = unknown + 1e-290 * underflow.sum(-1)
    return add(exact(sum_), Ball(correction, _up(unknown)))


def intersect_radii(x: Ball, y: Ball) -> Ball:
    """Two balls around the same number: entry by entry, the smaller one."""
    smaller = x.rad <= y.rad
    return Ball(np.where(smaller, x.mid, y.mid), np.where(smaller, x.rad, y.rad))


def relu(x: Ball) -> Ball:
    """max(x, 0): 0 or x where the sign is certain, the ball around [0, high] where it is not."""
    high = np.maximum(x.high, 0.0)
    straddles = Ball(high / 2, _up(high / 2))
    inactive, active = x.high <= 0, x.low >= 0
    mid = np.where(inactive, 0.0, np.where(active, x.mid, straddles.mid))
    return Ball(mid, np.where(inactive, 0.0, np.where(active, x.rad, straddles.rad)))


def reciprocal(x: Ball) -> Ball:
    """1/x for balls of positive numbers. With m ≈ 1/mid: |1/s − m| = |1 − m s|/s ≤ (|1 − m·mid| + m·rad)/low."""
    m = 1.0 / x.mid
    residual = subtract(exact(np.ones_like(m)), multiply(exact(m), exact(x.mid)))
    size = np.abs(residual.mid) + residual.rad + np.abs(m) * x.rad
    return Ball(m, _up(size / np.maximum(x.low, TINY), x.rad))


def exponential(x: Ball) -> Ball:
    """e^x for x ≤ 700. Below −600 the ball [0, 2^⌈1.442695 x⌉], since log2(e) > 1.442695 and x < 0; above, a series."""
    power = np.clip(np.ceil(np.nan_to_num(np.minimum(x.high, 0.0)) * 1.442695) + 1, -1000, 1)
    bound = np.maximum(np.ldexp(1.0, power.astype(int)), TINY)
    result = Ball(np.zeros_like(bound), bound)
    zero = (x.mid == 0) & (x.rad == 0)
    result.mid[zero], result.rad[zero] = 1.0, 0.0
    near = ~((x.high < -600) | zero)
    if near.any():
        result.mid[near], result.rad[near] = _exponential_series(x[near])
    return result


def _exponential_series(x: Ball) -> Ball:
    """Taylor series of degree 24 after x = k ln 2 + r, |r| ≤ 0.36, in balls: remainder below 1e-35."""
    hopeless = ~((np.abs(x.mid) <= 700) & (x.rad <= 700))  # NaN included
    x = Ball(np.where(hopeless, 0.0, x.mid), np.where(hopeless, np.inf, x.rad))
    k = np.round(x.mid / _LN2_HIGH)
    r = subtract(exact(x.mid), multiply(exact(k), exact(np.full_like(k, _LN2_HIGH))))
    r = subtract(r, Ball(k * _LN2_LOW, _up(np.abs(k) * (_LN2_ERROR + 2.0**-52 * _LN2_LOW))))
    one = exact(np.ones_like(k))
    series = one
    for i in range(_DEGREE, 0, -1):  # 1 + r/1 (1 + r/2 (1 + r/3 (…)))
        over_i = Ball(np.full_like(k, 1.0 / i), np.full_like(k, 2.0**-54))
        series = add(one, multiply(multiply(r, over_i), series))
    scaled = Ball(np.ldexp(series.mid, k.astype(int)), np.ldexp(_up(series.rad + 1e-30), k.astype(int)))
    # e^(mid ± rad) lies within e^mid · (e^rad − 1) of e^mid, and e^rad − 1 ≤ 2·rad for rad ≤ 1.
    spread = np.where(x.rad <= 1, 2 * x.rad, np.expm1(x.rad) * (1 + 1e-9))
    return Ball(scaled.mid, _up(scaled.rad + (np.abs(scaled.mid) + scaled.rad) * spread, np.ones_like(k)))


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """x + y = sum + error, exactly."""
    sum_ = x + y
    part = sum_ - x
    return sum_, (x - (sum_ - part)) + (y - part)


def _two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """x · y = product + error, exactly (unless it underflows)."""
    product = x * y
    xh, xl = _split(x)
    yh, yl = _split(y)
    return product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl


def _split(x: Array) -> tuple[Array, Array]:
    high = _SPLIT * x
    high = high - (high - x)
    return high, x - high


def _up(radius: Array, inexact: Array | None = None) -> Array:
    """Enlarge a radius so that its own rounding is covered; exactly 0 stays 0 where nothing was inexact."""
    nothing = radius == 0 if inexact is None else (radius == 0) & (inexact == 0)
    return np.where(nothing, 0.0, radius * (1 + 2.0**-45) + TINY)
