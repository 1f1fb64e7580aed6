"""Targets of every size, 1e-300 to 1e300: each builds, certifies and verifies, or is refused when it is built."""

import numpy as np
import pytest

import thereexists as te

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
