"""Products of wide layers: enclosures hold the exact product, and are points only where floats are exact."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thereexists.arithmetic.balls import Ball
from thereexists.arithmetic.wide import linear

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
