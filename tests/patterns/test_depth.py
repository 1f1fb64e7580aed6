"""Receptive depths against thousands of small cases, decided all at once by Boolean matrix products."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from thereexists.patterns import check, from_mask, recheck_depth, recheck_path
from thereexists.patterns.check import _causal, _self_loops
from thereexists.patterns.depth import receptive_depth
from thereexists.patterns.obstructions import connectivity
from thereexists.patterns.parts import Band, Rect, Residue
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step


def depths(masks, causal):
    """The definition, for a batch ``(cases, p, n, n)``: the first t with every ``S_k^t`` full, 0 when there is none.

    ``p((n−1)² + 1)`` rounds settle it: with Wielandt's bound for "all tokens", where fullness lasts; for the causal
    question a set that ever lost its own token never gets it back, and with self-loops sets grow, so pn rounds do.
    """
    cases, p, n, _ = masks.shape
    goal = np.tri(n, dtype=bool) if causal else np.ones((n, n), bool)
    seen = np.broadcast_to(np.eye(n, dtype=np.float32), (cases, n, n))
    found = np.zeros(cases, np.int64)
    for t in range(1, p * max((n - 1) ** 2 + 1, n) + 1):
        seen = np.minimum(masks[:, (t - 1) % p].astype(np.float32) @ seen, 1)
        full = ((seen > 0) | ~goal).all((1, 2))
        found[full & (found == 0)] = t
    return found


def batch(rng, n, p, cases, causal):
    """Steps of all densities, with self-loops everywhere, in some steps, or left to chance; no empty rows."""
    masks = rng.random((cases, p, n, n)) < rng.choice([0.15, 0.3, 0.6, 0.85], (cases, 1, 1, 1))
    everywhere = rng.random((cases, 1)) < 0.4
    masks |= ((rng.random((cases, p)) < 0.5) | everywhere)[:, :, None, None] & np.eye(n, dtype=bool)
    if causal:
        masks &= np.tri(n, dtype=bool)
    return masks | (~masks.any(-1, keepdims=True) & np.eye(n, dtype=bool))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cases", [45, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("causal", [False, True])
def test_a_thousand_small_cycles_agree_with_the_definition(causal, cases):
    rng = np.random.default_rng(7)
    said = Counter()
    for n, p in product(range(1, 7), range(1, 5)):
        masks = batch(rng, n, p, cases, causal)
        for mask, truth in zip(masks, depths(masks, causal).tolist(), strict=True):
            pattern = from_mask(mask)
            found = receptive_depth(pattern, causal=True) if causal else receptive_depth(pattern)
            verdict = _causal(pattern, _self_loops(pattern), found, found) if causal else None
            loops = bool(mask[:, range(n), range(n)].all())
            assert found.depth == (truth or None), (mask.astype(int), found, truth)
            assert truth or found.never or found.never_full  # nothing is undecided
            assert verdict is None or verdict.holds is (truth > 0)
            if truth > 1 and rng.random() < 0.1:
                assert recheck_depth(pattern, truth, found.pair, causal)
            said[loops, truth > 0] += 1
    assert sum(said.values()) == 24 * cases
    assert min(said.values()) > cases / 4  # with and without self-loops, both answers


def test_a_causal_cycle_that_is_full_once_and_never_again():
    """S² is full, S³ is not: the third step has no self-loops."""
    n = 4
    chain = np.eye(n, dtype=bool) | np.eye(n, k=-1, dtype=bool)
    back = np.eye(n, k=-1, dtype=bool)
    back[0, 0] = True
    pattern = from_mask(np.stack([chain | np.eye(n, k=-2, dtype=bool), chain, back]))
    found = check(pattern).causal
    assert (found.holds, found.evidence.depth) == (True, 2)
    assert "not at every later depth" in found.reasons[0]
    turned = Pattern("turned", (*pattern.steps[2:], *pattern.steps[:2]))
    verdict = check(turned)
    assert verdict.causal.holds is False
    assert verdict.causal.evidence.never_full.startswith("token 1 does not attend to itself in step 0")
    assert verdict.to_json()["causal"]["never_full"]
    assert "excludes no causal function" in verdict.causal.reasons[0]


def test_components_and_period_decide_what_the_powers_decide():
    """The way for n > 512, on small cycles whose powers are known."""
    from thereexists.patterns.depth_without_loops import _by_bitsets, _never_full, depth_by_powers

    rng = np.random.default_rng(8)
    said = Counter()
    for n, p in product(range(2, 7), range(1, 4)):
        for mask in batch(rng, n, p, 25, False):
            pattern = from_mask(mask)
            truth = depth_by_powers(pattern)
            why = _never_full(pattern)
            assert (why is None) == (truth.depth is not None)
            if why is None:
                assert _by_bitsets(pattern, 4e9).depth == truth.depth
            said[why is None] += 1
    assert min(said.values()) > 30


def test_larger_patterns_without_self_loops_are_decided():
    n = 700
    k = np.arange(n)
    turn = np.zeros((n, n), bool)
    turn[k, (k + 1) % n] = True
    assert check(from_mask(turn)).depth_result.never_full == f"returns to a token take a multiple of {n} cycles"
    turn[k, (k + 2) % n] = True
    verdict = check(from_mask(turn))
    # after t moves a token has gone t to 2t places: all residues when t + 1 ≥ n
    assert (verdict.depth, verdict.depth_result.method, verdict.universal) == (n - 1, "bitsets", None)
    aside = np.ones((n, n), bool)
    aside[:, 0] = False  # nobody ends at token 0, though the residual connection would keep it there
    aside[0, 1:] = False
    aside[0, 0] = True
    assert check(from_mask(aside)).universal is False


# ---- cycles in which some steps are causal and others are not -------------------------------------------------


def test_mixed_cycles_are_judged_by_the_three_conditions():
    """Assumption 1 is about the whole cycle: one step that looks ahead can be enough for condition 3."""
    n = 64
    local = Step(n, (Band(-4, 0),), causal=True)
    everything = Step(n, (Rect(range(n), range(n)),))
    verdict = check(Pattern("mixed", (local, everything)))
    assert (verdict.universal, verdict.depth, verdict.causal) == (True, 2, None)
    assert recheck_path(verdict.pattern, verdict.path, verdict.edge_steps)
    backwards = Step(n, (Band(0, 3),))
    verdict = check(Pattern("mixed", (local, backwards)))
    assert verdict.universal is True
    assert recheck_depth(verdict.pattern, verdict.depth, verdict.depth_result.pair)
    own = Step(n, (Band(0, 0),))  # says it is not causal, but never looks ahead
    assert check(Pattern("mixed", (local, own))).universal is False
    assert check(Pattern("mixed", (local, own))).causal.holds is True


def test_mixed_cycles_agree_with_their_masks():
    rng = np.random.default_rng(9)
    universal = Counter()
    for _ in range(120):
        n, p = int(rng.integers(2, 8)), int(rng.integers(2, 5))
        some = np.flatnonzero(rng.random(n) < 0.3)
        choices = [Band(-1, 2), Band(-2, 0), Residue(2), Rect(range(n), some), Rect(some, range(n))]
        choices += [Rect(range(n), range(n)), from_mask(batch(rng, n, 1, 1, False)[0]).steps[0].parts[0]]
        steps = []
        for _ in range(p):
            picked = [choices[i] for i in rng.choice(len(choices), int(rng.integers(1, 3)), replace=False)]
            picked += [Band(0, 0)] * int(rng.random() < 0.9)
            steps.append(Step(n, tuple(picked), causal=bool(rng.integers(2))))
        if any((step.degrees == 0).any() for step in steps):
            continue
        pattern = Pattern("mixed", tuple(steps))
        masks = pattern.mask()
        union = pattern.union().step(0)
        assert np.array_equal(union.mask(), masks.any(0))
        x = rng.random(n) < 0.4
        assert np.array_equal(union.image(x), masks.any(0)[x].any(0))
        assert np.array_equal(union.preimage(x), masks.any(0)[:, x].any(1))
        verdict = check(pattern)
        assert verdict.depth == (int(depths(masks[None], False)[0]) or None), (pattern, verdict)
        apart, settled = connectivity(pattern)
        assert settled
        assert (verdict.universal is False) == (apart is not None)
        if verdict.universal:
            assert recheck_path(pattern, verdict.path, verdict.edge_steps)
            assert recheck_depth(pattern, verdict.depth, verdict.depth_result.pair)
        universal[verdict.universal] += 1
    assert min(universal[answer] for answer in (True, False, None)) > 1
