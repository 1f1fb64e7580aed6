"""Exact numbers: Python's whole numbers where they do, rationals elsewhere."""

from __future__ import annotations

import math
from typing import Any

from flint import fmpq

Number = int | fmpq


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


def below(number: Number) -> float:
    """The float64 at or just below a number."""
    found = float(number)
    return found if exact(found) <= number else math.nextafter(found, -math.inf)


def above(number: Number) -> float:
    return -below(-number)
