"""The gated depth-wise convolution of ``convolution.py`` on CUDA: two kernels forward, one backward.

Forward, ``a`` is formed first and then convolved: forming it inside the convolution would save its trip through memory
but compute every sigmoid k times. Backward is one pass (the shifted copies of dy come from the cache):

    da_s = Σ_j w_j dy_{s−j+left}        since a_s enters y_t with w_j when t = s − j + left
    dw_j = Σ_{batch,s} a_s dy_{s−j+left}
    du = da σ(g),   dg = da u σ(g)(1 − σ(g))

Every program sums dw over its own tokens, and torch adds these up. Sums are in float32 whatever the dtype. Triton comes
with torch's CUDA builds.
"""

# pyright: reportMissingImports=false, reportArgumentType=false, reportGeneralTypeIssues=false, reportIndexIssue=false

from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

TOKENS, CHANNELS = 32, 64  # the tile of one program
WARPS = 4


@triton.jit
@no_type_check
def _gate(ug, real, a, n, d, MASKED: tl.constexpr, T: tl.constexpr, C: tl.constexpr):
    blocks = tl.cdiv(n, T)
    base = (tl.program_id(0) // blocks).to(tl.int64) * n  # the sequence's first token; offsets from it fit 32 bits
    t = (tl.program_id(0) % blocks) * T + tl.arange(0, T)
    c = tl.program_id(1) * C + tl.arange(0, C)
    here = (t < n)[:, None] & (c < d)[None, :]
    at = ug + base * (2 * d) + (t[:, None] * (2 * d) + c[None, :])
    u = tl.load(at, mask=here, other=0.0).to(tl.float32)
    g = tl.load(at + d, mask=here, other=0.0).to(tl.float32)
    out = u * tl.sigmoid(g)
    if MASKED:
        kept = tl.load(real + base + t, mask=t < n, other=0) != 0
        out = tl.where(kept[:, None], out, 0.0)
    tl.store(a + base * d + (t[:, None] * d + c[None, :]), out.to(a.dtype.element_ty), mask=here)


@triton.jit
@no_type_check
def _convolve(a, weight, y, n, d, left, K: tl.constexpr, T: tl.constexpr, C: tl.constexpr):
    blocks = tl.cdiv(n, T)
    base = (tl.program_id(0) // blocks).to(tl.int64) * n
    t = (tl.program_id(0) % blocks) * T + tl.arange(0, T)
    c = tl.program_id(1) * C + tl.arange(0, C)
    channel = c < d
    total = tl.zeros((T, C), dtype=tl.float32)
    for j in tl.static_range(K):
        s = t + j - left
        inside = ((s >= 0) & (s < n))[:, None] & channel[None, :]
        seen = tl.load(a + base * d + (s[:, None] * d + c[None, :]), mask=inside, other=0.0).to(tl.float32)
        w = tl.load(weight + j * d + c, mask=channel, other=0.0).to(tl.float32)
        total += w[None, :] * seen
    here = (t < n)[:, None] & channel[None, :]
    tl.store(y + base * d + (t[:, None] * d + c[None, :]), total.to(y.dtype.element_ty), mask=here)


@triton.jit
@no_type_check
def _backward(
    ug, weight, real, dy, dug, dw, n, d, left, K: tl.constexpr, MASKED: tl.constexpr, T: tl.constexpr, C: tl.constexpr
):
    blocks = tl.cdiv(n, T)
    base = (tl.program_id(0) // blocks).to(tl.int64) * n
    s = (tl.program_id(0) % blocks) * T + tl.arange(0, T)
    c = tl.program_id(1) * C + tl.arange(0, C)
    channel = c < d
    kept = s < n
    here = kept[:, None] & channel[None, :]
    if MASKED:
        kept = kept & (tl.load(real + base + s, mask=kept, other=0) != 0)
    both = kept[:, None] & channel[None, :]  # padding is read as u = 0, so it adds nothing to dw
    offset = s[:, None] * (2 * d) + c[None, :]
    at = ug + base * (2 * d) + offset
    u = tl.load(at, mask=both, other=0.0).to(tl.float32)
    g = tl.load(at + d, mask=both, other=0.0).to(tl.float32)
    gate = tl.sigmoid(g)
    a = u * gate
    da = tl.zeros((T, C), dtype=tl.float32)
    for j in tl.static_range(K):
        t = s - j + left
        inside = ((t >= 0) & (t < n))[:, None] & channel[None, :]
        seen = tl.load(dy + base * d + (t[:, None] * d + c[None, :]), mask=inside, other=0.0).to(tl.float32)
        w = tl.load(weight + j * d + c, mask=channel, other=0.0).to(tl.float32)
        da += w[None, :] * seen
        tl.store(dw + (tl.program_id(0).to(tl.int64) * K + j) * d + c, tl.sum(a * seen, axis=0), mask=channel)
    da = tl.where(both, da, 0.0)
    to = dug + base * (2 * d) + offset
    tl.store(to, (da * gate).to(dug.dtype.element_ty), mask=here)
    tl.store(to + d, (da * a * (1.0 - gate)).to(dug.dtype.element_ty), mask=here)


class _GatedConvolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ug: Tensor, weight: Tensor, left: int, real: Tensor | None) -> Tensor:
        ug, weight = ug.contiguous(), weight.contiguous()
        batch, n, width = ug.shape
        d, k = width // 2, weight.shape[0]
        a, y = ug.new_empty(batch, n, d), ug.new_empty(batch, n, d)
        if y.numel():
            tile: dict[str, Any] = {"T": TOKENS, "C": CHANNELS, "num_warps": WARPS}
            _gate[_grid(ug)](ug, _bytes(ug, real), a, n, d, MASKED=real is not None, **tile)
            _convolve[_grid(ug)](a, weight, y, n, d, left, K=k, **tile)
        ctx.save_for_backward(ug, weight, real)
        ctx.left = left
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        ug, weight, real = ctx.saved_tensors
        dy = grads[0].contiguous()
        _, n, d = dy.shape
        dug = torch.empty_like(ug)
        grid = _grid(ug)
        dw = torch.empty(grid[0], *weight.shape, dtype=torch.float32, device=ug.device)  # every entry is written
        if dy.numel():
            tile: dict[str, Any] = {"T": TOKENS, "C": CHANNELS, "num_warps": WARPS}
            k = weight.shape[0]
            mask = _bytes(ug, real)
            _backward[grid](ug, weight, mask, dy, dug, dw, n, d, ctx.left, K=k, MASKED=real is not None, **tile)
        return dug, dw.sum(dim=0).to(weight.dtype), None, None


def _grid(ug: Tensor) -> tuple[int, int]:
    batch, n, width = ug.shape
    return batch * triton.cdiv(n, TOKENS), triton.cdiv(width // 2, CHANNELS)


def _bytes(ug: Tensor, real: Tensor | None) -> Tensor:
    """What a kernel reads padding from; without padding it reads nothing, but wants a pointer."""
    return ug if real is None else real.contiguous().view(torch.uint8)


def fused_gated_convolution(ug: Tensor, weight: Tensor, left: int, real: Tensor | None = None) -> Tensor:
    """``gated_convolution`` by kernels; ``ug`` on a CUDA device (or anywhere, in Triton's interpreter)."""
    return _GatedConvolution.apply(ug, weight, left, real)
