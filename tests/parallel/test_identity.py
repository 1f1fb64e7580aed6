"""Finished chunks belong to one function: another that agrees wherever a job looks is another function."""

import dataclasses

import numpy as np
import pytest

import thereexists as te
from thereexists.certificates.cubes import fingerprint
from thereexists.parallel.ship import identity_of

LIPSCHITZ = 64.0
LOOKED_AT = np.random.default_rng(0).random((64, 2, 1)).reshape(64, 2)


def smaller(X):
    return np.minimum(X, X[:, ::-1])


def smaller_but_for_a_branch(X):
    away = np.abs(X.reshape(-1, 1, 2) - LOOKED_AT).max(axis=-1).min(axis=1)
    return smaller(X) + np.minimum(LIPSCHITZ / 2 * np.maximum(away - 2**-6, 0), 2.0)[:, None, None]


@pytest.fixture
def targets():
    return [te.Target(f, n=2, lipschitz=LIPSCHITZ, name="mine") for f in (smaller, smaller_but_for_a_branch)]


def test_a_reused_job_takes_nothing_from_another_function(targets, tmp_path):
    first, second = targets
    witness = te.build(first, delta=1 / 4, construction="compact")
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1).save(tmp_path / "w")
    assert fingerprint(first) == fingerprint(second)
    assert te.verify(tmp_path / "w", first, job=tmp_path / "job", opinions=1).holds
    assert te.verify(tmp_path / "w", second, job=tmp_path / "job", opinions=1).holds is False


def test_a_function_is_its_code(targets):
    first, second = targets
    again = te.Target(smaller, n=2, lipschitz=LIPSCHITZ, name="mine")
    assert identity_of(first) == identity_of(again) != identity_of(second)
    builtin = te.targets.builtin("sort", n=2)
    assert identity_of(builtin) != identity_of(dataclasses.replace(builtin, f=smaller))
    closures = [te.Target(lambda X, c=c: c * X, n=2, lipschitz=1.0) for c in (0.5, 0.25)]
    assert identity_of(closures[0]) != identity_of(closures[1])
