"""Step 2: the shifts give a contextual mapping. Brute force over every grid point, in exact rational arithmetic."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch

import thereexists as te
from thereexists.constructions.faithful.selective_shift import (
    context,
    contextual_mapping,
    global_factor,
    largest_id,
    shifted_ids,
    swept_ids,
)
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.model import Transformer

SIZES = [(1, 2, 4), (1, 3, 4), (1, 3, 8), (2, 2, 3), (2, 3, 2), (1, 4, 4)]


def grid_for(d, n, N, positional):
    return Grid.for_target(Target(lambda X: X, n=n, d=d, equivariant=not positional), Fraction(1, N))


def by_the_definition(l, K, ids, C):
    """The paper's shifts on exact rationals: one column id list, one layer after the other."""
    l = [Fraction(x) for x in l]
    for swept in ids:
        selected = [swept - Fraction(1, 2) < x < swept + Fraction(1, 2) for x in l]
        gap = max(l) - min(l)
        l = [x + K * gap if s else x for x, s in zip(l, selected, strict=True)]
    return [x + C * max(l) for x in l]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("positional", [False, True])
@pytest.mark.parametrize(("d", "n", "N"), SIZES)
def test_is_a_contextual_mapping_on_every_grid_point(d, n, N, positional):
    grid = grid_for(d, n, N, positional)
    cubes = grid.cube(np.arange(grid.cells))
    l = grid.column_ids(cubes)
    distinct = np.array([len(set(row)) == n for row in l.tolist()])
    ids = [[int(q) for q in by_the_definition(row, grid.K, swept_ids(grid).tolist(), global_factor(grid))]
           for row in l[distinct].tolist()]  # fmt: skip
    verdict = te.is_contextual_mapping(ids, cubes[distinct], equivariant=not positional)
    assert verdict.holds, verdict.reasons
    assert max(map(max, ids)) <= largest_id(grid)


@pytest.mark.parametrize("positional", [False, True])
@pytest.mark.parametrize(("d", "n", "N"), SIZES)
def test_closed_form_arrays_and_layers_agree_with_the_definition(d, n, N, positional):
    grid = grid_for(d, n, N, positional)
    rng = np.random.default_rng(0)
    cubes = grid.cube(rng.integers(0, grid.cells, 40))
    l = grid.column_ids(cubes)
    want = np.array([[int(q) for q in by_the_definition(r, grid.K, swept_ids(grid).tolist(), global_factor(grid))]
                     for r in l.tolist()])  # fmt: skip
    Z = cubes * np.array(grid.step) + np.arange(n)[:, None] * grid.pitch
    arrays = contextual_mapping(Z, grid) @ grid.u / grid.unit
    with torch.no_grad():
        layers = Transformer({"context": context(grid)}, rho="hardmax")(torch.from_numpy(Z)).numpy() @ grid.u
    assert np.array_equal(arrays, want)
    distinct = np.array([len(set(row)) == n for row in l.tolist()])
    assert np.array_equal(layers[distinct] / grid.unit, want[distinct])
    # Three tied maxima share the mass as 3 · fl(1/3): a relative rounding in each of the K + 1 layers.
    assert (np.abs(layers / grid.unit - want) <= (grid.K + 1) * 2.0**-52 * want).all()
    for row, q in zip(l.tolist(), want.tolist(), strict=True):  # the closed form speaks of the set of ids
        ordered = sorted(set(row))
        closed = shifted_ids(np.array([ordered]), grid.K, global_factor(grid))[0]
        assert [closed[ordered.index(x)] for x in row] == q


@pytest.mark.parametrize(("d", "n", "N"), SIZES)
def test_equal_columns_stay_below_the_interval_of_the_paper(d, n, N):
    """With t_l = δ^{-2nd+1}(δ^{-d} − 1): distinct columns land in [t_l, t_r], equal columns below t_l."""
    grid = grid_for(d, n, N, positional=False)
    K = grid.K
    t_l, t_r = K ** (2 * n) * (K - 1), K ** (2 * n + 1) * (K - 1)  # in units of δ
    for size in range(1, n + 1):
        sets = np.array(list(itertools.combinations(range(K), size)))
        if len(sets) == 0:
            continue
        q = shifted_ids(sets, K, global_factor(grid))
        if size == n:
            assert (q >= t_l).all()
            assert (q <= t_r * (1 + Fraction(1, K**n))).all()
        else:
            assert (q < t_l).all()


def test_two_positions_one_feature_needs_the_wider_pitch():
    """With the paper's pitch of N cells, n = 2, d = 1 sweeps a shifted token twice; with N + 1 it does not."""
    K, n = 4, 2
    shifted_again = [
        (a, b)
        for a, b in itertools.product(range(K), repeat=n)
        for l in [[a, b + K]]
        if by_the_definition(l, K, range(2 * K), K**3)[0] != shifted_ids(np.array([l]), K, K**3)[0][0]
    ]
    assert shifted_again == [(K - 1, 0)]


def test_public_shift_functions_do_what_they_say():
    Z = np.array([[[1.0, 0.0], [2.0, 1.0], [0.0, 0.0]]])
    u = np.array([1.0, 2.0])  # ids 1, 4, 0
    moved = te.selective_shift(Z, u, 0.5, 1.5, 10.0)
    assert (moved @ u).tolist() == [[41.0, 4.0, 0.0]]
    assert (te.global_shift(moved, u, 100.0) @ u).tolist() == [[4141.0, 4104.0, 4100.0]]
    assert Z[0, 0, 0] == 1.0  # the caller's array is left alone


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16])
def test_numbers_of_few_bits_do_not_wrap_around(dtype):
    Z, u = np.array([[[100, 100], [3, 1]]], dtype), np.array([1, 2], dtype)  # ids 300, 5
    assert te.selective_shift(Z, u, dtype(2), dtype(9), dtype(100)).tolist() == [[[100.0, 100.0], [29503.0, 1.0]]]
    assert te.global_shift(Z, u, dtype(100)).tolist() == [[[30100.0, 100.0], [30003.0, 1.0]]]
    assert te.global_shift(torch.from_numpy(Z), u.tolist(), 100)[0, 1, 0] == 30003.0


@pytest.mark.parametrize(
    ("Z", "u", "factor"),
    [
        (np.ones((1, 2, 1)), np.ones(3), 2.0),
        (np.ones((2, 1)), np.ones(1), 2.0),
        (np.ones((1, 0, 1)), np.ones(1), 2.0),
        (np.ones((1, 2, 1)) + 1j, np.ones(1), 2.0),
        ([[[1.0], [2.0, 3.0]]], np.ones(1), 2.0),
        (np.ones((1, 2, 1)), np.ones(1), "much"),
        (np.ones((1, 2, 1)), np.ones(1), np.ones(2)),
    ],
)
def test_shifts_refuse_other_shapes_and_kinds_in_a_sentence(Z, u, factor):
    for shift in (lambda: te.selective_shift(Z, u, 0, 1, factor), lambda: te.global_shift(Z, u, factor)):
        with pytest.raises(te.ThereExistsError, match=r"must be (a )?real number|Sequences are"):
            shift()
