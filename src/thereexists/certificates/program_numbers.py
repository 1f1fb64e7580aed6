"""Exact numbers: Python's whole numbers where they do, rationals elsewhere; and float64 bounds that are not lost.

A bound in float64 may underflow: a product of two numbers that are not 0 is then 0, and a large factor later does not
bring it back. So ``SMALLEST`` is added where a product is multiplied again, ``TINY`` where it is kept.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from flint import fmpq

Number = int | fmpq
SMALLEST = 5e-324  # more than one float64 product loses when it underflows
TINY = 2.0**-1000  # more than a sum of many of them does


def exact(value: Any) -> Number:
    """A float, an int or a rational as an exact number; whole numbers are ints."""
    if isinstance(value, int):
        return value
    if isinstance(value, fmpq):
        return int(value.p) if value.q == 1 else value
    value = float(value)
    return int(value) if value.is_integer() else fmpq(*value.as_integer_ratio())


def ratio(a: Number, b: Number) -> Number:
    if b == 1:
        return a
    if b == -1:
        return -a
    return exact(fmpq(a) / fmpq(b))


def linear_weights(settings: dict[str, Any]) -> list[Number]:
    """Of the operation ``linear``: its coefficients, over its divisor if it has one."""
    divisor = exact(settings.get("divisor", 1))
    return [ratio(exact(c), divisor) for c in settings["coefficients"]]


def below(number: Number) -> float:
    """The float64 at or just below a number."""
    found = float(number)
    return found if exact(found) <= number else math.nextafter(found, -math.inf)


def above(number: Number) -> float:
    return -below(-number)


def carried(error: np.ndarray, W: np.ndarray) -> np.ndarray:
    """At least Σ |W|·error over the last axes, for errors ≥ 0, up to the rounding of sums."""
    terms = (error != 0).astype(np.float64) @ (W != 0).astype(np.float64).T
    return error @ np.abs(W).T + terms * SMALLEST
