"""Weights sum to 1 whatever the size of the logits: biases down to the least number, large caps, sinks of that size.

Queries and keys hold small whole numbers, so that their products are exact in float32 and a logit with a bias is one
number, however a kernel sums. What remains is the softmax; its bounds are those of ``attention/reference.py``.
"""

import pytest
import torch

from thereexists import patterns as tp
from thereexists.attention import log_sums, sparse_attention
from thereexists.attention.reference import exact_attention, excess

N, D = 48, 8
PATTERNS = {  # chunks of a strip; a strip, columns and full rows; listed rows; two strips
    "window": tp.window(N, 20).step(0),
    "longformer": tp.longformer(N, 20, 2).step(0),
    "random": tp.random(N, 30).union_step(),
    "strided": tp.strided(N, 8).as_causal().union_step(),
}
LEAST = torch.finfo(torch.float32).min
SIZES = [-1e6, -1e9, LEAST]  # logits 1/16 and 64 apart, and 2^104
ROWS = [N, 5]
SUM = 2 * (2.0**-19 + (N + 4) * 2.0**-24)  # of up to N weights, each from torch's exponential (reference.py)


def whole_numbers(seed=0, rows=N):
    gen = torch.Generator().manual_seed(seed)
    q, k = (torch.randint(-2, 3, (2, 2, n, D), generator=gen).float() for n in (rows, N))
    v, do = (torch.randn(2, 2, n, D, generator=gen) for n in (N, rows))
    return q, k, v, do


def table(size):
    return torch.full((2, 2 * N - 1), size)


def off_one(x):
    return float((x.double() - 1).abs().max())


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("size", SIZES)
def test_output_and_gradients_under_a_large_bias(name, size):
    q, k, v, do = whole_numbers()
    bias, seen = table(size), torch.from_numpy(PATTERNS[name].mask())
    mask = torch.where(seen, size, -torch.inf)
    want = exact_attention(q, k, v, mask[None, None], do, 1.0, 5)
    for lse in (False, True):
        inputs = a, b, c = [x.clone().requires_grad_() for x in (q, k, v)]
        found = sparse_attention(a, b, c, PATTERNS[name], scale=1.0, bias=bias, return_lse=lse)
        out = found[0] if lse else found
        assert excess(out, want.out, want.out_bound) <= 1
        for got, w, bound in zip(torch.autograd.grad(out, inputs, do), want.grads, want.grad_bounds, strict=True):
            assert excess(got, w, bound) <= 1
    few = q[:, :, -5:].clone().requires_grad_()
    out = sparse_attention(few, k, v, PATTERNS[name], scale=1.0, bias=bias)
    assert excess(out, want.out[:, :, -5:], want.out_bound[:, :, -5:]) <= 1
    (got,) = torch.autograd.grad(out, [few], do[:, :, -5:])
    assert excess(got, want.grads[0][:, :, -5:], want.grad_bounds[0][:, :, -5:]) <= 1


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("logit", [8e6, 8e9])
@pytest.mark.parametrize("changes", [{"softcap": 1e9}, {"return_lse": True}, {"sinks": torch.tensor([-5.0, -5.0])}])
def test_values_of_one_give_one(name, logit, changes):
    for rows in ROWS:
        q, k, v = torch.full((1, 2, rows, D), logit / D), torch.ones(1, 2, N, D), torch.ones(1, 2, N, D)
        found = sparse_attention(q, k, v, PATTERNS[name], scale=1.0, **changes)
        assert off_one(found[0] if isinstance(found, tuple) else found) <= SUM


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("size", [*SIZES, 1e9])
def test_a_sink_of_the_size_of_the_logits_counts_as_one_key(name, size):
    """Keys of logit ``size`` and a sink of ``size``: a row with m keys keeps m/(m + 1), in its gradients too."""
    keys = torch.tensor(PATTERNS[name].degrees).double()
    for rows in ROWS:
        kept = (keys / (keys + 1))[-rows:]
        q, k, v = torch.zeros(1, 2, rows, D), torch.ones(1, 2, N, D), torch.ones(1, 2, N, D, requires_grad=True)
        sinks = torch.full((2,), size, requires_grad=True)
        out, lse = sparse_attention(q, k, v, PATTERNS[name], bias=table(size), sinks=sinks, return_lse=True)
        assert (out.double() - kept[:, None]).abs().max() <= SUM
        of_v, of_out = torch.autograd.grad(out.sum(), [v, sinks], retain_graph=True)
        (of_lse,) = torch.autograd.grad(lse.sum(), [sinks])
        assert (of_v[0].double().sum(1) - kept.sum()).abs().max() <= rows * SUM
        assert (of_out.double() + D * (kept * (1 - kept)).sum()).abs().max() <= D * rows * SUM
        assert (of_lse.double() - (1 - kept).sum()).abs().max() <= rows * SUM


