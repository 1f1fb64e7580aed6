"""What is printed of a bound is true: rounded up for an upper bound, down for a lower one, by less than one unit."""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal, Inexact, Rounded, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thereexists.core.rounded_figures import cut, in_percent, rounded_down, rounded_up, share_rounded_up

_floats = st.floats(allow_nan=False, allow_infinity=False)
_digits = st.integers(1, 17)


def _unit(x: float, digits: int) -> Fraction:
    """Of the last of so many digits of x."""
    size, exponent = abs(Fraction(x)), 0
    while size >= 10:
        size, exponent = size / 10, exponent + 1
    while size < 1:
        size, exponent = size * 10, exponent - 1
    return Fraction(10) ** (exponent - digits + 1)


@given(_floats, _digits)
def test_up_is_never_less_and_down_never_more(x: float, digits: int) -> None:
    low, high = Fraction(rounded_down(x, digits)), Fraction(rounded_up(x, digits))
    assert low <= Fraction(x) <= high
    if x:
        assert max(high - Fraction(x), Fraction(x) - low) < _unit(x, digits)
    assert rounded_down(-x, digits) == (f"-{rounded_up(x, digits)}".removeprefix("--") if x else "0")


@given(_floats, _digits)
def test_it_is_written_like_g(x: float, digits: int) -> None:
    """One of the two is the nearest, and what is exact with so few digits stays as short as it was."""
    nearest = f"{x:.{digits}g}".replace("-0", "0") if x == 0 else f"{x:.{digits}g}"
    assert nearest in (rounded_up(x, digits), rounded_down(x, digits))
    if Fraction(nearest) == Fraction(x):
        assert rounded_up(x, digits) == rounded_down(x, digits) == nearest


@pytest.mark.parametrize(
    ("x", "digits", "up", "down"),
    [
        (0.10287221114, 6, "0.102873", "0.102872"),
        (0.0, 4, "0", "0"),
        (-0.0, 4, "0", "0"),
        (2, 4, "2", "2"),
        (0.5, 6, "0.5", "0.5"),
        (0.1, 3, "0.101", "0.1"),
        (9999.5, 4, "1e+04", "9999"),
        (1.2341e-7, 4, "1.235e-07", "1.234e-07"),
        (math.inf, 4, "inf", "inf"),
        (math.nan, 4, "nan", "nan"),
        (-math.inf, 4, "-inf", "-inf"),
        (1.7976931348623157e308, 3, "1.8e+308", "1.79e+308"),
        (Decimal("1.235e-7"), 4, "1.235e-07", "1.235e-07"),
        (5e-324, 2, "5e-324", "4.9e-324"),
    ],
)
def test_some_figures(x: float | Decimal, digits: int, up: str, down: str) -> None:
    assert (rounded_up(x, digits), rounded_down(x, digits)) == (up, down)


@given(st.floats(0, 1))
def test_a_share_is_rounded_up(share: float) -> None:
    shown = share_rounded_up(share)
    value = Fraction(shown.rstrip("%")) / (100 if shown.endswith("%") else 1)
    assert Fraction(share) <= value < Fraction(share) + Fraction(1, 1000)


@pytest.mark.parametrize("rounding", [ROUND_DOWN, ROUND_UP])
def test_the_callers_decimal_context_says_nothing(rounding: str) -> None:
    numbers = (0.0871234567, 1234567.891, 1e-30 / 3, 0.99996, 5e-324)

    def told() -> list[str]:
        figures = [tell(x, digits) for tell in (rounded_up, rounded_down, cut) for digits in (1, 3, 6) for x in numbers]
        return figures + [tell(min(x, 1.0)) for tell in (in_percent, share_rounded_up) for x in numbers]

    wanted = told()
    with localcontext(Context(prec=2, rounding=rounding, traps=[Inexact, Rounded])):
        assert told() == wanted
