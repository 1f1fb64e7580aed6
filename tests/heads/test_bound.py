"""The theorem is the test: at the derived size one draw succeeds more often than not."""

import math
from itertools import pairwise

import flint
import numpy as np
import pytest
from scipy.sparse import csr_array

import thereexists.heads as heads
from thereexists.core.errors import InvalidInput
from thereexists.heads import projection
from thereexists.heads.bound import corrected_hidden_size, log_height
from thereexists.heads.corrected import correct, random_keys
from thereexists.heads.fit import FitOptions, check_proposal
from thereexists.heads.matrix import as_matrix


@pytest.mark.parametrize(("length", "k"), [(8, 1), (16, 2), pytest.param(32, 3, marks=pytest.mark.slow)])
def test_the_projection_succeeds_at_the_theorems_size(length, k):
    eps1, eps2 = 0.5, 3.0
    options = FitOptions(eps1=eps1, eps2=eps2, method="projection")
    wins = 0
    for seed in range(9):
        target = heads.random_matrix(length, k, 2.0, seed)
        m = heads.theorem_hidden_size(length, k, target.gamma, eps1, eps2) // 2
        queries, keys = projection.project(target, m, eps1=eps1, eps2=eps2, seed=seed)
        wins += bool(check_proposal(target, options, "projection", queries, keys, seed, {}).verification.verdict.holds)
    assert wins > 4  # the bound promises more than half; a union bound is generous, all nine are expected


@pytest.mark.parametrize(("length", "k"), [(16, 1), (64, 2), (128, 3)])
def test_the_corrected_projection_separates_at_its_size(length, k):
    """Below coherence 1/(2k-1) every row separates; the draw reaches that with probability above one half."""
    target = heads.random_matrix(length, k, 2.0, 0)
    m = corrected_hidden_size(length, k) // 2
    wins = sum(len(correct(target, random_keys(length, m, seed), eps1=1e-3).failed) == 0 for seed in range(9))
    assert wins > 4


def test_an_entry_error_of_half_the_log_is_exactly_what_is_allowed():
    """Adversarial errors of size t = log(1+eps2)/2 meet both tolerances with equality."""
    eps1, eps2 = 0.01, 0.5
    t = math.log1p(eps2) / 2
    height = log_height(1.0, eps1, eps2)
    leakage = math.exp(t - (height - t))
    ratio = math.exp(t - (-t)) - 1
    ulp = 2.0**-50  # a handful of roundings of numbers of size one
    assert abs(leakage / eps1 - 1) <= ulp
    assert abs(ratio / eps2 - 1) <= ulp


@pytest.mark.parametrize(
    ("length", "k", "gamma", "eps1", "eps2"),
    [
        (4096, 4, 2.0, 1e-3, 1e-10),
        (1024, 2, 2.0, 1e-3, 1e-12),
        (134217728, 55, 2.0, 1.0400246220215967e-06, 0.00023279721693546612),
        (1 << 62, 1 << 62, 1e308, 1e-100, 1e-30),
        (1, 1, 1.0, 0.5, 1e308),
    ],
)
def test_the_theorems_size_is_the_least_that_the_union_bound_covers(length, k, gamma, eps1, eps2):
    """In balls: at m the failures of all entries weigh at most one half, at m − 1 more."""
    m = heads.theorem_hidden_size(length, k, gamma, eps1, eps2) // 2
    with flint.ctx.workprec(2048):
        log_ratio = (1 + flint.arb(eps2)).log()
        b, t = flint.arb(gamma).log() + log_ratio - flint.arb(eps1).log(), log_ratio / 2
        fails = [2 * flint.arb(length) ** 2 * (-t * t * size / (2 * k * b * b)).exp() for size in (m, m - 1)]
    assert fails[0] < 0.5
    assert fails[1] > 0.5


def test_the_size_grows_linearly_in_log_length_and_in_k():
    sizes = [heads.theorem_hidden_size(2**e, 2, 2.0, 1e-3, 1e-2) for e in range(4, 20)]
    steps = [b - a for a, b in pairwise(sizes)]
    assert max(steps) - min(steps) <= 4  # equal up to the two ceilings
    one, two = (heads.theorem_hidden_size(1024, k, 2.0, 1e-3, 1e-2) for k in (1, 2))
    assert abs(two - 2 * one) <= 4


def test_bounds_lists_every_method():
    found = heads.bounds(4096, 4, 2.0, 1e-3, 1e-2)
    assert found.moments_hidden_size == 16
    assert found.trivial_hidden_size == 8192
    assert found.moments_hidden_size < found.corrected_hidden_size < found.theorem_hidden_size


@pytest.mark.parametrize(
    "arguments", [(0, 1, 2.0, 0.1, 0.1), (4, 5, 2.0, 0.1, 0.1), (4, 1, 0.9, 0.1, 0.1), (4, 1, 2.0, 1.5, 0.1)]
)
def test_a_senseless_class_is_refused(arguments):
    with pytest.raises(InvalidInput):
        heads.bounds(*arguments)


def test_a_target_outside_the_class_is_named():
    target = as_matrix(csr_array(np.array([[1.0, 1, 0], [0, 1, 0], [0, 1, 1]])))
    assert heads.bounds_for(target, 1e-3, 1e-2).k == 3
    with pytest.raises(InvalidInput, match="Column 1 of the target has 3"):
        heads.bounds_for(target, 1e-3, 1e-2, k=2)
    with pytest.raises(InvalidInput, match="Row 0 of the target has 2"):
        heads.bounds_for(target, 1e-3, 1e-2, k=1)
