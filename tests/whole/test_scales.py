"""Targets of every size, 1e-300 to 1e300: each builds, certifies and verifies, or is refused when it is built."""

import numpy as np
import pytest

import thereexists as te
from thereexists.functions.grid import Grid
from thereexists.functions.targets import builtin

SHORT = (-300, 16, 101)
ALL = (-300, -250, -200, -160, -150, -140, -130, -121, -120, -110, -60, -30, -16, -9, -4)
ALL += (0, 4, 9, 12, 15, 16, 17, 20, 30, 60, 90, 99, 101, 150, 200, 300)
FUNCTIONS = {  # with Lipschitz constants for a factor of 1
    "cosine": (np.cos, 1.0),
    "from tiny to 1": (lambda X: np.exp(-600.0 * X), 600.0),
    "around 0": (lambda X: np.sin(5.0 * X), 5.0),
}


def check(exponent, construction, equivariant, what, folder):
    scale, (f, lipschitz) = 10.0**exponent, FUNCTIONS[what]
    target = te.Target(lambda X: scale * f(X), n=2, lipschitz=scale * lipschitz, equivariant=equivariant)
    if exponent > 100:
        with pytest.raises(te.ThereExistsError, match="beyond 1e"):
            te.build(target, delta=1 / 4, construction=construction)
        return
    witness = te.build(target, delta=1 / 4, construction=construction)
    witness.save(folder)
    certificate = te.certify(witness, opinions=2)
    certificate.save(folder)
    verdict = te.verify(folder, target, opinions=2)
    assert verdict.holds, verdict.reasons
    if exponent > -9:
        assert witness.estimate_distance(samples=512).low <= certificate.bound
        assert certificate.parts["network"] <= 1e-12 * certificate.bound + 1e-280


@pytest.mark.sampled(3)
@pytest.mark.parametrize("construction", ["faithful", "compact"])
@pytest.mark.parametrize("exponent", SHORT)
def test_a_few_scales(exponent, construction, tmp_path):
    check(exponent, construction, False, "cosine", tmp_path / "w")


def test_values_in_the_last_bits_of_the_columns(tmp_path):
    check(-16, "faithful", False, "around 0", tmp_path / "w")


def test_values_of_very_different_sizes(tmp_path):
    check(0, "compact", False, "from tiny to 1", tmp_path / "w")


@pytest.mark.slow
@pytest.mark.parametrize("what", FUNCTIONS)
@pytest.mark.parametrize("equivariant", [False, True])
@pytest.mark.parametrize("construction", ["faithful", "compact"])
@pytest.mark.parametrize("exponent", ALL)
def test_every_scale(exponent, construction, equivariant, what, tmp_path):
    check(exponent, construction, equivariant, what, tmp_path / "w")


HUGE = {
    "a volume of 1e360": (lambda: builtin("token-sine", n=3, domain=(0, 1e120)), 2),
    "a volume of 1e396": (lambda: builtin("sort", n=4, domain=(0, 1e99)), 3),
    "a volume of 1e297, and values of 1e99": (lambda: builtin("sort", n=3, domain=(0, 1e99)), 2),
}


@pytest.mark.parametrize("construction", ["faithful", "compact"])
@pytest.mark.parametrize("what", HUGE)
def test_infinity_is_no_prediction(what, construction):
    """What float64 holds is predicted; else one sentence says which p would do, and that p does."""
    target, larger = HUGE[what]
    for request in ({"delta": 1 / 2}, {"epsilon": 1e300}):
        with pytest.raises(te.ThereExistsError, match=rf"beyond float64.* Choose p = {larger} or larger"):
            te.plan(target(), construction=construction, **request)
    error = te.plan(target(), delta=1 / 2, p=float(larger), construction=construction).error
    assert error is not None
    assert 0 < error.total < np.inf


def test_infinity_is_no_measurement():
    """A target that claims nothing has no prediction, and a measured d_1 beyond float64 is refused all the same."""
    witness = te.build(te.Target(lambda X: X / 2, n=3, domain=(0, 1e99)), delta=1 / 2)
    with pytest.raises(te.ThereExistsError, match="beyond float64"):
        witness.estimate_distance(samples=512)
    assert witness.estimate_distance(p=2.0, samples=512).high < np.inf


@pytest.mark.parametrize("construction", ["faithful", "compact"])
def test_hopeless_sizes_are_refused_before_a_grid_is_laid(construction, monkeypatch):
    """From n, d and N alone: a grid of many features takes seconds, and no array of them is needed to say no."""
    monkeypatch.setattr(Grid, "__post_init__", lambda grid: pytest.fail("a grid was laid"))
    for request in ({"delta": 1 / 2}, {"epsilon": 0.1}):
        with pytest.raises(te.ThereExistsError, match=r"d = 40000"):
            te.plan(builtin("token-sine", n=1, d=40_000), construction=construction, **request)
