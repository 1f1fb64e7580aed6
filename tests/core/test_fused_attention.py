"""Fused attention: on a GPU its gradients are close to exact ones where those of cuDNN are not."""

import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from thereexists.core.fused_attention import fused_attention


def low_logits(n, m=64, logit=-120.0):
    """Queries, keys and values with every logit near −120, where exp(0 − logsumexp) overflows a float32."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1, n, m, generator=generator, dtype=torch.float64) for _ in range(3))
    q, k = q * 0.1, k * 0.1
    q[..., 0], k[..., 0] = 1.0, logit * math.sqrt(m)
    return q, k, v


def gradients(attention, q, k, v, mask):
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    out = attention(q, k, v, mask)
    return torch.autograd.grad(out, (q, k, v), torch.ones_like(out))


@pytest.mark.gpu
@pytest.mark.parametrize("n", [64, 128, 192])
def test_gradients_where_all_logits_are_low(n):
    mask = torch.ones(n, n, dtype=torch.bool).tril()[None, None]
    q, k, v = (x.bfloat16() for x in low_logits(n))
    exact = gradients(scaled_dot_product_attention, q.double(), k.double(), v.double(), mask)
    found = gradients(fused_attention, q.cuda(), k.cuda(), v.cuda(), mask.cuda())
    # A row's attention P sums to 1 and is rounded to bfloat16, as are the n terms of a gradient's entry and v − o.
    for one, other, size in zip(found, exact, (k, q, torch.ones(())), strict=True):
        bound = 2.0**-8 * 4 * n * size.abs().max().item() * 2 * v.abs().max().item() / math.sqrt(q.shape[-1])
        assert one.isfinite().all()
        assert (one.cpu().double() - other).abs().max().item() <= bound


@pytest.mark.gpu
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_do_not_depend_on_how_their_origin_lies_in_memory(compiled):
    """Heads last, then heads first, of the output's gradient, in one process: torch's own choice fails the second."""
    generator = torch.Generator().manual_seed(0)
    q, k, v, do = (torch.randn(2, 300, 4, 64, generator=generator).transpose(1, 2).bfloat16() for _ in range(4))
    leaves = [x.double().requires_grad_() for x in (q, k, v)]
    exact = torch.autograd.grad(scaled_dot_product_attention(*leaves), leaves, do.double())
    attention = torch.compile(fused_attention, fullgraph=True, backend="aot_eager") if compiled else fused_attention
    for given in (do.cuda(), do.contiguous().cuda()):
        leaves = [x.cuda().requires_grad_() for x in (q, k, v)]
        for one, other in zip(torch.autograd.grad(attention(*leaves), leaves, given), exact, strict=True):
            assert (one.cpu().double() - other).norm() <= 2.0**-5 * other.norm()  # torch's own: 1.4


def test_it_is_torchs_own_elsewhere():
    q, k, v = low_logits(16)
    mask = torch.ones(16, 16, dtype=torch.bool).tril()[None, None]
    assert torch.equal(fused_attention(q, k, v, mask), scaled_dot_product_attention(q, k, v, mask))
    assert torch.equal(
        fused_attention(q, k, v, is_causal=True, scale=0.5),
        scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5),
    )