@pytest.mark.parametrize("name", PATTERNS)
def test_gradients_of_the_log_sum_exp_and_second_ones(name):
    """All keys begin with 1, so that dL/dq begins with the sum of the weights; so does what dv says of do."""
    for size in SIZES:
        for rows in ROWS:
            q, k, v, do = whole_numbers(1, rows)
            k[..., 0] = 1
            q, v, do = (x.requires_grad_() for x in (q, v, do))
            out, lse = sparse_attention(q, k, v, PATTERNS[name], scale=1.0, bias=table(size), return_lse=True)
            assert off_one(torch.autograd.grad(lse.sum(), q, retain_graph=True)[0][..., 0]) <= SUM
            (of_v,) = torch.autograd.grad(out, v, do, create_graph=True)
            assert off_one(torch.autograd.grad(of_v.sum(), do)[0]) <= SUM


def test_padding_leaves_keys_of_the_least_logit():
    """As masks of transformers have it: the only keys that are left carry finfo.min."""
    q, k, v = torch.randn(3, 2, 2, N, D).unbind(0)
    bias = table(0.0)
    bias[:, N - 1 :] = LEAST  # the row's own token and the later ones
    pad = torch.arange(N)[None, :] >= torch.tensor([[0], [N // 2]])
    for kind in (torch.float32, torch.bfloat16):
        for name, step in PATTERNS.items():
            ones = torch.ones_like(v, dtype=kind)
            out = sparse_attention(q.to(kind), k.to(kind), ones, step, bias=bias, key_padding_mask=pad)
            seen = torch.from_numpy(step.mask())[None] & pad[:, None, :]
            some = seen.any(-1)[:, None, :, None].expand_as(out)
            assert off_one(out[some]) <= SUM + torch.finfo(kind).eps, name
            assert not out[~some].any()


def test_vmap_and_grad_follow():
    q, k, v, _ = whole_numbers()
    step, bias = PATTERNS["longformer"], table(-1e9)

    def total(v, q):
        return (sparse_attention(q[None], k[:1], v[None], step, scale=1.0, bias=bias)).sum()

    of_v = torch.func.vmap(torch.func.grad(total))(v, q)
    assert (of_v.double().sum(2) - N).abs().max() <= N * SUM


def test_two_numbers_hold_what_one_loses():
    top = torch.tensor([-torch.inf, LEAST, -1e9, -1.25, 0.5, 3e7])
    rest = torch.tensor([-torch.inf, 3.0, 3.0, 3.0, 1e-4, 1.75])
    lse, lost = log_sums.in_two(top, rest)
    assert lost[0] == 0
    assert lse[0] == -torch.inf
    assert ((lse.double() + lost.double()) - (top.double() + rest.double()))[1:].abs().max() <= 2.0**-24
    one, two, whole = log_sums.merged(lse, lost, lse, lost)
    assert torch.equal(one, two)
    assert torch.equal(one[1:], torch.full((5,), 0.5))
    assert one[0] == 0
    more = (whole[0].double() - lse.double()) + (whole[1].double() - lost.double())
    assert (more[1:] - torch.log(torch.tensor(2.0).double())).abs().max() <= 2.0**-21
    few = log_sums.Sums(torch.tensor([[[-torch.inf, 1e9, -1e9]]]))
    share, (joined, lost) = log_sums.beside_sinks(few, torch.tensor([-1e9]))
    assert share.flatten().tolist() == [0, 1, 0.5]
    assert lost is None
    assert joined.flatten().tolist() == [-1e9, 1e9, -1e9]
