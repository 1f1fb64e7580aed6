"""Verdicts against brute force, evidence against the independent checker, and planted faults against the checker."""

import ast
import importlib.util
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import thereexists as te
from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.patterns import (
    REGISTRY,
    block_local,
    build,
    check,
    dilated,
    from_mask,
    from_rows,
    random,
    recheck_depth,
    recheck_obstruction,
    recheck_path,
    star,
    strided,
    window,
)
from thereexists.patterns.obstructions import Incomparable, Scattered, Unmatched
from thereexists.patterns.stored import record, restore

_spec = importlib.util.spec_from_file_location("brute", Path(__file__).with_name("brute.py"))
brute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(brute)


def assert_agrees_with_brute_force(pattern):
    v = check(pattern, seconds=20)
    masks = pattern.mask()
    union = masks.any(0)
    loops = bool(masks[:, np.arange(pattern.n), np.arange(pattern.n)].all())
    assert v.self_loops.holds == loops
    assert v.path_result.status == ("found" if brute.has_path(union) else "impossible"), (pattern, v)
    depth = brute.depth(masks)
    assert v.depth == depth, (pattern, v)
    seen = brute.reachable(union)
    # False exactly when some token can never see some other; True exactly when the three conditions hold
    conditions = loops and v.path_result.status == "found" and depth is not None
    assert v.universal is (False if not seen.all() else True if conditions else None), (pattern, v)
    if v.path is not None:
        assert recheck_path(pattern, v.path, v.edge_steps)
    else:
        assert recheck_obstruction(pattern, v.path_result.obstruction).holds in (True, None)
    if depth is not None:
        assert recheck_depth(pattern, v.depth, v.depth_result.pair)
        assert (v.depth_result.pair is None) == (depth == 1)
    if v.depth_result.never:
        assert not seen[v.depth_result.never]
    if pattern.causal:
        causal = brute.depth(masks, causal=True)
        assert v.causal.holds == (causal is not None)
        assert v.causal.evidence.depth == causal
    else:
        assert v.causal is None
    return v


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", REGISTRY)
def test_every_library_pattern_up_to_nine_tokens(name):
    checked = 0
    for n in range(1, 10):
        sizes = {"window", "stride", "block", "columns"} & set(REGISTRY[name].parameters)
        options = [{}] + [{size: value} for size in sizes for value in (1, 2, 3) if value <= n]
        for option in options:
            if name == "bigbird":
                option = {**option, "random_blocks": 0} if n % 2 else option
            try:
                pattern = build(name, n, **option)
            except ThereExistsError:
                continue
            family = [pattern, pattern.as_causal()]
            family += [q.union() for q in family if q.cycle > 1]
            for q in family:
                assert_agrees_with_brute_force(q)
            checked += len(family)
    assert checked >= 6  # butterfly has only n = 1, 2, 4, 8; nobody was refused everywhere


def test_cycles_of_dilations_and_shifted_blocks():
    for n in range(1, 10):
        for q in (dilated(n, 1, [1, 2]), dilated(n, 1, [2, 3]), dilated(n, 2, [2]), block_local(n, 3, shifted=True)):
            assert_agrees_with_brute_force(q)
            assert_agrees_with_brute_force(q.as_causal())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def test_random_patterns_of_all_kinds(seed):
    rng = np.random.default_rng(seed)
    seen = set()
    for _ in range(400):
        n, p = int(rng.integers(1, 8 if rng.random() < 0.8 else 10)), int(rng.integers(1, 4))
        masks = rng.random((p, n, n)) < rng.choice([0.05, 0.15, 0.3, 0.6])
        if rng.random() < 0.8:
            masks |= np.eye(n, dtype=bool)
        if rng.random() < 0.2:
            masks &= np.tri(n, dtype=bool)
        empty = ~masks.any(2)
        masks[empty] |= np.eye(n, dtype=bool)[np.nonzero(empty)[1]]
        v = assert_agrees_with_brute_force(from_mask(masks))
        seen.add((v.universal, v.path_result.status, type(v.path_result.obstruction).__name__))
    assert {u for u, _, _ in seen} == {True, False, None}
    assert {o for _, _, o in seen} >= {"Incomparable", "NoneType"}


def test_a_star_without_a_ring_has_an_unmatched_set():
    n = 9
    rows = [[0, k] for k in range(n)]
    rows[0] = list(range(n))
    v = assert_agrees_with_brute_force(from_rows(rows))
    assert isinstance(v.path_result.obstruction, Unmatched)
    assert v.universal is None
    assert "does not prove" in v.reasons[-1]


