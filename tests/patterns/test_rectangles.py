"""Any number of rectangles in a step, against masks that are written square by square."""

import sys
import time
from itertools import pairwise

import numpy as np
import pytest

from thereexists.core.errors import InvalidInput
from thereexists.patterns import check, longformer, strided, window
from thereexists.patterns.parts import Band, BlockBand, Offsets, Rect, Residue
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step


def documents(n, count, rng):
    """Packed documents: ``count`` squares along the diagonal that cover all tokens."""
    cuts = np.sort(rng.choice(np.arange(1, n), count - 1, replace=False))
    edges = np.concatenate(([0], cuts, [n])).tolist()
    return [Rect(range(a, b), range(a, b)) for a, b in pairwise(edges)]


def overlapping(n, count, rng):
    """Rectangles anywhere: ranges, ranges with steps, arrays, empty ones."""
    out = []
    for _ in range(count):
        sides = []
        for _ in range(2):
            a, b = np.sort(rng.integers(0, n + 1, 2)).tolist()
            b = min(b, a + n // 8)
            kind = rng.integers(4)
            sides.append(
                range(a, b) if kind < 2 else range(a, b, 3) if kind == 2 else np.flatnonzero(rng.random(n) < 0.05)
            )
        out.append(Rect(*sides))
    return out


def painted(n, rects, causal=False):
    mask = np.zeros((n, n), bool)
    for rect in rects:
        mask[np.ix_(np.asarray(rect.rows, np.int64), np.asarray(rect.cols, np.int64))] = True
    return mask & np.tri(n, dtype=bool) if causal else mask


def assert_is(step, truth, rng):
    n = step.n
    assert np.array_equal(step.degrees, truth.sum(1))
    assert step.connections == truth.sum()
    assert np.array_equal(step.mask(), truth)
    assert np.array_equal(step.to_csr().toarray(), truth)
    k, j = np.mgrid[0:n, 0:n]
    assert np.array_equal(step.contains(k, j), truth)
    for density in (0.002, 0.3):
        x = rng.random(n) < density
        assert np.array_equal(step.image(x), truth[x].any(0))
        assert np.array_equal(step.preimage(x), truth[:, x].any(1))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("count", [1, 2, 5, 63, 64, 65, 100, 1000])
@pytest.mark.parametrize("make", [documents, overlapping])
def test_any_number_of_rectangles_is_counted_and_listed_exactly(count, make):
    rng = np.random.default_rng(count)
    n = 240 if count < 1000 else 1200 if make is documents else 300
    rects = make(n, count, rng)
    for causal in (False, True):
        truth = painted(n, rects, causal)
        assert_is(Step(n, tuple(rects), causal), truth, rng)
        k, j = np.mgrid[0:n, 0:n]
        local = abs(j - k) <= 2
        far = ((j - k) % 7 == 0) | local
        keep = j <= k if causal else j <= n
        # with a window (an interval core), with another part, and with two: three ways to count
        assert_is(Step(n, (*rects, Band(-2, 2)), causal), truth | (local & keep), rng)
        assert_is(Step(n, (Band(-2, 2), *rects, Residue(7)), causal), truth | (far & keep), rng)
        several = (*rects, Band(-2, 2), Residue(7), Offsets((-3, 5)))
        assert_is(Step(n, several, causal), truth | ((far | (j - k == -3) | (j - k == 5)) & keep), rng)


def test_chunks_of_the_sweep_do_not_change_the_answer(monkeypatch):
    from thereexists.patterns import rectangles

    monkeypatch.setattr(rectangles, "_CHUNK", 16)
    rng = np.random.default_rng(3)
    rects = overlapping(90, 80, rng)
    assert_is(Step(90, tuple(rects)), painted(90, rects), rng)


def test_packed_documents_are_judged_and_attended_to_like_their_mask():
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from thereexists.attention import sparse_attention
    from thereexists.attention.lower import lower

    n, rng = 150, np.random.default_rng(0)
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 16, dtype=torch.float64) for _ in range(3))
    for count in (65, 100):
        for rects in (documents(n, count, rng), [Rect(range(n), range(1)), *overlapping(n, count, rng)]):
            for causal in (False, True):
                step = Step(n, (*rects, Band(0, 0)), causal)
                truth = painted(n, rects, causal) | np.eye(n, dtype=bool)
                for listed_below in (0, 16):
                    pieces = lower(step, listed_below)
                    for row in range(n):
                        members = np.concatenate([np.asarray(x, np.int64) for x in pieces.members(row)])
                        assert np.array_equal(np.sort(members), np.flatnonzero(truth[row]))
                dense = scaled_dot_product_attention(q, k, v, attn_mask=torch.from_numpy(truth))
                got = sparse_attention(q, k, v, step)
                # convex combinations of n values, each rounded a few times a term
                assert (got - dense).abs().max() <= 8 * n * torch.finfo(torch.float64).eps * v.abs().max()
    verdict = check(Pattern("packed", (Step(n, tuple(documents(n, 100, rng))),)))
    assert verdict.universal is False  # one document never sees another
    chain = [Rect(range(a, min(a + 4, n)), range(a, min(a + 4, n))) for a in range(0, n, 3)]
    verdict = check(Pattern("chain", (Step(n, tuple(chain)),)))
    assert (verdict.universal, verdict.depth) == (True, 50)  # three tokens a step, 149 to go


