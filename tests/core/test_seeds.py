"""Every seed goes through one door: what a record could not hold is refused before any work."""

from typing import Any

import numpy as np
import pytest
from jaxtyping import TypeCheckError

import thereexists as te
from thereexists.certificates.check import Wanted
from thereexists.core.plain_numbers import seed_from
from thereexists.experiments.settings import Budget, Settings
from thereexists.suites.circuits.make import make_circuits
from thereexists.suites.verifier.make import make_verifier

NO_SEEDS = [None, True, -1, 1.5, "x", [1, 2], 10**100, 10**150, np.bool_(True)]


def taking_seeds(folder):
    pattern = te.patterns.dilated(8, window=1, dilation=2)
    return {
        "memorise": lambda seed: te.memorise([["a"]], [["b"]], seed=seed),
        "random matrix": lambda seed: te.heads.random_matrix(4, 1, seed=seed),
        "fit": lambda seed: te.heads.fit(te.heads.random_matrix(4, 1), seed=seed),
        "check": lambda seed: te.patterns.check(pattern, seed=seed),
        "random": lambda seed: te.patterns.random(8, degree=2, seed=seed),
        "certify": lambda seed: Wanted(seed=seed),
        "train": lambda seed: Settings("copy", Budget(steps=1), seed=seed),
        "circuits": lambda seed: make_circuits(folder / "c", seed=seed),
        "verifier": lambda seed: make_verifier(folder / "v", seed=seed),
    }


@pytest.mark.parametrize("seed", NO_SEEDS, ids=lambda seed: str(seed)[:12])
def test_a_seed_that_no_record_holds_is_refused_at_once(seed, tmp_path):
    refused = (te.ThereExistsError, TypeCheckError)  # the tests check some annotations: an int is wanted there too
    for takes in taking_seeds(tmp_path).values():
        with pytest.raises(refused, match="seed"):
            takes(seed)
    assert list(tmp_path.iterdir()) == []


def test_the_seeds_that_a_record_holds():
    assert seed_from(10**100 - 1) == 10**100 - 1
    assert (seed_from(np.int64(3)), type(seed_from(np.uint8(3)))) == (3, int)


def test_what_is_saved_can_be_read_again(tmp_path):
    longest = 10**100 - 1
    seeds: list[Any] = [np.int64(3), longest]
    for seed in seeds:
        te.memorise([["a"]], [["b"]], seed=seed).save(tmp_path / "m")
        assert te.verify(tmp_path / "m").holds
        assert type(Wanted(seed=seed).seed) is int
    target = te.heads.random_matrix(8, 1, seed=longest)
    te.heads.fit(target, seed=longest, method="descent", eps2=0.5).save(tmp_path / "h")
    assert te.heads.load(tmp_path / "h").seed == longest
