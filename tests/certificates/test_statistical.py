"""Statistical certificates: whoever chooses the seed chooses the points, so verify believes no seed."""

import math

import numpy as np
import pytest

import thereexists as te
from thereexists.certificates.statistical import _Errors, established
from thereexists.functions.anywhere import anywhere

SAMPLES, CONFIDENCE = 200, 0.9


def rarely_one(share):
    """f = 1 on a small share of the domain, which no coarse network knows."""
    return te.Target(lambda X: np.where(share > X, 1.0, 0.0), n=1, bound=1.0)


@pytest.fixture(scope="module")
def network():
    witness = te.build(rarely_one(0.04), delta="1/4", construction="compact")
    assert not witness(np.array([[[0.02]], [[0.9]]])).any()
    return witness


def test_a_seed_that_was_searched_for_does_not_help(network, tmp_path):
    log = math.log(2 / (1 - CONFIDENCE))
    share = 1.08 * 7 * log / (3 * (SAMPLES - 1))  # just above what a sample that sees nothing proves
    target = rarely_one(share)
    seeds = (s for s in range(10**6) if (np.random.default_rng(s).random((SAMPLES, 1, 1)) >= share).all())
    certificate = te.certify(network, target=target, seed=next(seeds), confidence=CONFIDENCE, samples=SAMPLES)
    assert certificate.bound < share  # the claim is false
    network.save(tmp_path / "w")
    certificate.save(tmp_path / "w")
    verdicts = [te.verify(tmp_path / "w", target, opinions=1) for _ in range(6)]
    refused = [v for v in verdicts if any(reason.startswith("bound: ") for reason in v.reasons)]
    assert len(refused) >= 5  # at a level of 1 % each


def test_honest_certificates_are_established(network):
    target = rarely_one(0.04)
    B = te.certify(network, target=target, samples=100).output_bound
    found = []
    for seed in range(40):
        claim = te.certify(network, target=target, seed=seed, samples=400, opinions=1).bound
        found.append(established(claim, target, network.grid, network, 1.0, 0.99, 400, B).holds)
    assert found.count(True) >= 38
    assert False not in found


@pytest.mark.slow
def test_a_false_claim_is_established_no_more_often_than_stated_and_a_true_one_not_refuted(network):
    target = rarely_one(0.04)
    B = te.certify(network, target=target, samples=100).output_bound
    below = [established(0.0395, target, network.grid, network, 1.0, 0.5, 100, B).holds for _ in range(20)]
    above = [established(0.0405, target, network.grid, network, 1.0, 0.5, 100, B).holds for _ in range(20)]
    assert below.count(True) <= 2
    assert above.count(False) <= 2
    far = [established(0.001, target, network.grid, network, 1.0, 0.9, 400, B) for _ in range(5)]
    assert all(one.holds is False for one in far)


def test_high_powers_of_large_and_small_errors(network):
    for scale in (1e-80, 1e60):
        target = te.Target(lambda X, scale=scale: scale * np.round(3 * X) / 3, n=2, bound=scale)
        witness = te.build(target, delta=1 / 4)
        bound = te.certify(witness, p=64, samples=500, opinions=1).bound
        assert 0 < bound < 100 * scale


def test_points_are_drawn_anywhere_and_not_on_the_lattice_of_a_generator():
    """A network that is right at multiples of 2^-53, and wrong beside them, is seen."""
    rng = np.random.default_rng(0)
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (-3.0, 1.0)):
        X = anywhere(rng, low, high, 20_000)
        assert X.min() >= low
        assert X.max() <= high
        small = X[np.abs(X) < (high - low) / 8]
        beside = np.mod(small * 2.0**53, 1.0) != 0
        assert beside.mean() > 0.5
        shares = np.histogram(X, 16, (low, high))[0] / len(X)
        assert np.abs(shares - 1 / 16).max() < 4 * np.sqrt(1 / 16 / len(X))


def test_a_run_that_is_right_on_the_lattice_alone_has_no_small_bound():
    nothing = te.Target(np.zeros_like, n=1, d=1, lipschitz=0.0)
    witness = te.build(nothing, delta=1 / 2)
    grid, on_the_lattice = witness.grid, lambda X: np.mod(X * 2.0**53, 1.0) == 0
    errors = _Errors(nothing, grid, lambda X: np.where(on_the_lattice(X), 0.0, 1.0), 1.0, 1.0, [1.0], 1.0, 2.0)
    assert errors.drawn(np.random.default_rng(1), 4096).mean() > 0.25
