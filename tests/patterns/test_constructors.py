"""The patterns of today's models against their definitions written out, and the depth of grids by formula."""

import json

import numpy as np
import pytest

import thereexists as te
from tests.patterns import brute, graphs
from tests.patterns.agreeing import assert_agree
from thereexists.core.errors import InvalidInput
from thereexists.patterns import check, from_block_mask, recheck_depth, recheck_path
from thereexists.patterns.depth import receptive_depth
from thereexists.patterns.neighbourhood import Neighbourhood
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step
from thereexists.patterns.stored import record, restore


def natten(shape, window):
    """Token by token: in each direction the nearest ``w`` coordinates around one's own, moved inwards at a border."""
    seen = np.ones((1, 1), bool)
    for side, w in zip(shape, window, strict=True):
        line = np.zeros((side, side), bool)
        for c in range(side):
            s = min(max(c - w // 2, 0), side - w)
            line[c, s : s + w] = True
        seen = np.kron(seen, line)
    return seen.astype(bool)


def test_every_constructor_is_its_definition():
    n = 12
    k, j = np.mgrid[0:n, 0:n]
    lengths = np.repeat([0, 1, 2], [3, 7, 2])
    blocks = np.random.default_rng(0).random((2, 4, 4)) < 0.4
    blocks |= np.eye(4, dtype=bool)
    written = [
        (te.patterns.sink_window(n, 2, 3), (abs(k - j) <= 2) | (j < 3)),
        (te.patterns.prefix_lm(n, 5), (j <= k) | ((k < 5) & (j < 5))),
        (te.patterns.documents(n, [3, 7, 2]), lengths[:, None] == lengths),
        (te.patterns.documents(n, 5), k // 5 == j // 5),
        (te.patterns.neighbourhood(n, 4), natten((3, 4), (3, 3))),
        (te.patterns.neighbourhood(n, [2, 2, 3], [1, 3, 3]), natten((2, 2, 3), (1, 2, 3))),
    ]
    for pattern, truth in written:
        assert np.array_equal(pattern.mask()[0], truth), pattern
        assert pattern.connections == (truth.sum(),)
        assert te.patterns.build(pattern.name, n, **pattern.parameters).connections == pattern.connections
        again = restore(json.loads(json.dumps(record(pattern))), n)
        assert np.array_equal(again.mask(), pattern.mask())
    sparse = from_block_mask(blocks, 3, n=11)
    whole = np.kron(blocks, np.ones((3, 3), bool))
    assert np.array_equal(sparse.mask(), whole[:, :11, :11])


def test_neighbourhoods_answer_every_question_as_they_are_defined():
    rng = np.random.default_rng(1)
    plane, line, room = ((4, 5), (3, 3)), ((1, 7), (1, 5)), ((3, 2, 4), (3, 2, 3))
    for shape, window in (plane, line, room, ((9,), (5,)), ((2, 2, 2, 2), (1, 2, 1, 2))):
        part = Neighbourhood(shape, window)
        n = int(np.prod(shape))
        k, j = np.mgrid[0:n, 0:n]
        assert np.array_equal(part.contains(k, j), natten(shape, window))
        for causal in (False, True):
            assert_agree(Step(n, (part,), causal), rng)
        low, high = np.minimum(k, j).ravel(), np.maximum(k, j).ravel()
        every = np.repeat(np.arange(n), n)
        truth = [int(natten(shape, window)[a, b : c + 1].sum()) for a, b, c in zip(every, low, high, strict=True)]
        assert part.count(n, every, low, high).tolist() == truth
    assert te.patterns.neighbourhood(1 << 20, [1024, 1024], 7).connections == (49 << 20,)  # nothing is listed


def test_the_depth_of_grids_and_hypercubes_is_a_formula():
    for shape, window in (((4, 5), 3), ((7, 3), [3, 1]), ((2, 3, 4), 3), ((9, 2), [5, 1])):
        pattern = te.patterns.neighbourhood(int(np.prod(shape)), list(shape), window)
        verdict = check(pattern)
        assert verdict.depth == brute.depth(pattern.mask()), shape
        if verdict.depth is not None:
            assert verdict.depth_result.method == "directions of a grid"
            assert recheck_depth(pattern, verdict.depth, verdict.depth_result.pair)
            assert recheck_path(pattern, verdict.path, verdict.edge_steps)
    image = te.patterns.neighbourhood(40_000, [200, 200], 7)
    verdict = check(image)
    assert (verdict.universal, verdict.depth) == (True, 66)  # token 0 sees 0..6, then 3 more a layer: 6 + 3·65 ≥ 199
    steps = (*te.patterns.neighbourhood(12, 4, 3).steps, *te.patterns.neighbourhood(12, 4, [1, 3]).steps)
    assert receptive_depth(Pattern("two", steps)).depth == brute.depth(Pattern("two", steps).mask())
    for m in (1, 2, 3, 6):
        cube = te.patterns.butterfly(1 << m).union()
        found = receptive_depth(cube)
        assert found.depth == m == brute.depth(cube.mask())
        assert recheck_depth(cube, m, found.pair)
    assert receptive_depth(te.patterns.butterfly(1 << 16).union()).depth == 16
    grid = graphs.grid(60, 60)
    found = receptive_depth(grid)
    assert (found.depth, found.method) == (118, "a few searches")
    assert recheck_depth(grid, 118, found.pair, sources=2).holds is not False


def test_few_searches_find_the_depth_of_small_graphs():
    from thereexists.patterns.bitsets import diameter

    rng = np.random.default_rng(2)
    decided = 0
    for _ in range(120):
        n = int(rng.integers(2, 10))
        one, other = rng.integers(0, n, (2, int(rng.integers(n, 2 * n))))
        pattern = graphs.pattern(n, one, other)
        csr = pattern.step(0).to_csr()
        truth, found = brute.depth(pattern.mask()), diameter(csr.indptr, csr.indices, 100)
        assert (found and found[0]) == truth
        assert found is None or truth == 1 or recheck_depth(pattern, truth, found[1:])
        decided += found is not None
    assert decided > 40
    arrow = te.patterns.from_mask(np.array([[1, 1], [0, 1]], bool)).step(0).to_csr()
    assert diameter(arrow.indptr, arrow.indices, 100) is None  # not both ways


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: te.patterns.documents(8, [3, 4]), "add up to n = 8"),
        (lambda: te.patterns.neighbourhood(12, [3, 5]), "multiply to n = 12"),
        (lambda: te.patterns.neighbourhood(12, [3, 4], 2), "must be odd"),
        (lambda: te.patterns.neighbourhood(12, [3, 4], [3]), "a window for each side"),
        (lambda: te.patterns.prefix_lm(8, 0), "positive integer"),
        (lambda: te.patterns.sink_window(8, 2, -1), "positive integer"),
        (lambda: from_block_mask(np.eye(3, dtype=bool), 4, n=8), "3 blocks of 4 tokens hold 9..12; got 8"),
        (lambda: from_block_mask(np.eye(3, dtype=bool), 0), "whole number"),
    ],
)
def test_bad_sizes_are_named(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()
