"""Theorem B: sparse witnesses for sort on every cell; the mapping against its definition; refusals with the verdict."""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch

import thereexists as te
from tests.hostile import planted
from thereexists.constructions.faithful.sparse_shift import Route, SparseShift
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.functions.targets import builtin
from thereexists.model import Transformer


def hamiltonian_at_random(n, seed):
    """A random pattern around a planted Hamiltonian path, relabelled at random."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    mask = np.eye(n, dtype=bool) | (rng.random((n, n)) < 0.3)
    for before, k in itertools.pairwise(order):
        mask[k, before] = mask[before, k] = True
    return te.patterns.from_mask(mask)


PATTERNS = {
    "star": lambda n: te.patterns.star(n),
    "window": lambda n: te.patterns.window(n, window=1),
    "strided": lambda n: te.patterns.strided(n, stride=2),
    "fixed": lambda n: te.patterns.fixed(n, stride=2),
    "random": lambda n: hamiltonian_at_random(n, seed=1),
}


def sparse_mapping(name, n, N, d=1):
    route = Route.through(PATTERNS[name](n))
    grid = Grid.for_target(Target(lambda X: X, n=n, d=d), Fraction(1, N), route.slots)
    return SparseShift(grid, route)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize(("n", "N", "d"), [(4, 2, 1), (4, 3, 1), (5, 2, 1), (3, 2, 2), (2, 4, 1)])
def test_is_a_contextual_mapping_on_every_grid_point(name, n, N, d):
    mapping = sparse_mapping(name, n, N, d)
    cubes = mapping.grid.cube(np.arange(mapping.grid.cells))
    ids = mapping.ids(mapping.grid.column_ids(cubes))
    verdict = te.is_contextual_mapping(ids, cubes)
    assert verdict.holds, verdict.reasons
    assert ids.max() <= mapping.largest_id


@pytest.mark.parametrize("name", PATTERNS)
def test_layers_compute_the_closed_form(name):
    mapping = sparse_mapping(name, 4, 2)
    grid = mapping.grid
    cubes = grid.cube(np.arange(grid.cells))
    Z = cubes * np.array(grid.step) + grid.slot[:, None] * grid.pitch
    with torch.no_grad():
        moved = Transformer({"context": mapping.stage()}, rho="hardmax")(torch.from_numpy(Z)).numpy()
    assert np.array_equal(moved @ grid.u / grid.unit, mapping.ids(grid.column_ids(cubes)))


QUICK = ("star", "window")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "rho"),
    [
        *(pytest.param(name, "softmax", marks=() if name in QUICK else pytest.mark.slow) for name in PATTERNS),
        ("star", "sparsemax"),
        pytest.param("strided", "sparsemax", marks=pytest.mark.slow),
    ],
)
def test_sparse_sort_is_exact_on_every_cell_certified_and_verified(name, rho, tmp_path):
    n, K = 4, 4
    pattern = PATTERNS[name](n)
    witness = te.build(builtin("sort", n=n), delta=1 / 4, pattern=pattern, rho=rho)
    grid = witness.grid
    X = grid.centre(grid.cube(np.arange(grid.cells)))
    assert np.array_equal(witness(X), witness.cell_values(X))
    assert witness.plan.layers["context"] == pattern.cycle * (n - 1) * K + te.patterns.check(pattern).depth
    assert witness.network.shape() == {"h": 2, "m": 1, "r": 4, "d": 1}
    certificate = te.certify(witness, opinions=1)
    assert certificate.undecided == 0
    assert certificate.bound >= witness.estimate_distance(samples=512).low
    witness.save(tmp_path / "w")
    certificate.save(tmp_path / "w")
    assert te.verify(tmp_path / "w", opinions=1).reasons == ()


def test_no_token_attends_outside_the_pattern():
    pattern = te.patterns.window(4, window=1)
    witness = te.build(builtin("sort", n=4), delta=1 / 2, pattern=pattern)
    Z = torch.rand(3, 4, 1, dtype=torch.float64)
    for _, index, layer in witness.network.layers():
        weights = layer.attention_weights(Z)
        if weights is not None:
            assert bool((weights[:, :, ~torch.from_numpy(pattern.mask()[index % pattern.cycle])] == 0).all())


def test_a_wider_mask_in_the_file_is_caught(tmp_path):
    witness = te.build(builtin("sort", n=4), delta=1 / 2, pattern=te.patterns.window(4, window=1))

    def widen(network):
        network.stages["context"].attention.pattern[0, 0, 3] = True

    dataclasses.replace(witness, network=planted(witness.network, widen)).save(tmp_path / "w")
    te.certify(te.load(tmp_path / "w"), opinions=1).save(tmp_path / "w")
    verdict = te.verify(tmp_path / "w", opinions=1)
    assert any(reason.startswith("pattern: the cycle or the connections differ") for reason in verdict.reasons)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (lambda: te.patterns.window(4, window=1).as_causal(), "never sees"),
        (lambda: te.patterns.block_local(4, block=2), "never sees|cannot depend"),
        (lambda: te.patterns.star(5), "is for 5 tokens, and the target has n = 4"),
    ],
)
def test_patterns_that_fail_the_conditions_are_refused_with_the_verdict(pattern, message):
    with pytest.raises(te.ThereExistsError, match=message):
        te.build(builtin("sort", n=4), delta=1 / 2, pattern=pattern())


def test_bits_are_predicted_for_sparse_networks_too():
    with pytest.raises(te.ThereExistsError, match="bits and float64 carries 52"):
        te.plan(builtin("sort", n=5), delta=1 / 8, pattern=te.patterns.window(5, window=1))