def test_three_triangles_that_meet_in_a_token():
    # Connected, perfectly matchable, but no path visits all three.
    mask = np.eye(7, dtype=bool)
    for a, b in ((1, 2), (3, 4), (5, 6)):
        for k in (0, a, b):
            mask[k, [0, a, b]] = True
    v = assert_agrees_with_brute_force(from_mask(mask))
    assert isinstance(v.path_result.obstruction, Scattered)
    assert v.universal is None


def test_multihead_needs_two_heads_on_each_step_and_counts_blocks_apart():
    p = strided(n=64, stride=8)
    v = check(p.multihead(heads=8))
    assert (v.universal, v.depth, v.field_depth) == (True, 2, check(p.union()).depth)
    assert check(p.multihead(heads=2)).universal is None
    a = strided(n=9, stride=3).multihead(heads=4)
    assert check(a).depth == brute.depth(a.mask())
    assert check(a).field_depth == brute.depth(a.mask().any(0, keepdims=True))


@pytest.mark.slow
def test_relabelled_windows_and_random_patterns_have_paths():
    rng = np.random.default_rng(5)
    for n, w in ((300, 2), (300, 3), (1000, 3)):
        name = rng.permutation(n)
        k, j = np.nonzero(window(n, w).mask()[0])
        rows = [sorted(name[j[k == i]].tolist()) for i in range(n)]
        relabelled = [None] * n
        for i in range(n):
            relabelled[name[i]] = rows[i]
        q = from_rows(relabelled)
        v = check(q)
        assert v.path_result.status == "found"
        assert recheck_path(q, v.path, v.edge_steps)
        assert v.depth == -(-(n - 1) // w)
    q = random(1000, degree=12, seed=1)
    assert recheck_path(q, check(q).path)


@pytest.mark.slow
def test_bitsets_agree_with_closed_forms_at_medium_size():
    from thereexists.patterns.bitsets import depth_by_bitsets

    for name in REGISTRY:
        for pattern in (build(name, 1024), build(name, 1024).as_causal()):
            causal = pattern.name.endswith("causal")
            steps = [(c.indptr, c.indices) for c in pattern.to_csr()]
            found = depth_by_bitsets(steps, causal, 5000)
            v = check(pattern)
            expected = v.causal.evidence if causal else v.depth_result
            assert found.depth == expected.depth, name


# ---- the checker itself --------------------------------------------------------------------------------------


def test_recheck_catches_planted_faults_in_paths():
    p = strided(n=40, stride=5)
    v = check(p)
    swapped, repeated = v.path.copy(), v.path.copy()
    swapped[[3, 30]] = swapped[[30, 3]]
    repeated[7] = repeated[8]
    assert recheck_path(p, v.path, v.edge_steps).holds is True
    assert recheck_path(p, swapped).holds is False
    assert recheck_path(p, repeated).holds is False
    assert recheck_path(p, v.path[:-1]).holds is False
    assert recheck_path(p, v.path, 1 - v.edge_steps).holds is False  # right edges, wrong steps
    assert recheck_path(p.as_causal(), v.path[::-1]).holds is False


def test_recheck_catches_planted_faults_in_depths_and_certificates():
    for p in (strided(n=40, stride=5), window(40, 3), star(40)):
        v = check(p)
        k, j = v.depth_result.pair
        assert recheck_depth(p, v.depth, (k, j)).holds is True
        assert recheck_depth(p, v.depth - 1, None).holds is False  # too small
        assert recheck_depth(p, v.depth + 1, (k, j)).holds is False  # too large: the pair is seen by then
    p = block_local(12, 4)
    assert recheck_obstruction(p, check(p).path_result.obstruction).holds is True
    assert recheck_obstruction(p, Incomparable(0, 3)).holds is False
    assert recheck_obstruction(p, Unmatched(np.arange(4), np.arange(2))).holds is False


def test_recheck_asks_for_a_pair_that_a_causal_depth_connects():
    """(0, 15) is missed at every depth: it would confirm any depth from 5 on."""
    p = window(n=16, window=3).as_causal()
    found = check(p).causal.evidence
    assert found.depth == 5
    assert recheck_depth(p, 5, found.pair, causal=True).holds is True
    for depth, pair in ((5, (0, 15)), (6, (0, 15)), (255, (0, 15)), (255, (14, 15)), (6, found.pair), (6, (3, 3))):
        assert recheck_depth(p, depth, pair, causal=True).holds is False, (depth, pair)
    ahead = from_rows([[0, 1], [0, 1], [0, 1, 2]])  # token 0 sees token 1
    assert recheck_depth(ahead, 1, None, causal=True).holds is False


def test_recheck_imports_no_finder():
    source = (Path(te.patterns.__file__).parent / "recheck.py").read_text()
    modules = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    names = ("paths", "depth", "depth_rules", "depth_without_loops", "obstructions", "sat", "check", "isolated")
    names += ("rotations", "toughness", "patching", "bitsets")
    finders = {f"thereexists.patterns.{m}" for m in names}
    assert not modules & finders


def test_verdicts_do_not_change_what_they_looked_at():
    p = strided(n=16, stride=4)
    before = p.mask()
    check(p)
    assert np.array_equal(before, p.mask())
    assert replace(p).n == 16


def test_check_refuses_what_is_no_pattern():
    with pytest.raises((InvalidInput, TypeError, Exception), match="Pattern"):
        check(np.eye(3))


# ---- scale -----------------------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", ["window", "strided", "fixed", "star", "bigbird", "longformer", "axial", "alternating"]
)
def test_a_million_tokens(name):
    n = 1_000_000
    p = build(name, n, random_blocks=0) if name == "bigbird" else build(name, n)
    v = check(p)
    assert v.universal is True
    assert recheck_path(p, v.path, v.edge_steps)
    if v.depth == 2:
        assert recheck_depth(p, 2, v.depth_result.pair, sources=3).holds is not False
    assert v.seconds < 10


