"""float64 arrays, rounded outward: ends of intervals that are never too far inside, bounds that are never too small.

The error of one float64 sum is itself a float64 (Knuth's TwoSum), and so is the error of a product that does not
underflow (Dekker). Its sign says whether the rounded number is too large or too small, and the neighbour on the other
side is then an end; where float64 does not round, nothing is widened, and exact ends stay exact.

Matrix products are not taken apart. A sum of k products, in any order, fused or not, is off by at most γ·Σ|products|,
γ = k·2^-53/(1 − k·2^-53) (Higham 2002, section 3.1), and by 2^-1022 for each product that underflows or is flushed to
zero. ``own_error`` is (k + 8)·2^-52·Σ + (k + 8)·2^-1022: twice that and more, so it also covers that Σ was itself
computed (from below by γ at most), four more sums with numbers of at most Σ, and its own rounding, for k < 2^40.
It is 0 where all terms are multiples of a power of two q and Σ < 2^53·q: then no partial sum rounds. That Σ was
computed does not matter: rounding is monotone and 2^53·q is a float64, so a partial sum of 2^53·q or more stays so.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray

TINY = 2.0**-1022
_SPLIT = 2.0**27 + 1


def sum_up(a: Array | float, b: Array | float) -> Array:
    """At least a + b, and equal to it where it is a float64."""
    total, error = two_sum(a, b)
    wrong = ~(error <= 0)  # or not a number, if it overflowed
    return np.where(wrong, np.nextafter(total, np.inf), total) if wrong.any() else total


def sum_down(a: Array | float, b: Array | float) -> Array:
    """At most a + b, and equal to it where it is a float64."""
    total, error = two_sum(a, b)
    wrong = ~(error >= 0)
    return np.where(wrong, np.nextafter(total, -np.inf), total) if wrong.any() else total


def enlarged(bound: Array, terms: Array | float = 8.0, touched: Array | None = None) -> Array:
    """At least what ``terms`` float64 sums and products of numbers ≥ 0 should have been; 0 stays 0.

    ``touched``: where a product of two positive numbers may have underflowed to that 0.
    """
    used = bound != 0 if touched is None else (bound != 0) | touched
    return np.where(used, bound * (1.0 + (terms + 8) * 2.0**-52) + (terms + 8) * TINY, 0.0)


def product_up(a: Array, B: Array) -> Array:
    """At least a @ B, for arrays of numbers ≥ 0."""
    terms = (a != 0).astype(np.float64) @ (B != 0).astype(np.float64)
    return enlarged(a @ B, terms, terms > 0)


def own_error(terms: Array | float, total: Array | float, q: Array | float) -> Array:
    """How far a float64 sum of ``terms`` products, all multiples of q and Σ|products| = ``total``, may be off."""
    with np.errstate(over="ignore"):  # beyond float64 it is larger than any total
        exact = total < 2.0**53 * np.asarray(q)
    return np.where(exact, 0.0, (terms + 8) * 2.0**-52 * total + (terms + 8) * TINY)


def added(x: Array, off: Array, c: float, y: Array) -> tuple[Array, Array]:
    """x + c·y for coefficients x that are off by at most ``off``: the same for the result."""
    product, lost = _two_product(c, y)
    total, more = two_sum(x, product)
    return total, enlarged(off + lost + np.abs(more))


def two_sum(a: Array | float, b: Array | float) -> tuple[Array, Array]:
    """a + b = sum + error, exactly."""
    total = np.add(a, b)
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(c: float, y: Array) -> tuple[Array, Array]:
    """The product, and a bound on its error: 0 where it is exact."""
    product = c * y
    with np.errstate(over="ignore", invalid="ignore"):
        (ch, cl), (yh, yl) = _split(np.full_like(y, c)), _split(y)
        error = np.abs(((ch * yh - product) + ch * yl + cl * yh) + cl * yl)
    error = np.where(np.isfinite(error), error, np.abs(product) * 2.0**-52)  # split numbers may overflow
    small = (np.abs(product) < 2.0**-900) & (y != 0) & (c != 0)  # there the error may underflow
    power = (np.abs(np.frexp(c)[0]) == 0.5) | (np.abs(np.frexp(y)[0]) == 0.5)
    error = np.where(power & (np.abs(product) >= TINY), 0.0, np.where(small, error + 16 * TINY, error))
    return product, error


def _split(x: Array) -> tuple[Array, Array]:
    high = _SPLIT * x
    high = high - (high - x)
    return high, x - high