@pytest.mark.parametrize("cells", [1 << 26, 0])
def test_tables_and_bisections_for_tensors_equal_the_mask(cells, monkeypatch):
    import torch

    from thereexists.patterns import bigbird, from_mask, random, tables

    monkeypatch.setattr(tables, "MOST_CELLS", cells)
    n, rng = 60, np.random.default_rng(2)
    k, j = torch.arange(n)[:, None].expand(n, n), torch.arange(n)[None, :].expand(n, n)
    sparse = rng.random((n, n)) < rng.random((n, 1)) ** 3
    steps = [Step(n, tuple(make(n, 40, rng)), causal) for make in (documents, overlapping) for causal in (False, True)]
    steps += [p.step(0) for p in (random(n, degree=7), bigbird(n, 6, 3), from_mask(sparse | np.eye(n, dtype=bool)))]
    steps.append(Step(n, tuple(Rect(range(0), range(n)) for _ in range(9))))  # many rectangles, no connection
    for step in steps:
        assert np.array_equal(tables.step_on_device(step, "cpu")(k, j).numpy(), step.mask())
        assert np.array_equal(step.contains(k, j).numpy(), step.mask())


def test_a_thousand_documents_in_64k_tokens_take_well_under_a_second():
    n = 65_536
    rects = documents(n, 1000, np.random.default_rng(1))
    sizes = np.array([len(rect.rows) for rect in rects])
    began = time.perf_counter()
    pattern = Pattern("packed", (Step(n, tuple(rects)),))
    assert pattern.connections == (int((sizes**2).sum()),)
    assert check(pattern).universal is False
    assert check(pattern.as_causal()).universal is False
    assert time.perf_counter() - began < 1.5  # measured: 0.25


def test_rectangles_are_put_in_order_and_checked():
    assert painted(6, [Rect(range(4, 1, -1), np.array([3, 1, 1]))]).sum() == 6
    assert Step(6, (Rect(range(4, 1, -1), np.array([3, 1, 1])), Band(0, 0))).rows(2).tolist() == [1, 2, 3]
    for rows, cols in ((range(7), range(2)), (np.array([0]), np.array([-1])), (range(-1, 3), range(2))):
        with pytest.raises(InvalidInput, match="names token"):
            Step(6, (Rect(rows, cols),))


def test_sizes_beyond_the_sequence_do_not_wrap_around():
    n, far = 9, sys.maxsize
    for part in (Band(-far, far), BlockBand(far), BlockBand(2**62, -1, 1), BlockBand(3, -far, far)):
        step = Step(n, (part,))
        assert step.connections == n * n
        assert step.image(np.arange(n) == 3).all()
    assert window(n, far).mask().all()
    assert longformer(n, far).connections == (n * n,)
    assert strided(n, 10**12).connections == (n * n, n)  # every class is one token
    assert check(strided(n, 10**12)).universal is True
