"""Figures with few digits that are still true: an upper bound is printed rounded up, a lower bound rounded down.

Rounded to the nearest, half of all bounds would be printed smaller than they are, and what is printed is not proved.
The float's exact value is rounded, in decimal arithmetic. What was asked for or claimed has all its digits
(``plain_text.in_full``). A format such as ``:.3g`` is for what was measured, and is said to be.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Context, Decimal

_EXACT = Context(prec=1100)  # every float64 has fewer digits; and the caller's own context says nothing here


def rounded_up(x: float | Decimal, digits: int) -> str:
    """The least decimal of so many digits that is x or more, written as by the format ``g``: for ≤ and "at most"."""
    return _rounded(x, digits, ROUND_CEILING)


def rounded_down(x: float | Decimal, digits: int) -> str:
    """The greatest decimal of so many digits that is x or less: for ≥, "at least" and leads."""
    return _rounded(x, digits, ROUND_FLOOR)


def from_to(low: float, high: float) -> str:
    """The ends of a range that is proved, rounded outward."""
    return f"from {rounded_down(low, 6)} to {rounded_up(high, 6)}"


def cut(x: float, places: int) -> str:
    """Without the digits behind so many places: with four of them a share of 0.99996 is 0.9999, and never 1.0000."""
    if not math.isfinite(x):
        return f"{x:g}"
    shortest = Decimal(repr(float(x)))
    return f"{shortest.quantize(Decimal((0, (1,), -places)), ROUND_DOWN, _EXACT):f}"


def share_rounded_up(share: float) -> str:
    """A share of at most 1, with two digits below a tenth and in percent from there on."""
    if not 0.1 <= share <= 1:
        return rounded_up(share, 2)
    percent = _EXACT.multiply(Decimal(float(share)), 100)
    return f"{percent.quantize(Decimal('0.1'), ROUND_CEILING, _EXACT):f}%"


def in_percent(x: float) -> str:
    """A share with all its digits: a confidence of 0.9996 is 99.96%, and never 100%."""
    return f"{_EXACT.multiply(Decimal(repr(float(x))), 100).normalize(_EXACT):f}%"


def power_of_two(x: float) -> str:
    """One of them, exactly: ``2^-40``. As a decimal it would be another number, and for an assumption a larger one."""
    half, exponent = math.frexp(x)
    if half != 0.5:
        raise ValueError(f"{x!r} is not a power of two")
    return f"2^{exponent - 1}"


def _rounded(x: float | Decimal, digits: int, rounding: str) -> str:
    if not math.isfinite(x):
        return f"{float(x):g}"
    exact = Decimal(x if isinstance(x, int | Decimal) else float(x))
    found = Context(prec=digits, rounding=rounding).create_decimal(exact).normalize(_EXACT)
    if not found:
        return "0"
    exponent = found.adjusted()
    if -4 <= exponent < digits:
        return f"{found:f}"
    return f"{found.scaleb(-exponent, _EXACT):f}e{exponent:+03d}"
