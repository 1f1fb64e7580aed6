"""The gated depth-wise convolution of ``convolution.py`` on CUDA: one kernel forward, one backward.

A program owns some channels and walks along a stretch of the tokens. Every value is read from memory once and stays in
registers as long as the kernel's window needs it (stretches overlap by k − 1 tokens, which are read twice).

Forward, a_s enters the k outputs y_t with t = s − j + left; the k − 1 that are not complete yet are carried along.
Backward, the last k gradients dy are carried along, and with them every token has all it needs:

    da_s = Σ_j w_j dy_{s−j+left}
    dw_j = Σ_{batch,s} a_s dy_{s−j+left}
    du = da σ(g),   dg = da u σ(g)(1 − σ(g))

Every program sums dw over its own tokens, and torch adds these up. Sums are in float32 whatever the dtype. Triton comes
with torch's CUDA builds.
"""

# pyright: reportMissingImports=false, reportArgumentType=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# ruff: noqa: RUF005  (Triton's language has sums of tuples, and no unpacking)

from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

TOKENS, CHANNELS = 32, 64  # the stretch of one program
AHEAD = 4  # tokens that are read before the first of them is used: memory is slow, registers are few


@triton.jit
@no_type_check
def _where(inside, channel):
    """The channels, or none of them (Triton's interpreter wants no ``&`` between a number and a row)."""
    return tl.where(inside, channel, False)


@triton.jit
@no_type_check
def _rows(at, stride, first, n, channel, COUNT: tl.constexpr):
    """``COUNT`` rows from ``first`` on; what lies outside the sequence counts as zero."""
    rows = ()
    for i in tl.static_range(COUNT):
        t = first + i
        rows = rows + (tl.load(at + t * stride, mask=_where((t >= 0) & (t < n), channel), other=0.0).to(tl.float32),)
    return rows


@triton.jit
@no_type_check
def _kernel(at, d, channel, K: tl.constexpr):
    taps = ()
    for j in tl.static_range(K):
        taps = taps + (tl.load(at + j * d, mask=channel, other=0.0).to(tl.float32),)
    return taps


@triton.jit
@no_type_check
def _is_real(real, s, n, MASKED: tl.constexpr):
    inside = (s >= 0) & (s < n)
    if MASKED:
        inside = inside & (tl.load(real + s, mask=inside, other=0) != 0)
    return inside


