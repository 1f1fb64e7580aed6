"""Bounds far from 1: no power and no product underflows to 0 or overflows, below or above."""

import dataclasses
import math

import numpy as np
import pytest

import thereexists as te
from thereexists.certificates.units import SMALLEST, TINY, Units, norm, product_above


def true_distance(witness, p, samples=2000):
    """A Monte Carlo estimate of d_p, computed with logarithms."""
    target = witness.target
    width = target.high - target.low
    X = target.low + width * np.random.default_rng(0).random((samples, target.n, target.d))
    error = np.abs(target(X) - witness(X)).reshape(samples, -1)
    log = p * np.log(error, out=np.full(error.shape, -math.inf), where=error > 0)
    largest = log.max()
    mean = largest + math.log(np.exp(log - largest).sum(axis=1).mean())
    return math.exp((target.n * np.log(width).sum() + mean) / p)


CASES = {  # exponents of the width of the domain and of the largest value, p
    "as found": (-166, -14, 64),
    "a small value": (0, -60, 64),
    "a small domain": (-150, 0, 16),
    "a large domain": (160, 3, 64),
    "a large value": (0, 133, 16),
    "both large": (160, 150, 33),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("construction", ["faithful", "compact"])
@pytest.mark.parametrize("case", CASES)
def test_a_bound_is_above_the_truth_and_not_far_above_it_at_any_size(case, construction, tmp_path):
    width, size, p = (2.0**k if i < 2 else k for i, k in enumerate(CASES[case]))

    def interval(low, high):  # powers of two: no product rounds
        return (size / width) * low, (size / width) * high

    target = te.Target(
        lambda X: (size / width) * X, n=2, domain=(0.0, width), lipschitz=size / width, interval=interval
    )
    witness = te.build(target, delta=1 / 2, construction=construction)
    certificate = te.certify(witness, p=p, opinions=1)
    truth = true_distance(witness, p)
    everything = 2 * size * (2 * width**2) ** (1 / p)
    assert 0 < truth <= certificate.bound <= 4 * everything
    witness.save(tmp_path / "w")
    certificate.save(tmp_path / "w")
    verdict = te.verify(tmp_path / "w", target, opinions=1)
    assert verdict.holds, verdict.reasons


def test_the_float_run_on_a_small_domain_is_measured_against_a_distance_there(tmp_path):
    """d_p carries the volume to the power 1/p; the rounding of one value does not."""
    width, size = 3e-27, 1e40
    steep = 7.1 * size / width
    target = te.Target(lambda X: np.sin(7 * X / width) * size, n=1, d=2, domain=(0.0, width), lipschitz=steep)
    witness = te.build(target, delta=1 / 3)
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1).save(tmp_path / "w")
    verdict = te.verify(tmp_path / "w", target, opinions=1)
    assert verdict.holds, verdict.reasons


def test_a_part_of_a_tiny_bound_is_not_claimed_to_be_zero(tmp_path):
    """Agreement is relative to the bound: 1e-40 is not 0 because both are small."""
    target = te.Target(
        lambda X: 2.0**-130 * X,
        n=1,
        lipschitz=2.0**-130,
        interval=lambda low, high: (2.0**-130 * low, 2.0**-130 * high),
    )
    witness = te.build(target, delta=1 / 2)
    certificate = te.certify(witness, opinions=1)
    witness.save(tmp_path / "w")
    dataclasses.replace(certificate, parts={**certificate.parts, "grid": 0.0}).save(tmp_path / "w")
    assert te.verify(tmp_path / "w", target, opinions=1).holds is False


def test_powers_products_and_roots_are_rounded_up():
    units = Units(-500, (-300,))
    assert units.power(0.0, 2.0) == TINY
    assert units.power(2.0**-500, 64.0) == 1.0
    assert units.power(2.0**600, 64.0) == math.inf
    assert units.times(SMALLEST, TINY) == SMALLEST
    assert units.volumes(np.full((1, 40, 1), 2.0**-1000)) == SMALLEST
    assert units.root(1.0, 2.0, n=1) >= 2.0**-650
    assert Units(-1000, (-100,)).root(1.0, 1.0, n=2) == 5e-324  # the smallest number, not 0
    assert Units(1000, (100,)).root(1.0, 1.0, n=2) == math.inf
    assert units.root(math.nan, 2.0, n=1) == math.inf
    assert units.root(0.0, 2.0, n=1) == 0.0


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1.0, 1e300])
def test_the_norm_of_the_parts(size):
    assert norm([size, 0.0, 0.0], 64.0) == size
    assert norm([0.0, 0.0, 0.0], 64.0) == 0.0
    assert size <= norm([size, size, size], 64.0) * (1 + 1e-12)
    assert norm([math.nan, size, 0.0], 64.0) == norm([size, math.nan, 0.0], 64.0) == math.inf
    assert product_above(size, 1e-20) > 0


def test_ordinary_problems_have_no_units():
    target = te.Target(np.cos, n=3, d=2, domain=(-2.0, 3.0), lipschitz=1.0)
    assert Units.of(target, 2.0, [1.0, 3.0]) == Units()


def test_the_estimate_and_the_plan_leave_no_range_either():
    for exponent in (-60, 90):
        scale = 10.0**exponent
        target = te.Target(lambda X, scale=scale: scale * X, n=2, lipschitz=scale, equivariant=True)
        witness = te.build(target, delta=1 / 2, p=64)
        estimate = witness.estimate_distance(p=64, samples=256)
        assert 0.01 * scale < estimate.estimate < 10 * scale
