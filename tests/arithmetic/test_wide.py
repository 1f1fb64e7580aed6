"""Products of wide layers: enclosures hold the exact product, and are points only where floats are exact."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thereexists.arithmetic.balls import Ball
from thereexists.arithmetic.wide import feed_forward, linear

numbers = st.floats(min_value=-1e3, max_value=1e3, allow_nan=False, width=64)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8), numbers)
@settings(max_examples=200, deadline=None)
def test_the_exact_product_is_inside(pairs, bias):
    x, w = (np.array([side]) for side in zip(*pairs, strict=True))
    ball = linear(Ball(x, np.zeros_like(x)), w, np.array([bias]))
    exact = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(bias))
    assert abs(exact - Fraction(float(ball.mid[0, 0]))) <= Fraction(float(ball.rad[0, 0]))


@pytest.mark.parametrize(("mid", "rad"), [(2.0**-600, 0.0), (0.0, 2.0**-600)])
def test_a_product_that_underflows_is_not_taken_for_zero(mid, rad):
    assert linear(Ball(np.array([[mid]]), np.array([[rad]])), np.array([[2.0**-600]])).rad[0, 0] > 0


def test_whole_numbers_stay_points():
    ball = linear(Ball(np.arange(6.0)[None], np.zeros((1, 6))), np.ones((1, 6)), np.array([0.5]))
    assert (ball.mid[0, 0], ball.rad[0, 0]) == (15.5, 0.0)


def test_what_overflows_on_the_way_is_unknown_not_closed():
    """1e308 + 1e308 − 1e308 − 1e308 may be anything to a float; the unit may be open, and what it writes is unknown."""
    z = np.array([[1e158, 1e158, 1.5e158, 1.5e158, 0.0, 7.0]])
    W_1, W_2 = np.array([[-1e150, -1e150, 1e150, 1e150, 0.0, 0.0]]), np.zeros((6, 1))
    W_2[4, 0] = 1e-150  # exactly 1e158
    with np.errstate(over="ignore", invalid="ignore"):
        out = feed_forward(Ball(z, np.zeros_like(z)), W_1, np.zeros(1), W_2, np.zeros(6))
    assert not np.isfinite(out.rad[0, 4]) or abs(out.mid[0, 4] - 1e158) <= out.rad[0, 4]
    assert (out.mid[0, 5], out.rad[0, 5]) == (7.0, 0.0)  # rows that the unit does not write are as they were


@pytest.mark.parametrize("units", [1, 12])
def test_an_unknown_unit_says_nothing_of_the_rows_it_does_not_write(units):
    z, W_1, W_2 = np.array([[1e200, 1.0, 0.0, 0.0]]), np.zeros((units + 1, 4)), np.zeros((4, units + 1))
    W_1[0, 0], W_1[1:, 1] = -1e150, 1.0
    W_2[2, 0], W_2[3, 1:] = 1.0, 2.0
    with np.errstate(over="ignore", invalid="ignore"):
        out = feed_forward(Ball(z, np.zeros_like(z)), W_1, np.zeros(units + 1), W_2, np.zeros(4))
    assert not np.isfinite(out.rad[0, 2])
    assert (out.mid[0, 3], out.rad[0, 3]) == (2.0 * units, 0.0)
