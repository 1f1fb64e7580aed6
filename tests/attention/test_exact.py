"""Output and gradients against masked dense attention in float64, within bounds computed from the number types."""

import dataclasses

import pytest
import torch

from tests.attention.cases import library, steps
from tests.attention.exactness import excesses, inputs, surviving
from thereexists.attention import Dropout, cpu_backend, sparse_attention
from thereexists.attention.call_options import CallOptions
from thereexists.attention.cpu_backend import CpuPieces
from thereexists.attention.lower import lower
from thereexists.attention.planned import explained
from thereexists.attention.reference import exact_attention, excess
from thereexists.attention.ways import head_steps, list_everything
from thereexists.core.errors import InvalidInput
from thereexists.patterns import window

N = 37  # odd, and no multiple of any stride, block or chunk
NAMES = list(steps(N))


@pytest.mark.sampled(21)
@pytest.mark.parametrize("name", NAMES)
def test_every_step_in_pieces(name):
    """All pieces, narrow windows as chunks and as lists, with and without padding."""
    step = steps(N)[name]
    for listed_below, padded in ((0, True), (16, False)):
        pieces = CpuPieces(lower(step, listed_below))
        found = excesses(step, cpu_backend, pieces, torch.float32, padded, d=8, b=2 if padded else 1, h=1)
        assert max(found.values()) <= 1, (listed_below, padded, found)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["window and residue and hubs-causal", "listed and all", "bigbird[0]", "fixed-union"])
def test_other_number_types(name, dtype):
    table = steps(36)
    found = excesses(table[name], cpu_backend, CpuPieces(lower(table[name], 4)), dtype, padded=True)
    assert max(found.values()) <= 1, found


@pytest.mark.parametrize("n", [257, 300])
def test_lengths_over_several_chunks(n):
    """Windows, classes and blocks that are cut into many calls, some of them alike and some at the borders."""
    for name in ("strided-union", "strided-causal-union", "dilated-wide[0]", "block_local-shifted[1]", "fixed[0]"):
        step = steps(n)[name]
        found = excesses(step, cpu_backend, CpuPieces(lower(step)), torch.float32, d=8, b=1)
        assert max(found.values()) <= 1, (name, found)


