"""The value layers at the edge of float64: ids of up to 52 bits come out right, longer ones do not."""

import dataclasses
import importlib

import numpy as np
import pytest

import thereexists as te
from thereexists.constructions.faithful.value_mapping import ROUNDING_SHARE
from thereexists.patterns import build as build_pattern

CUBES = 4000
plan = importlib.import_module("thereexists.constructions.faithful.plan")  # te.plan is the function


def mixed(X):
    """Every output depends on every input."""
    n = X.shape[1]
    weights = np.sin(1 + np.arange(n)[:, None] * 3 + np.arange(n))
    return np.tanh(np.einsum("ij,bjd->bid", weights, X)) + 0.3 * X[:, ::-1]


def largest_error(n, d, N, pattern=None):
    """Over the centres of cubes, as a share of the largest value; and the bits of the ids."""
    sparse = None if pattern is None else build_pattern(pattern, n)
    witness = te.build(te.Target(mixed, n=n, d=d), delta=f"1/{N}", pattern=sparse)
    grid = witness.grid
    numbers = np.random.default_rng(0).permutation(grid.cells)[:CUBES]
    X = grid.centre(grid.cube(numbers))
    wanted = mixed(X)
    return np.abs(witness(X) - wanted).max() / np.abs(wanted).max(), witness.plan.id_bits


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "case", [(3, 1, 14, "fixed"), (3, 1, 17, "strided"), (2, 2, 9), (3, 2, 5), (3, 3, 3), (3, 1, 31), (4, 1, 13)]
)
def test_ids_between_50_and_52_bits_are_exact(case):
    error, bits = largest_error(*case)
    assert 50 < bits <= plan.MAX_ID_BITS == 52
    assert error <= ROUNDING_SHARE


def test_the_limit_is_not_idle(monkeypatch):
    monkeypatch.setattr(plan, "MAX_ID_BITS", 60)
    error, bits = largest_error(3, 1, 40)
    assert bits > 53
    assert error > ROUNDING_SHARE


@pytest.mark.parametrize("scale", [0.016, 1e-3, 1e-6])
def test_small_values_without_positions(scale):
    """Two sweeps, and an id 0 whose layer lies close to the ranks: it must not move them again."""
    target = te.Target(lambda X: scale * np.tanh(X - X.mean(1, keepdims=True)), n=4, equivariant=True)
    witness = te.build(target, delta=1 / 8)
    grid = witness.grid
    index = grid.cube(np.arange(grid.cells))
    ids = np.sort(grid.column_ids(index), axis=1)
    X = grid.centre(index[(ids[:, 1:] != ids[:, :-1]).all(axis=1)])
    assert witness.plan.sweeps == 2
    assert np.abs(witness(X) - target(X)).max() <= ROUNDING_SHARE * np.abs(target(X)).max()


def test_sides_of_any_ratio_have_the_same_limit():
    """Ids are counted in one unit, so none of their bits is kept free for rounding."""
    sides = {"even": (0.0, (1.0, 2.0)), "odd": (0.0, (1.0, 3.0))}
    target = te.Target(mixed, n=2, d=2, equivariant=True)
    found = {
        name: plan.id_bits(plan.mapping_for(dataclasses.replace(target, domain=domain), "1/8", None))
        for name, domain in sides.items()
    }
    assert found["odd"] == found["even"]
