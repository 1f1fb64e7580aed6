"""Errors that underflow to 0 in float64 on their way, and that large factors then would have to bring back."""

from fractions import Fraction

import numpy as np
import pytest

import thereexists as te
from thereexists import program as P

SMALL_THEN_LARGE = [1e-200] * 2 + [1e20] * 20  # their product is 1

STEPS = {
    "linear": lambda y, c: y * c,
    "mix": lambda y, c: y @ [[c]],
    "scale": lambda y, c: y * np.array([[c]]),
    "convolve": lambda y, c: P.convolve(y, [c]),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_an_error_is_not_lost_on_its_way(step):
    x = P.tokens(n=1)
    y = P.apply(np.sin, x, epsilon=0.1)
    for c in SMALL_THEN_LARGE:
        y = step(y, c)
    witness = te.build(y)
    X = np.linspace(0, 1, 500)[:, None, None]
    assert np.abs(witness(X) - np.sin(X)).max() > 0.01  # its spline is coarse
    assert witness.certificate.bound >= np.abs(witness(X) - np.sin(X)).max()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("low", "high", "power", "count"),
    [(1e-310, 1e-300, 2, 20), (-1e-170, 1e-170, 2, 12), (-1e-120, 1e-120, 3, 12), (1e-310, 1e-300, 2, 0)],
)
def test_a_curve_below_the_smallest_number_is_not_0(low, high, power, count):
    y = P.tokens(1, low=low, high=high) ** power
    for _ in range(count):
        y = P.abs(y * 2.0**100)
    witness = te.build(y)
    exact = Fraction(high) ** power * 2 ** (100 * count)
    found = Fraction(float(witness(np.full((1, 1), high))[0, 0]))
    assert abs(found - exact) <= Fraction(witness.certificate.bound)
    assert witness.certificate.bound > 0


def test_what_is_carried_is_no_less_than_the_exact_sum():
    from thereexists.certificates.program_numbers import carried

    rng = np.random.default_rng(0)
    error, W = (2.0 ** rng.integers(-1000, 0, shape) * rng.random(shape) for shape in ((4, 7), (3, 7)))
    error[rng.random(error.shape) < 0.3] = 0
    found = carried(error, -W)
    for i, row in enumerate(error):
        for j, w in enumerate(W):
            exact = sum(Fraction(a) * Fraction(b) for a, b in zip(row, w, strict=True))
            assert exact <= Fraction(found[i, j]) * (1 + Fraction(1, 2**40))
    assert not carried(np.zeros((4, 7)), W).any()