@triton.jit
@no_type_check
def _forward(
    ug, weight, real, y, n, d, left, K: tl.constexpr, MASKED: tl.constexpr,
    T: tl.constexpr, C: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(n, T)
    base = (tl.program_id(0) // blocks).to(tl.int64) * n  # the sequence's first token; offsets from it fit 32 bits
    first = (tl.program_id(0) % blocks) * T
    c = tl.program_id(1) * C + tl.arange(0, C)
    channel = c < d
    w = _kernel(weight + c, d, channel, K)
    sums = ()  # of the outputs that are under way, the oldest first
    for _ in tl.static_range(K - 1):
        sums = sums + (tl.zeros((C,), dtype=tl.float32),)
    at = ug + base * (2 * d) + c
    for i in range(0, T + K - 1, AT_ONCE):
        s = first - left + i
        u, g = _rows(at, 2 * d, s, n, channel, AT_ONCE), _rows(at + d, 2 * d, s, n, channel, AT_ONCE)
        for v in tl.static_range(AT_ONCE):
            a = tl.where(_is_real(real + base, s + v, n, MASKED), u[v] * tl.sigmoid(g[v]), 0.0)
            under_way = ()
            for j in tl.static_range(1, K - 1):
                under_way = under_way + (sums[j] + w[K - 1 - j] * a,)
            out = w[K - 1] * a
            if K > 1:
                out += sums[0]
                under_way = under_way + (w[0] * a,)
            sums = under_way
            t = first + i + v - (K - 1)
            done = _where((t >= first) & (t < first + T) & (t < n), channel)
            tl.store(y + base * d + (t * d + c), out.to(y.dtype.element_ty), mask=done)


@triton.jit
@no_type_check
def _backward(
    ug, weight, real, dy, dug, dw, n, d, left, K: tl.constexpr, MASKED: tl.constexpr,
    T: tl.constexpr, C: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(n, T)
    base = (tl.program_id(0) // blocks).to(tl.int64) * n
    first = (tl.program_id(0) % blocks) * T
    c = tl.program_id(1) * C + tl.arange(0, C)
    channel = c < d
    w = _kernel(weight + c, d, channel, K)
    at, above, to = ug + base * (2 * d) + c, dy + base * d + c, dug + base * (2 * d) + c
    seen = _rows(above, d, first + left - (K - 1), n, channel, K - 1)  # gradients, the oldest first
    taps = ()
    for _ in tl.static_range(K):
        taps = taps + (tl.zeros((C,), dtype=tl.float32),)
    for i in range(0, T, AT_ONCE):
        s = first + i
        coming = _rows(above, d, s + left, n, channel, AT_ONCE)
        u, g = _rows(at, 2 * d, s, n, channel, AT_ONCE), _rows(at + d, 2 * d, s, n, channel, AT_ONCE)
        for v in tl.static_range(AT_ONCE):
            seen = seen + (coming[v],)  # dy_{s−j+left} at place K − 1 − j
            gate = tl.sigmoid(g[v])
            kept = _is_real(real + base, s + v, n, MASKED)
            a = tl.where(kept, u[v] * gate, 0.0)
            da = w[0] * seen[K - 1]
            for j in tl.static_range(1, K):
                da += w[j] * seen[K - 1 - j]
            added, younger = (), ()
            for j in tl.static_range(K):
                added = added + (taps[j] + a * seen[K - 1 - j],)
            for j in tl.static_range(1, K):
                younger = younger + (seen[j],)
            taps, seen = added, younger
            da = tl.where(kept, da, 0.0)
            here = _where(s + v < n, channel)
            tl.store(to + (s + v) * (2 * d), (da * gate).to(dug.dtype.element_ty), mask=here)
            tl.store(to + (s + v) * (2 * d) + d, (da * a * (1.0 - gate)).to(dug.dtype.element_ty), mask=here)
    for j in tl.static_range(K):
        tl.store(dw + (tl.program_id(0).to(tl.int64) * K + j) * d + c, taps[j], mask=channel)


class _GatedConvolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ug: Tensor, weight: Tensor, left: int, real: Tensor | None) -> Tensor:
        ug, weight = ug.contiguous(), weight.contiguous()
        batch, n, width = ug.shape
        d = width // 2
        y = ug.new_empty(batch, n, d)
        if y.numel():
            _forward[_grid(ug)](ug, weight, _bytes(ug, real), y, n, d, left, **_tile(weight, real))
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
            _backward[grid](ug, weight, _bytes(ug, real), dy, dug, dw, n, d, ctx.left, **_tile(weight, real))
        return dug, dw.sum(dim=0).to(weight.dtype), None, None


def _grid(ug: Tensor) -> tuple[int, int]:
    batch, n, width = ug.shape
    return batch * triton.cdiv(n, TOKENS), triton.cdiv(width // 2, CHANNELS)


def _tile(weight: Tensor, real: Tensor | None) -> dict[str, Any]:
    sizes = {"T": TOKENS, "C": CHANNELS, "AT_ONCE": AHEAD, "num_warps": 1}
    return {"K": weight.shape[0], "MASKED": real is not None, **sizes}


def _bytes(ug: Tensor, real: Tensor | None) -> Tensor:
    """What a kernel reads padding from; without padding it reads nothing, but wants a pointer."""
    return ug if real is None else real.contiguous().view(torch.uint8)


def fused_gated_convolution(ug: Tensor, weight: Tensor, left: int, real: Tensor | None = None) -> Tensor:
    """``gated_convolution`` by kernels; ``ug`` on a CUDA device (or anywhere, in Triton's interpreter)."""
    return _GatedConvolution.apply(ug, weight, left, real)
