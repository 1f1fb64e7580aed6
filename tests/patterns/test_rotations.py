"""Rotations find paths in seconds where circuits and the solver took minutes, and never claim one that is none."""

from functools import partial

import numpy as np
import pytest

from tests.patterns import brute, graphs
from thereexists.patterns import from_mask, recheck_path
from thereexists.patterns.paths import find_path
from thereexists.patterns.rotations import both_ways, rotated_path


def lists(pattern):
    csr = pattern.union_step().to_csr()
    return csr.indptr.astype(np.int64), csr.indices.astype(np.int64)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "make",
    [
        partial(graphs.watts_strogatz, 2_000),
        partial(graphs.grid, 40, 40),
        pytest.param(partial(graphs.watts_strogatz, 20_000), marks=pytest.mark.slow),
        pytest.param(partial(graphs.random_symmetric, 100_000), marks=pytest.mark.slow),
    ],
    ids=["Watts-Strogatz", "grid", "Watts-Strogatz, 20,000", "random, 100,000"],
)
def test_a_path_is_found_by_rotations(make):
    pattern = make()
    found = find_path(pattern, 60)
    assert (found.status, found.effort) == ("found", "rotations and extensions (Pósa)")
    assert recheck_path(pattern, found.path)


def test_small_graphs_have_the_paths_that_brute_force_finds():
    """Every graph where the arcs that go both ways have a path; where they have none, nothing is found."""
    rng = np.random.default_rng(3)
    said = {True: 0, False: 0}
    for _ in range(150):
        n = int(rng.integers(2, 8))
        mask = (rng.random((n, n)) < rng.choice([0.4, 0.6, 0.8])) | np.eye(n, dtype=bool)
        truth = brute.has_path(mask & mask.T)
        pattern = from_mask(mask)
        starts, columns = lists(pattern)
        path = rotated_path(starts, columns, 5 if truth else 0.02)
        assert (path is not None) == truth, mask.astype(int)
        assert path is None or recheck_path(pattern, path)
        said[truth] += 1
    assert min(said.values()) > 20


def test_only_arcs_that_go_both_ways_are_used():
    mask = np.tri(6, dtype=bool)
    mask[0, 1] = mask[1, 2] = mask[2, 3] = mask[3, 4] = True
    assert both_ways(*lists(from_mask(mask))) is None  # 4 → 5 is missing
    mask[4, 5] = True
    starts, columns = both_ways(*lists(from_mask(mask)))
    assert columns.tolist() == [1, 0, 2, 1, 3, 2, 4, 3, 5, 4]
    assert starts.tolist() == [0, 1, 3, 5, 7, 9, 10]
