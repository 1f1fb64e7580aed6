"""Ball arithmetic contains the truth: every operation against Arb, on numbers of every size."""

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from thereexists.arithmetic import balls
from thereexists.arithmetic.balls import Ball

MIDS = st.floats(-1e12, 1e12).map(lambda x: 0.0 if abs(x) < 1e-100 else x)
RADS = st.sampled_from([0.0, 1e-300, 1e-20, 1e-3, 1.0])


@pytest.fixture(autouse=True)
def _enough_precision():
    """1e12 and 1e-300 in one exact sum need 1,100 bits, products of two such sums twice that."""
    before, ctx.prec = ctx.prec, 4000
    yield
    ctx.prec = before


def contains(ball, exact):
    """|exact − mid| ≤ rad, decided by Arb."""
    return all(
        bool(abs(value - arb(float(m))) <= arb(float(r)))
        for value, m, r in zip(exact, np.ravel(ball.mid), np.ravel(ball.rad), strict=True)
    )


def corners(mid, rad):
    return [arb(mid) - arb(rad), arb(mid), arb(mid) + arb(rad)]


@given(MIDS, RADS, MIDS, RADS)
def test_sums_and_products_contain_the_truth(a, ra, b, rb):
    x, y = Ball(np.array([a]), np.array([ra])), Ball(np.array([b]), np.array([rb]))
    for p in corners(a, ra):
        for q in corners(b, rb):
            assert contains(balls.add(x, y), [p + q])
            assert contains(balls.subtract(x, y), [p - q])
            assert contains(balls.multiply(x, y), [p * q])


@given(st.integers(-(2**26), 2**26), st.integers(-(2**26), 2**26), st.integers(-20, 20))
def test_exact_operations_have_radius_zero(a, b, e):
    x, y = balls.exact([float(a) * 2.0**e]), balls.exact([float(b) * 2.0**e])
    for result in (balls.add(x, y), balls.multiply(x, y)):
        assert result.rad[0] == 0


@given(st.floats(-1000, 50), RADS)
def test_exponential_contains_the_truth(a, ra):
    result = balls.exponential(Ball(np.array([a]), np.array([ra])))
    for p in corners(a, ra):
        assert contains(result, [p.exp()])


@given(st.floats(-50, 50))
def test_exponential_is_tight(a):
    result = balls.exponential(balls.exact([a]))
    assert result.rad[0] <= 2.0**-44 * result.mid[0]  # 24 steps of rounding, each 2^-52, and room


@given(st.floats(1e-3, 1e6), st.sampled_from([0.0, 1e-12, 1e-4]))
def test_reciprocal_contains_the_truth(a, ra):
    result = balls.reciprocal(Ball(np.array([a]), np.array([ra])))
    for p in corners(a, ra):
        assert contains(result, [1 / p])


@given(MIDS, RADS)
def test_relu_contains_the_truth(a, ra):
    result = balls.relu(Ball(np.array([a]), np.array([ra])))
    for p in corners(a, ra):
        assert contains(result, [p if p > 0 else arb(0)])


@given(st.lists(st.tuples(MIDS, MIDS), min_size=1, max_size=6))
def test_long_dot_products_cancel_to_twice_the_precision(pairs):
    x, y = np.array(pairs).T
    x, y = np.concatenate([x, x]), np.concatenate([y, -y])
    x[0] += 1.0
    truth = sum((arb(float(a)) * arb(float(b)) for a, b in zip(x, y, strict=True)), arb(0))
    result = balls.dot_of_floats(x[None], y[None])
    assert contains(result, [truth])
    assert result.rad[0] <= 2.0**-90 * np.abs(x * y).sum() + 2.0**-52 * abs(result.mid[0]) + 1e-290


def test_a_radius_that_forgets_the_rounding_is_caught():
    """Plant the classic mistake, adding midpoints and radii only: the containment test notices."""
    x, y = Ball(np.array([0.1]), np.array([0.0])), Ball(np.array([0.2]), np.array([0.0]))
    careless = Ball(x.mid + y.mid, x.rad + y.rad)
    truth = [arb(0.1) + arb(0.2)]
    assert contains(balls.add(x, y), truth)
    assert not contains(careless, truth)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_overflow_never_looks_like_knowledge(bad):
    result = balls.exponential(Ball(np.array([0.0]), np.array([bad])))
    assert not np.isfinite(result.rad[0])
