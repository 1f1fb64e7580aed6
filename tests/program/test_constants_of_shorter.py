"""Constants in programs for shorter sequences: their sums, means and maxima are over the tokens that are there."""

import numpy as np
import pytest

import thereexists as te
from thereexists import program as P

K = np.array([3.0, 2.0, 1.0, 0.0])
PROGRAMS = {
    "sum of ones": (lambda x: P.sum(P.constant(1.0, x)) + 0 * x, lambda k, X: np.full_like(X, len(k))),
    "mean first": (lambda x: P.mean(P.constant(K, x)) + x, lambda k, X: k.mean() + X),
    "sort first": (lambda x: P.sort(P.constant(K, x)) + x, lambda k, X: np.sort(k) + X),
    "max": (lambda x: x + P.max(P.constant(K, x)), lambda k, X: k.max() + X),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_reductions_count_the_tokens_that_are_there(name):
    make, wanted = PROGRAMS[name]
    witness = te.build(make(P.tokens(4, shorter=True)))
    for length in (1, 2, 4):
        X = np.linspace(0.1, 0.8, length)
        assert np.allclose(witness(X.reshape(1, -1, 1))[0, :, 0], wanted(K[:length], X), atol=1e-9)


def test_an_average_made_by_hand():
    x = P.tokens(4, shorter=True)
    witness = te.build(P.divide(P.sum(x), P.clip(P.sum(P.constant(1.0, x)), 1.0, 4.0), epsilon=1e-2))
    assert np.abs(witness(np.full((1, 2, 1), 0.8)) - 0.8).max() <= 1e-2


def test_a_box_without_numbers_of_a_dtype_is_not_tried_there(tmp_path):
    te.build(P.max(P.tokens(2, low=1e20, high=1.001e20))).save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds
