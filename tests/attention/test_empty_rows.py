"""Tokens that attend to nobody: 0, a log-sum-exp of −inf, no gradient; never what was in memory before."""

import pytest
import torch

import thereexists as te
from tests.attention.cases import steps_with_empty_rows
from tests.attention.exactness import excesses, inputs
from tests.attention.interpreted import run, worst
from thereexists.attention import cpu_backend, sparse_attention
from thereexists.attention.cpu_backend import CpuPieces
from thereexists.attention.lower import lower
from thereexists.attention.operator import attention_op
from thereexists.attention.planned import explained
from thereexists.attention.reference import exact_attention, excess
from thereexists.attention.ways import list_everything

N = 37
NAMES = list(steps_with_empty_rows(N))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_every_way_of_the_cpu(name):
    """Pieces and lists, every dtype, padded or not; ``excesses`` starts from memory full of NaN."""
    step = steps_with_empty_rows(N)[name]
    assert (step.degrees == 0).any()
    for lowered in (lower(step, 0), lower(step, 16), list_everything(step)):
        for dtype, padded in ((torch.float32, False), (torch.float64, True), (torch.bfloat16, False)):
            found = excesses(step, cpu_backend, CpuPieces(lowered), dtype, padded, d=4, b=1, h=2)
            assert max(found.values()) <= 1, (dtype, padded, found)


@pytest.mark.parametrize("name", NAMES)
def test_the_public_function(name):
    """Whatever way is chosen, and never the stock kernels, whose rows without keys are NaN on some devices."""
    step = steps_with_empty_rows(N)[name]
    for device in ("cpu", "cuda"):
        assert explained(step, torch.device(device)).ways[0] in ("pieces", "listed")
    q, k, v, do = inputs((1, 2, N, 4), torch.float32)
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    out = sparse_attention(q, k, v, step)
    grads = torch.autograd.grad(out, (q, k, v), do)
    mask = torch.from_numpy(step.mask())[None, None].expand(1, 2, N, N)
    want = exact_attention(q, k, v, mask, do, 0.5, 5)
    assert excess(out, want.out, want.out_bound) <= 1
    for got, exact, bound in zip(grads, want.grads, want.grad_bounds, strict=True):
        assert excess(got, exact, bound) <= 1
    assert not out[:, :, step.degrees == 0].any()
    lse = attention_op(q.detach(), k.detach(), v.detach(), step.number, 0.5, None, 0.0, None)[1]
    assert torch.equal(lse[0, 0] == -torch.inf, torch.from_numpy(step.degrees == 0))


def test_second_gradients():
    step = steps_with_empty_rows(7)["listed"]
    tensors = [x.double().requires_grad_() for x in inputs((1, 1, 7, 2), torch.float64)[:3]]
    assert torch.autograd.gradcheck(lambda *x: sparse_attention(*x, step), tensors)
    assert torch.autograd.gradgradcheck(lambda *x: sparse_attention(*x, step), tensors)


def test_the_kernels_under_the_interpreter():
    pytest.importorskip("triton")
    names = ["listed", "one row sees all, others listed", "nobody", "ahead"]
    rows = run("cpu", 18, "float16", [f"empty: {name}" for name in names])
    assert len(rows) == 2 * len(names)
    assert [row for row in rows if not worst(row) <= 1] == []


@pytest.mark.parametrize("rows", [8, 6])
def test_a_sink_of_minus_infinity_is_no_sink(rows):
    """Also for rows whose keys are all padding: outputs and gradients are those without a sink, on every way."""
    pattern = te.patterns.window(8, 2).as_causal()
    pad = torch.arange(8)[None] >= 4
    tensors = [x.requires_grad_() for x in inputs((1, 2, 8, 4), torch.float64)[:3]]

    def all_of(**scores):
        q, k, v = tensors
        out = sparse_attention(q[:, :, -rows:], k, v, pattern, key_padding_mask=pad, **scores)
        learned = [*tensors, *scores.values()]
        first = torch.autograd.grad((out**2).sum(), learned, create_graph=rows == 8)
        second = torch.autograd.grad(sum((g**2).sum() for g in first), learned) if rows == 8 else ()
        return [out, *first[:3], *second[:3]], [*first[3:], *second[3:]]

    plain, _ = all_of()
    found, of_sinks = all_of(sinks=torch.full((2,), -torch.inf, dtype=torch.float64, requires_grad=True))
    assert all(torch.allclose(a, b, rtol=1e-12, atol=1e-12) for a, b in zip(found, plain, strict=True))
    assert not any(g.any() for g in of_sinks)
    mixed, _ = all_of(sinks=torch.tensor([-torch.inf, 0.5], dtype=torch.float64, requires_grad=True))
    assert torch.allclose(mixed[0][:, 0], plain[0][:, 0], rtol=1e-12, atol=1e-12)
    assert not any(x.isnan().any() for x in mixed)