def test_a_window_of_one_at_a_million_tokens():
    p = window(1_000_000, 1)
    v = check(p)
    assert (v.depth, v.depth_result.pair) == (999_999, (0, 999_999))


def test_windows_that_miss_their_own_token_do_not_fool_the_closed_forms():
    """Self-loops from one part and a window from another: no interval contains the token itself."""
    from thereexists.patterns.parts import Band, Rect, Residue
    from thereexists.patterns.pattern import Pattern
    from thereexists.patterns.step import Step

    for n in range(3, 10):
        for low, high in ((-3, -2), (-4, -1), (1, 2), (2, 3)):
            gap = Step(n, (Band(low, high), Residue(n)))  # Residue(n): only the token itself
            hub = Step(n, (Residue(3), Rect(range(n), range(1, 2))))
            for steps in ((gap,), (gap, hub), (hub, gap)):
                assert_agrees_with_brute_force(Pattern("gap", steps))
                assert_agrees_with_brute_force(Pattern("gap", steps).as_causal())


def test_recheck_rejects_a_depth_result_for_another_pattern():
    v = check(window(40, 3))
    assert recheck_depth(window(40, 4), v.depth, v.depth_result.pair).holds is False
    assert recheck_depth(window(40, 2), v.depth, None).holds is False


@pytest.mark.slow
def test_depth_rules_are_sound_at_their_edges():
    """Windows, classes and hubs whose sizes fit exactly, or miss by one: a rule that says "full" must be right."""
    from thereexists.patterns.depth_rules import full_by_rules
    from thereexists.patterns.parts import Band, BlockBand, Rect, Residue
    from thereexists.patterns.pattern import Pattern
    from thereexists.patterns.step import Step

    said = {(causal, full): 0 for causal in (False, True) for full in (False, True)}
    for n in (2, 5, 8, 11):
        near = [Band(-w, v) for w in range(4) for v in (0, w)] + [BlockBand(b, shift=s) for b in (2, 3) for s in (0, 1)]
        wide = [(Residue(m),) for m in range(1, 7)]
        wide += [(Band(0, 0), Rect(range(n), range(a, n, m))) for m in (2, 3, 4) for a in (0, 1) if a < n]
        wide += [(Band(-1, 1), Rect(range(a, n, 3), range(n))) for a in (0, 1, 2) if a < n]
        for local in near:
            for parts in wide:
                a, b = Step(n, (local,)), Step(n, parts)
                for steps in ((a, b), (b, a)):
                    for causal in (False, True):
                        pattern = Pattern("edge", tuple(s.as_causal() for s in steps) if causal else steps)
                        depth = brute.depth(pattern.mask(), causal)
                        for t in (1, 2, 3):
                            full = full_by_rules(pattern, t, causal)
                            assert not full or (depth is not None and depth <= t), (steps, t, depth)
                            said[causal, full] += 1
    assert min(said.values()) > 100  # both answers occur, often


