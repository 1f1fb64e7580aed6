"""Tokens that hold too many parts together: found, checked again, and a false claim is caught."""

from collections import Counter

import numpy as np
import pytest

from tests.patterns import brute, graphs
from thereexists.patterns import build, check, from_mask, recheck_obstruction
from thereexists.patterns.obstructions import Dangling, Exhausted, Scattered
from thereexists.patterns.paths import find_path


def net():
    """A triangle with a token hanging from each corner."""
    return graphs.pattern(6, np.array([0, 1, 0, 0, 1, 2]), np.array([1, 2, 2, 3, 4, 5]))


def test_three_cliques_that_share_a_token():
    pattern = graphs.cliques(1, 3, 30)
    verdict = check(pattern)
    found = verdict.path_result
    assert (found.status, found.effort, verdict.universal) == ("impossible", "cut tokens", None)
    assert isinstance(found.obstruction, Scattered)
    assert (len(found.obstruction.tokens), found.obstruction.parts) == (1, 3)
    assert "fall into 3 parts" in verdict.reasons[1]
    assert verdict.to_json()["hamiltonian_path"]["certificate"]["parts"] == 3
    assert recheck_obstruction(pattern, found.obstruction).holds is True
    assert find_path(graphs.cliques(1, 2, 30)).status == "found"


def test_three_sets_that_each_need_an_end():
    verdict = check(net())
    obstruction = verdict.path_result.obstruction
    assert isinstance(obstruction, Dangling)
    assert recheck_obstruction(net(), obstruction).holds is True
    assert len(verdict.to_json()["hamiltonian_path"]["certificate"]["sets"]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [graphs.cliques(5, 7, 4), from_mask(graphs.board(15))], ids=["cliques", "board"])
def test_sets_of_tokens_that_hold_too_much_together(pattern):
    """The board is one that the solver does not refute in minutes."""
    found = find_path(pattern, 30)
    assert (found.status, found.effort) == ("impossible", "toughness")
    assert recheck_obstruction(pattern, found.obstruction).holds is True


def test_false_claims_are_caught():
    pattern = graphs.cliques(2, 4, 3)
    true = find_path(pattern).obstruction
    assert isinstance(true, Scattered)
    assert recheck_obstruction(pattern, true).holds is True
    other = int(np.setdiff1d(np.arange(pattern.n), true.tokens)[0])
    for tokens in (true.tokens[:1], [*true.tokens, other], [], [0.5], [-1], [pattern.n], [[0]]):
        assert recheck_obstruction(pattern, Scattered(np.asarray(tokens), 99)).holds is False, tokens
    assert recheck_obstruction(build("window", 14, window=2), true).holds is False  # of another pattern
    a, b, c = check(net()).path_result.obstruction.sets
    rest = np.setdiff1d(np.arange(6), np.concatenate([a, b, c]))
    empty = np.zeros(0, np.int64)
    for sets in ((a, b), (a, b, b), (a, b, empty), (a, b, rest), (a, b, c, rest), (a, b, np.array([6]))):
        assert recheck_obstruction(net(), Dangling(sets)).holds is False, sets
    # one way is enough to be joined: a token that only looks at two others hangs from neither
    mask = np.eye(7, dtype=bool)
    mask[1:4, 0] = mask[0, 1:4] = mask[4, 1] = mask[1, 4] = mask[4, 2] = True
    claim = Dangling((np.array([1, 4]), np.array([2]), np.array([3])))
    assert recheck_obstruction(from_mask(mask), claim).holds is False


def test_small_graphs_without_a_path_say_why():
    """By sample, all graphs up to seven tokens: an answer is brute force's, and its reason holds."""
    rng = np.random.default_rng(4)
    said = Counter()
    for case in range(240):
        n = int(rng.integers(3, 8))
        mask = rng.random((n, n)) < rng.choice([0.2, 0.3, 0.4])
        mask |= np.eye(n, dtype=bool) | (mask.T if case % 2 else False)
        pattern = from_mask(mask)
        found = find_path(pattern, 20)
        assert (found.status == "found") == brute.has_path(mask)
        if found.status == "found":
            continue
        assert recheck_obstruction(pattern, found.obstruction).holds in (True, None)
        said[bool(case % 2), type(found.obstruction)] += 1
    assert said[True, Scattered] > 2
    assert said[True, Exhausted] == 0  # both ways: always a reason that can be checked
