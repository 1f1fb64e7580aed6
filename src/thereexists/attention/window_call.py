"""A plain window on CUDA with as little Python between the call and the kernel as there can be.

At short lengths a kernel takes less time than the host needs to find it. Which patterns are windows is noted on the
pattern; a call that is anything but plain goes the long way, where every option and every mistake is looked at.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from thereexists.attention.operator import AttentionBackward, Weighting, explained, handle_of
from thereexists.patterns import Pattern, Step

_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_WIDEST = 256


def window_attention(q: Tensor, k: Tensor, v: Tensor, pattern: Pattern | Step, scale: float | None) -> Tensor | None:
    """The output; None where this is not a plain window, or not a plain call."""
    noted = pattern.__dict__.get("_attention_window")
    if noted is None:
        noted = pattern.__dict__["_attention_window"] = _window_of(pattern)
    if not noted or torch.compiler.is_compiling():
        return None
    window, backend = noted
    shape, keys = q.shape, k.shape
    if len(shape) != 4 or keys != v.shape or len(keys) != 4:
        return None
    b, heads, n, d = shape
    fits = n == pattern.n and keys == (b, keys[1], n, d) and keys[1] > 0 and heads % keys[1] == 0 and 0 < d <= _WIDEST
    alike = q.dtype == k.dtype == v.dtype and q.device == k.device == v.device and q.dtype in _TYPES
    if not fits or not alike or not q.stride(3) == k.stride(3) == v.stride(3) == 1:
        return None
    if scale is None:
        scale = 1 / math.sqrt(d)
    elif not 0 < scale < math.inf:
        return None
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return WindowAttention.apply(q, k, v, Weighting(handle_of(pattern), scale), noted)
    return _run(q, k, v, window, scale, backend)[0]


def _window_of(pattern: Pattern | Step) -> tuple[tuple[int, int], Any] | tuple[()]:
    heads = explained(pattern, torch.device("cuda")).heads
    window = heads[0].lowered.window if len(heads) == 1 and heads[0].way == "pieces" else None
    if window is None:
        return ()
    try:
        from thereexists.attention import window_backend
    except ImportError:  # no Triton: the long way says so
        return ()
    return window, window_backend


def _run(q: Tensor, k: Tensor, v: Tensor, window: tuple[int, int], scale: float, backend: Any) -> tuple[Tensor, Tensor]:
    out, lse = torch.empty_like(q), torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    backend.forward(q, k, v, out, lse, window, scale)
    return out, lse


class WindowAttention(torch.autograd.Function):
    """The forward of a window; its gradients are those of every other pattern, with gradients of their own."""

    @staticmethod
    def forward(ctx, q, k, v, how: Weighting, noted):
        window, backend = noted
        out, lse = _run(q, k, v, window, how.scale, backend)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.how, ctx.noted, ctx.pattern = how, noted, how.pattern  # the pattern stays alive until the backward
        return out

    @staticmethod
    def backward(ctx, do):
        q, k, v, out, lse = ctx.saved_tensors
        if not torch.is_grad_enabled():  # the gradients of these are not wanted
            window, backend = ctx.noted
            return *backend.backward(do, q, k, v, out, lse, window, ctx.how.scale), None, None
        dq, dk, dv, _ = AttentionBackward.apply(do, None, q, k, v, None, (out, lse, ctx.how))
        return dq, dk, dv, None, None
