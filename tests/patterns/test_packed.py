"""Packed documents, and intervals that are cut by others, against lists of pairs."""

import json

import numpy as np
import pytest
import torch

from thereexists.attention import sparse_attention
from thereexists.core.errors import InvalidInput
from thereexists.patterns import check, packed, window
from thereexists.patterns.intervals import Documents, Meet
from thereexists.patterns.parts import Band, BlockBand
from thereexists.patterns.step import Step
from thereexists.patterns.stored import record, restore

LENGTHS = [3, 1, 5, 2]
N = sum(LENGTHS)
NUMBER = np.repeat(np.arange(4), LENGTHS)
K, J = np.arange(N)[:, None], np.arange(N)[None, :]


def test_documents_do_not_see_each_other():
    same = NUMBER[:, None] == NUMBER[None, :]
    assert np.array_equal(packed(LENGTHS, causal=False).step(0).mask(), same)
    assert np.array_equal(packed(torch.tensor([0, 3, 4, 9, 11])).step(0).mask(), same & (J <= K))
    assert np.array_equal(packed(LENGTHS, window=1).step(0).mask(), same & (J <= K) & (J >= K - 1))
    assert check(packed(LENGTHS)).universal is False


@pytest.mark.parametrize(
    "part", [Documents([0, 3, 4, 9]), Meet(Documents([0, 3, 9]), Band(-2, 1)), Meet(BlockBand(4, shift=1), Band(-9, 0))]
)
@pytest.mark.parametrize("causal", [False, True])
def test_every_answer_of_a_part_is_its_definition(part, causal):
    mask = np.asarray(part.contains(K + 0 * J, J + 0 * K)) & (J <= K if causal else True)
    step = Step(N, (part,), causal)
    assert np.array_equal(step.mask(), mask)
    assert np.array_equal(step.degrees, mask.sum(1))
    assert np.array_equal(
        part.contains(torch.arange(N)[:, None], torch.arange(N)[None, :]).numpy() & (J <= K if causal else True), mask
    )
    for seed in range(4):
        x = np.random.default_rng(seed).random(N) < 0.4
        assert np.array_equal(step.image(x), mask[x].any(0))
        assert np.array_equal(step.preimage(x), mask[:, x].any(1))
    lo, hi = np.array([2] * N), np.array([6] * N)
    whole = np.asarray(part.contains(K + 0 * J, J + 0 * K))
    assert np.array_equal(part.count(N, np.arange(N), lo, hi), whole[:, 2:7].sum(1))


def test_a_packing_is_stored_and_a_damaged_record_is_refused():
    pattern = packed(LENGTHS, window=2)
    stored = json.loads(json.dumps(record(pattern)))
    assert np.array_equal(restore(stored, N).mask(), pattern.mask())
    damaged = (
        ["Documents", [1, 3]],
        ["Documents", [0, 3, 3]],
        ["Documents", [0, N]],
        ["Meet", ["Band", -1, 0], ["Residue", 2]],
        ["Meet", ["Meet", ["Band", 0, 1], ["Band", 0, 1]], ["Band", 0, 1]],
        ["Meet", 3, 4],
    )
    for wrong in damaged:
        with pytest.raises(InvalidInput):
            restore({**stored, "steps": [{"causal": True, "parts": [wrong]}]}, N)


def test_wrong_lengths_are_named():
    for lengths in ([], [0], [3, 0], [[1, 2]], [0, 3, 3], [-1, 4]):
        with pytest.raises(InvalidInput):
            packed(lengths)
    with pytest.raises(InvalidInput, match="window"):
        packed([3], window=-1)


def test_each_sequence_of_a_batch_has_its_own_pattern():
    q, k, v = (torch.randn(3, 2, N, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    one, other = packed(LENGTHS), window(N, 2)
    out = sparse_attention(q, k, v, [one, other, one])
    want = torch.cat(
        [sparse_attention(q[b : b + 1], k[b : b + 1], v[b : b + 1], p) for b, p in enumerate((one, other, one))]
    )
    bound = 2.0**-40  # float64, sums of at most eleven numbers of size 1
    assert (out - want).abs().max() <= bound
    for a, b in zip(*(torch.autograd.grad(x.square().sum(), (q, k, v)) for x in (out, want)), strict=True):
        assert (a - b).abs().max() <= bound
    with pytest.raises(InvalidInput, match="one for each of 3"):
        sparse_attention(q, k, v, [one, other])


def test_a_window_is_any_whole_number():
    assert record(packed(LENGTHS, window=np.int8(2))) == record(packed(LENGTHS, window=2))
    with pytest.raises(InvalidInput, match="'window' must be a whole number from 0 on; got -1"):
        packed(LENGTHS, window=-1)