@pytest.mark.parametrize(
    ("pattern", "obstruction"),
    [
        (window(8, 2).as_causal(), Incomparable(-1, 0)),
        (window(8, 2).as_causal(), Incomparable(-2, 1)),
        (window(8, 2).as_causal(), Incomparable(0, 100)),
        (window(8, 1), Unmatched(np.array([0, 0.1, 0.2, 0.3, 0.4]), np.array([1]))),
        (window(8, 1), Unmatched(np.array([-1, 7, 0]), np.array([1]))),
    ],
)
def test_obstructions_of_tokens_that_are_none_are_no_evidence(pattern, obstruction):
    """A negative number is one token in an array and another in a formula; fractions are many tokens of one row."""
    assert recheck_path(pattern, np.arange(8)).holds
    assert recheck_obstruction(pattern, obstruction).holds is False


@pytest.mark.parametrize("pair", [(0, 10**6), (0, -(10**6)), (-1, 0), (0, 0.5), (1,)])
def test_a_pair_of_tokens_that_are_none_is_no_evidence(pair):
    assert recheck_depth(window(64, 4), 40, pair).holds is False


def test_a_depth_without_a_pair_is_the_least_one():
    for pattern, depth in ((star(6), 2), (window(9, 2), 4), (window(8, 7), 1)):
        assert [recheck_depth(pattern, d, None).holds for d in (depth - 1, depth, depth + 1)] == [False, True, False]
    assert recheck_depth(window(9, 2), 5, None, sources=2).holds is None


def test_some_of_the_tokens_prove_no_depth():
    mask = np.eye(64, dtype=bool)
    mask[:, 0] = mask[0] = True
    mask[40, 0] = False  # only token 40 needs more than two steps
    mask[40, 41] = True
    pattern = from_mask(mask)
    assert recheck_depth(pattern, 2, (1, 2)).holds is False
    assert {recheck_depth(pattern, 2, (1, 2), sources=3, seed=seed).holds for seed in range(200)} == {None, False}


def test_odd_evidence_of_a_path_is_none():
    pattern = window(6, 1)
    for path in (np.arange(6) + 0.5, np.arange(6.0), np.arange(5), np.zeros((6, 1), int)):
        assert recheck_path(pattern, path).holds is False
    assert recheck_path(pattern, np.arange(6), np.zeros(3, int)).holds is False


def test_what_is_causal_already_stays_as_it_is():
    mixed = te.patterns.Pattern("m", (window(9, 2).as_causal().step(0), window(9, 1).step(0))).union()
    again = te.patterns.Pattern("m", (mixed.as_causal().step(0), window(9, 1).step(0))).union()
    assert restore(record(again), 9).step(0).mask().tolist() == again.step(0).mask().tolist()


SMALL = [window(5, 1), strided(5, 2), strided(6, 3), dilated(6, 1, 2), block_local(6, 2), te.patterns.logsparse(6)]
TYPES = (np.uint8, np.int8, np.uint64)


@pytest.mark.parametrize("pattern", SMALL, ids=lambda pattern: f"{pattern.name}-{pattern.n}")
@pytest.mark.parametrize("kind", TYPES)
def test_a_path_is_judged_alike_in_every_type_of_whole_numbers(pattern, kind):
    edges = pattern.mask().any(axis=0)
    for path in itertools.permutations(range(pattern.n)):
        right = bool(edges[path[1:], path[:-1]].all())
        assert recheck_path(pattern, np.array(path, kind)).holds == right


@pytest.mark.parametrize("kind", TYPES)
def test_other_evidence_is_judged_alike_in_every_type_of_whole_numbers(kind):
    for pattern in SMALL:
        for depth, pair in itertools.product((1, 2, 3), itertools.product(range(pattern.n), repeat=2)):
            wanted = recheck_depth(pattern, depth, pair).holds
            assert recheck_depth(pattern, kind(depth), tuple(map(kind, pair))).holds == wanted
        for pair in itertools.product(range(pattern.n), repeat=2):
            wanted = recheck_obstruction(pattern, Incomparable(*pair)).holds
            assert recheck_obstruction(pattern, Incomparable(*map(kind, pair))).holds == wanted
    assert recheck_depth(star(6), 2, None, sources=kind(1)).holds == recheck_depth(star(6), 2, None, sources=1).holds
