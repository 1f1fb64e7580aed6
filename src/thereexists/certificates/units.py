"""The units in which p-th powers and volumes are summed: powers of two near the sizes at hand, so that nothing is lost.

A p-th power leaves float64 soon: at p = 64, numbers below 2^-16 or above 2^16 do. So the sums over cubes are made of
(error/u)^p and of volumes with every side divided by its own unit, all of them exact divisions, and only the p-th root
is turned back into the caller's units, by adding exponents. Ordinary problems have all units 1.

What still leaves the range is rounded up: a power that is too small is charged with TINY, one that is too large is
infinity, which no certificate states. The units are a choice: no bound depends on whether it is a good one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.arithmetic.balls import Array
from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Target

TINY = 1e-290  # what a power is charged with at least
SMALLEST = 1e-300  # what a volume, and its product with a power, is charged with at least
# Sums of at most 2^30 positive terms and a handful of powers and products are relatively exact to 2^-22.
ROUNDED_UP = 1 + 2.0**-20
_POWERS = 256  # 2^±256 are ordinary p-th powers
_VOLUMES = 64  # and 2^±64 ordinary volumes


@dataclass(frozen=True)
class Units:
    """Exponents: 2^error is the unit of |f − g|, 2^side[i] that of feature i; no sides means that all are 0."""

    error: int = 0
    side: tuple[int, ...] = ()

    @classmethod
    def of(cls, target: Target, p: float, sizes: list[float]) -> Units:
        """For p-th powers of numbers about as large as the largest of ``sizes``, on the target's domain."""
        size = max((x for x in sizes if math.isfinite(x)), default=0.0)
        error = 0 if size == 0 else _exponent(size)
        side = tuple(_exponent(width) for width in (target.high - target.low).tolist())
        plain = max(map(abs, side)) * target.n * target.d <= _VOLUMES
        if target.region is not None and not plain:
            raise InvalidInput(
                f"The sides {(target.high - target.low).tolist()} of {target.region.words()} are too extreme for "
                "certificates on a domain that is not a box: rescale the function so that they are nearer to 1."
            )
        return cls(error if abs(error) * p > _POWERS else 0, () if plain else side)

    def power(self, x: Any, p: float) -> Any:
        """At least (x/u)^p for numbers x ≥ 0, up to a relative 2^-50, and never below TINY."""
        with np.errstate(over="ignore", under="ignore"):
            return np.maximum(_scaled(np.asarray(x, dtype=np.float64), -self.error) ** p, TINY)

    def volumes(self, sides: Array) -> Array:
        """Of boxes (boxes, n, d): the products of their sides in these units."""
        with np.errstate(over="ignore", under="ignore"):
            sides = _scaled(sides, -np.array(self.side)) if self.side else sides
            return np.maximum(sides.prod(axis=(1, 2)), SMALLEST)

    def volume(self, widths: Array, n: int) -> float:
        """Of n tokens with these widths (d,) each."""
        return float(self.volumes(np.broadcast_to(widths, (1, n, len(widths))))[0])

    def times(self, volumes: Any, powers: Any) -> Any:
        """At least the product of positive numbers, also where it underflows."""
        with np.errstate(over="ignore", under="ignore"):
            return np.maximum(volumes * powers, SMALLEST)

    def root(self, integral: float, p: float, n: int) -> float:
        """At least the p-th root of an integral of p-th powers over n tokens, in the caller's units."""
        return _from_exponent(integral, p, self.error + n * sum(self.side) / p)

    def root_of_volume(self, volume: float, p: float, n: int) -> float:
        """At least volume^{1/p}, in the caller's units."""
        return _from_exponent(volume, p, n * sum(self.side) / p)


PLAIN = Units()


def norm(parts: list[float], p: float) -> float:
    """At least (Σ part^p)^{1/p}, up to ROUNDED_UP: in units of the largest part, which is therefore never lost."""
    if not all(map(math.isfinite, parts)):
        return math.inf
    largest = max(parts)
    return largest and largest * sum((part / largest) ** p for part in parts) ** (1 / p)


def over_share(size: float, target: Target, share: float, p: float) -> float:
    """size · (share · volume of the domain)^{1/p}, up to rounding: also where the volume itself is no float64.

    Too large a result is infinity; too small a one is the smallest number above 0, which alone stands for nothing.
    """
    if size == 0 or share == 0:
        return 0.0
    if target.region is not None:
        return size * (target.volume * share) ** (1 / p)
    units = Units.of(target, p, [])
    exponent = target.n * sum(units.side) / p
    root = (units.volume(target.high - target.low, target.n) * share) ** (1 / p)
    whole = math.floor(exponent)
    try:
        found = size * math.ldexp(root * 2.0 ** (exponent - whole), whole)
    except OverflowError:
        return math.inf
    return max(found, math.ulp(0.0))


def normalised(size: float, low: list[float], high: list[float], n: int, p: float) -> float:
    """A distance d_p over volume^{1/p}, rounded up: what it is on average over the box of n tokens.

    It does not grow with the domain as d_p does. Beyond float64 it is infinity.
    """
    if size == 0:
        return 0.0
    exponent = -n * math.fsum(math.log2(b - a) for a, b in zip(low, high, strict=True)) / p
    if exponent == 0:
        return size
    whole = math.floor(exponent)
    try:
        found = math.ldexp(size * 2.0 ** (exponent - whole) * (1 + 2.0**-30), whole)
    except OverflowError:
        return math.inf
    return float(np.nextafter(found, math.inf))


def product_above(a: float, b: float) -> float:
    """At least a·b for numbers ≥ 0; 0 only if one of them is."""
    return 0.0 if a == 0 or b == 0 else float(np.nextafter(a * b, math.inf))


def _from_exponent(integral: float, p: float, exponent: float) -> float:
    """integral^{1/p} · 2^exponent, rounded up; the exponent's own rounding is far below that of ROUNDED_UP^{1/p}."""
    if not math.isfinite(integral):
        return math.inf
    if integral == 0:
        return 0.0
    whole = math.floor(exponent)
    try:
        found = math.ldexp((integral * ROUNDED_UP) ** (1 / p) * 2.0 ** (exponent - whole), whole)
    except OverflowError:
        return math.inf
    return float(np.nextafter(found, math.inf))


def _scaled(x: Any, exponent: Any) -> Any:
    """x · 2^exponent; plain multiplications by 1 are left out."""
    return np.ldexp(x, exponent) if np.any(exponent) else x


def _exponent(x: float) -> int:
    return math.frexp(x)[1] - 1
