"""A modulus of continuity that a caller states: it does not decrease, and it is a number."""

import dataclasses

import numpy as np
import pytest

import thereexists as te
from thereexists.core.errors import InvalidTarget
from thereexists.functions.claims import refute


def swings(r):
    """True of sin(2πx) at every exact distance."""
    return 2 * abs(np.sin(np.pi * r)) + 1e-12


def wave(X):
    return np.sin(2 * np.pi * X)


@pytest.mark.parametrize("construction", ["faithful", "compact"])
def test_a_modulus_that_decreases_is_refused(construction):
    """It gave 7e-11 in place of 20, for a true inequality about all pairs."""
    target = te.Target(wave, n=1, domain=(0.0, 32.0), modulus=swings)
    with pytest.raises(InvalidTarget, match=r"modulus of continuity ω decreases from ω\(.*\) = .* to ω\("):
        te.build(target, delta=1 / 2, construction=construction)


def dips(r):
    """Honest but for the half sides of the sub-cubes of a grid of thirds, where a certificate uses it."""
    return 1e-9 if abs(48 * r - 1) < 0.01 else 2 * np.pi * r


def test_a_dip_where_a_certificate_looks_is_noticed(tmp_path):
    honest = te.Target(wave, n=1, modulus=lambda r: 2 * np.pi * r, name="f")
    witness = te.build(honest, delta="1/3")
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1).save(tmp_path / "w")
    assert te.verify(tmp_path / "w", honest, opinions=1).holds
    forged = dataclasses.replace(honest, modulus=dips)
    with pytest.raises(InvalidTarget, match="decreases"):
        te.certify(witness, target=forged, opinions=1)
    verdict = te.verify(tmp_path / "w", forged, opinions=1)
    assert verdict.holds is False
    assert any("decreases" in reason for reason in verdict.reasons)


def test_random_distances_see_what_lies_between_the_rungs():
    target = te.Target(wave, n=1, modulus=lambda r: 2 * np.pi * r * (0.995 if abs(48 * r - 1) < 0.01 else 1))
    assert "decreases" in refute(target, pairs=20_000)


TRUE = {
    "a root": (np.sqrt, lambda r: float(np.sqrt(r)), (0.0, 1.0)),
    "a root, in steps": (np.sqrt, lambda r: np.ceil(2**20 * np.sqrt(r)) / 2**20, (0.0, 1e-3)),
    "a constant": (lambda X: 1.0 * (X > 0.3), lambda r: 1, (0.0, 1.0)),
    "one that saturates": (wave, lambda r: min(2.0, 2 * np.pi * r), (-50.0, 50.0)),
    "far from 0": (np.sin, lambda r: 2 * np.sin(min(r, np.pi) / 2), (1e6, 1e6 + 1)),
    "tiny": (lambda X: X, lambda r: r, (0.0, 1e-9)),
    "it falls beyond the domain alone": (lambda X: X / 2, lambda r: r * (1 - r), (0.0, 0.5)),
    "infinite from some distance on": (wave, lambda r: 2 * np.pi * r if r < 0.4 else np.inf, (0.0, 1.0)),
}


@pytest.mark.parametrize("what", TRUE)
def test_a_true_modulus_survives(what):
    f, modulus, domain = TRUE[what]
    target = te.Target(f, n=1, modulus=modulus, domain=domain)
    assert [refute(target, seed=seed) for seed in range(3)] == [None] * 3
    certificate = te.certify(te.build(target, delta=1 / 8), opinions=1)
    assert 0 < certificate.bound < np.inf
    assert "does not decrease" in certificate.assumptions[0]


@pytest.mark.parametrize(
    "answer", [np.nan, -1e-300, -np.inf, np.array([1.0]), "1", None, 1j], ids=lambda answer: repr(answer)
)
@pytest.mark.parametrize("where", [0.3, 1e-3])
def test_what_is_no_number_of_at_least_0_is_named(answer, where):
    """NaN is neither above nor below a change of f: no pair would refute it."""
    target = te.Target(wave, n=1, modulus=lambda r: answer if r < where else 2 * np.pi * r)
    with pytest.raises(InvalidTarget, match="The modulus of function cannot be called"):
        te.certify(te.build(target, delta=1 / 2), opinions=1)
