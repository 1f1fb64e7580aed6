"""``epsilon`` of splines and products, against exact arithmetic: kept where it is stated, counted where it is not."""

from fractions import Fraction

import numpy as np
import pytest

import thereexists as te
from thereexists import program as P
from thereexists.constructions.program.kept_errors import own_error
from thereexists.core.errors import CannotBuild, InvalidInput

LOWS = [0.0, 1e5, 1e7, 1e9, 1e12, 1e15]


def squares(low):
    """How the square is written, by the operation that stands for it."""
    x = P.tokens(2, low=low, high=low + 1)
    return {
        "apply": lambda epsilon: P.apply(np.square, x, epsilon=epsilon),
        "own": lambda epsilon: P.apply(lambda t: t * t, x, epsilon=epsilon, curvature=2.0),
        "multiply": lambda epsilon: P.multiply(x, x, epsilon=epsilon),
    }


def between(knots, values, at):
    j = min(max(int(np.searchsorted(knots, float(at), side="right")), 1), len(knots) - 1)
    (a, b), (u, v) = ([Fraction(float(number)) for number in pair[j - 1 : j + 1]] for pair in (knots, values))
    return u + (v - u) * (at - a) / (b - a)


def worst(node, low):
    """By how much the square is missed at some hundred numbers, without rounding."""
    s, off = node.settings, Fraction(0)
    for at in (Fraction(low) + Fraction(i, 128) for i in range(129)):
        if node.operation == "apply":
            found = between(s["knots"], s["values"], at)
        else:
            t = Fraction(s["balance"])
            plus, minus = (
                between(s[side], s[side] ** 2, y) for side, y in (("plus", t * at + at), ("minus", t * at - at))
            )
            found = (plus - minus) / (4 * t)
        off = max(off, abs(found - at * at))
    return off


@pytest.mark.parametrize("how", ["apply", "own", "multiply"])
@pytest.mark.parametrize("low", LOWS)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 2.0**-10])
def test_an_epsilon_that_is_stated_is_kept_or_refused(how, low, epsilon):
    if low * low * 2.0**-53 > epsilon:
        with pytest.raises(InvalidInput, match=r"cannot keep epsilon|closer together"):
            squares(low)[how](epsilon)
    else:
        node = squares(low)[how](epsilon)
        assert worst(node, low) <= Fraction(own_error(node)) <= Fraction(epsilon)


@pytest.mark.parametrize("how", ["apply", "multiply"])
@pytest.mark.parametrize("low", LOWS)
def test_the_default_gives_way_and_what_it_leaves_is_counted(how, low):
    node = squares(low)[how](None)
    assert worst(node, low) <= Fraction(own_error(node)) <= Fraction(max(1e-3, 2.0**-50 * (low + 1) ** 2))


def test_knots_that_float64_does_not_tell_apart_are_refused_in_a_sentence():
    x = P.tokens(2, low=1e15, high=1e15 + 1)
    with pytest.raises(InvalidInput, match="knots closer together than float64 tells numbers apart from 1"):
        P.apply(lambda t: 0 * t, x, curvature=1.0, epsilon=1e-6)
    with pytest.raises(InvalidInput, match="cannot keep epsilon"):
        P.multiply(x, x, epsilon=1e-3)
    assert te.build(x * x).certificate.parts["approximation"] > 1.0


def test_a_quotient_keeps_its_epsilon_or_is_refused():
    x = P.tokens(2, low=1.0, high=1.0 + 1e-6)
    assert P.compile(P.divide(1.0, x, epsilon=1e-4)).approximation <= 1e-4
    with pytest.raises(InvalidInput, match="'divide' cannot keep"):
        P.divide(1e14, x, epsilon=1e-4)
    assert P.compile(1e14 / x).approximation > 1e-3


def test_finer_splines_stop_where_float64_does():
    x = P.tokens(2, low=1e12, high=1e12 + 0.01)
    with pytest.raises(CannotBuild, match="more than epsilon"):
        te.build(x * x, epsilon=1e-3)