def test_dropout_drops_the_pairs_it_says():
    for name in ("strided-union", "random-causal[0]", "star[0]"):
        step = steps(N)[name]
        found = excesses(step, cpu_backend, CpuPieces(list_everything(step)), torch.float32, True, 0.25)
        assert max(found.values()) <= 1, (name, found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("config", ["steps", "union", "multihead"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_public_function_on_the_library(config, causal):
    """Whatever way the planner chooses, through autograd, in every head configuration."""
    for name, pattern in library(N).items():
        pattern = pattern.as_causal() if causal else pattern
        if config == "steps":
            chosen = list(pattern.steps[:2])
        else:
            chosen = [pattern.union() if config == "union" else pattern.multihead(pattern.cycle + 1)]
        for p in chosen:
            assert _public(p) <= 1, (name, explained(p, torch.device("cpu")))


def _public(p, **options):
    spans = head_steps(p)
    h = 2 if spans[0][0] is None else spans[-1][0][1]
    q, k, v, do = inputs((1, h, p.n, 8), torch.float32)
    for x in (q, k, v):
        x.requires_grad_()
    out = sparse_attention(q, k, v, p, **options)
    grads = torch.autograd.grad(out, (q, k, v), do)
    masks = [torch.from_numpy(s.mask()).expand(h if a is None else a[1] - a[0], -1, -1) for a, s in spans]
    want = exact_attention(q, k, v, torch.cat(masks)[None], do, 8**-0.5)
    pairs = zip(grads, want.grads, want.grad_bounds, strict=True)
    return max(excess(out, want.out, want.out_bound), *(excess(*pair) for pair in pairs))


def test_a_fresh_seed_each_call_and_the_same_result_for_the_same_seed():
    step = steps(N)["random[0]"]
    q, k, v, _ = inputs((1, 2, N, 8), torch.float32)
    with pytest.raises(InvalidInput, match="seed of dropout"):
        sparse_attention(q, k, v, step, dropout_p=Dropout(0.5, seed=2**63))
    first, second = (sparse_attention(q, k, v, step, dropout_p=Dropout(0.5, seed=3)) for _ in range(2))
    assert torch.equal(first, second)
    torch.manual_seed(0)
    assert not torch.equal(
        sparse_attention(q, k, v, step, dropout_p=0.5), sparse_attention(q, k, v, step, dropout_p=0.5)
    )


def test_dropout_keeps_the_expectation():
    """Survivors are as many as they should be: a binomial within six standard deviations."""
    options = CallOptions(1.0, None, 0.25, seed=11)
    kept = surviving(options, 2, 2, 100)
    mean, deviation = 0.75 * kept.numel(), (0.75 * 0.25 * kept.numel()) ** 0.5
    assert abs(float(kept.sum()) - mean) <= 6 * deviation
    assert not torch.equal(kept[0, 0], kept[0, 1])


def test_rows_without_keys_give_zero_and_no_gradient():
    """All of a row's keys are padding: 0 and not NaN, as documented."""
    step = steps(N)["window[0]"]
    q, k, v, do = inputs((1, 2, N, 8), torch.float32)
    for x in (q, k, v):
        x.requires_grad_()
    out = sparse_attention(q, k, v, step, lengths=torch.tensor([5]))
    grads = torch.autograd.grad(out, (q, k, v), do)
    assert (out[:, :, 20:] == 0).all()
    assert (grads[0][:, :, 20:] == 0).all()
    assert (grads[1][:, :, 5:] == 0).all()
    assert all(g.isfinite().all() for g in grads)


# ---- the check itself can fail ----------------------------------------------------------------------------------


def _planted(lowered, dtype=torch.float32):
    step = steps(40)["strided-union"]
    return max(excesses(step, cpu_backend, CpuPieces(lowered), dtype).values())


def test_a_key_counted_twice_is_noticed():
    lowered = lower(steps(40)["strided-union"])
    column, window = lowered.strips
    assert _planted(lowered) <= 1
    assert _planted(dataclasses.replace(lowered, strips=(column, dataclasses.replace(window, skip=0)))) > 1
    assert _planted(dataclasses.replace(lowered, strips=(column, dataclasses.replace(window, lo=window.lo + 1)))) > 1
    assert _planted(dataclasses.replace(lowered, strips=(column,))) > 1
    assert _planted(dataclasses.replace(lowered, strips=(column,)), torch.bfloat16) > 1


def test_a_backward_with_each_pieces_own_log_sum_exp_is_noticed(monkeypatch):
    """Plain autograd through the merge does this, and it is wrong."""
    step = steps(40)["strided-union"]
    pieces = CpuPieces(lower(step))
    honest = cpu_backend._attend_backward

    def own(do, q, k, v, out, sums, softmax):
        o, *sums = cpu_backend._attend(q, k, v, softmax)
        return honest(do, q, k, v, o, sums, softmax)

    monkeypatch.setattr(cpu_backend, "_attend_backward", own)
    found = excesses(step, cpu_backend, pieces, torch.float32)
    assert found["out"] <= 1
    assert min(found["dq"], found["dk"], found["dv"]) > 1


def test_nan_is_noticed():
    nan, one = torch.tensor([torch.nan]), torch.ones(1, dtype=torch.float64)
    assert excess(nan, one, one) == float("inf")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.uint16, torch.uint32, torch.uint64, torch.int64])
def test_lengths_of_any_whole_numbers(dtype):
    q = torch.randn(2, 1, 300, 8, generator=torch.Generator().manual_seed(0))
    pattern, lengths = window(300, 4), torch.tensor([50, 100])
    found = sparse_attention(q, q, q, pattern, lengths=lengths.to(dtype))
    assert torch.equal(found, sparse_attention(q, q, q, pattern, lengths=lengths))
