"""A plain call on CUDA with as little Python between the call and its kernels as there can be.

At short lengths kernels take less time than the host needs to find them. A call that is anything but plain goes the
long way, where every option and every mistake is looked at. What a plain one needs is noted on its pattern: the pieces
on each device, and the launches of each layout of tensors (``launching``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from thereexists.attention.call_options import CallOptions
from thereexists.attention.launching import Recorded, Tape
from thereexists.attention.log_sums import Sums
from thereexists.attention.operator import AttentionBackward, no_forward_mode
from thereexists.attention.planned import Weighting, explained, pieces_for, summed
from thereexists.patterns import Pattern, Step

_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_WIDEST = 256
_MOST = 64  # layouts that are remembered for one pattern


@dataclass(eq=False)
class Noted:
    """A pattern that one group of launches does, on one device."""

    pieces: Any
    backend: Any
    recorded: dict[Any, Recorded] = field(default_factory=dict)  # by layout

    def forward(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        out, lse = torch.empty_like(q), torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
        aligned = (q.data_ptr() | k.data_ptr() | v.data_ptr()) % 16 == 0
        strict = torch.are_deterministic_algorithms_enabled()
        layout = (q.shape, k.shape[1], q.stride(), k.stride(), v.stride(), q.dtype, scale, strict)
        again = self.recorded.get(layout) if aligned else None
        if again is not None:
            again(q, k, v, out, lse)
            return out, lse
        tape: Tape = []
        self.backend.forward(q, k, v, out, lse, self.pieces, CallOptions(scale), tape)
        if aligned and tape and all(compiled is not None for compiled, *_ in tape):  # the interpreter compiles nothing
            if len(self.recorded) >= _MOST:
                self.recorded.clear()
            self.recorded[layout] = Recorded(tape, (q, k, v, out, lse))
        return out, lse


def plain_attention(q: Tensor, k: Tensor, v: Tensor, pattern: Pattern | Step, scale: float | None) -> Tensor | None:
    """The output; None where the pattern takes more than launches, or where the call is not plain."""
    shape, keys = q.shape, k.shape
    if len(shape) != 4 or keys != v.shape or len(keys) != 4:
        return None
    b, heads, n, d = shape
    fits = n == pattern.n and keys == (b, keys[1], n, d) and keys[1] > 0 and heads % keys[1] == 0 and 0 < d <= _WIDEST
    alike = q.dtype == k.dtype == v.dtype and q.device == k.device == v.device and q.dtype in _TYPES
    if not fits or not alike or not all(x.stride(3) == 1 and n * x.stride(2) < 2**31 for x in (q, k, v)):
        return None
    if scale is None:
        scale = 1 / math.sqrt(d)
    elif not 0 < scale < math.inf:
        return None
    noted = _noted(pattern, q.device)
    if noted is None:
        return None
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return PlainAttention.apply(q, k, v, Weighting(pattern.number, scale), noted)
    return noted.forward(q, k, v, scale)[0]


def _noted(pattern: Pattern | Step, device: torch.device) -> Noted | None:
    kept = pattern.__dict__.setdefault("_of_this_process_plain", {})
    if device not in kept:
        kept[device] = _note(pattern, device)
    return kept[device]


def _note(pattern: Pattern | Step, device: torch.device) -> Noted | None:
    heads = explained(pattern, device).heads
    if len(heads) != 1 or heads[0].way not in ("pieces", "listed"):
        return None
    try:
        from thereexists.attention import triton_backend
    except ImportError:  # no Triton: the long way says so
        return None
    pieces = pieces_for(heads[0], device)
    return Noted(pieces, triton_backend) if pieces.window is not None or pieces.recordable else None


class PlainAttention(torch.autograd.Function):
    """The forward of a plain call; its gradients are those of every other call, with gradients of their own."""

    @staticmethod
    def forward(ctx, q, k, v, how: Weighting, noted):
        out, lse = noted.forward(q, k, v, how.scale)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.how, ctx.noted, ctx.pattern = how, noted, how.pattern  # the pattern stays alive until the backward
        return out

    @staticmethod
    def backward(ctx, do):
        q, k, v, out, lse = ctx.saved_tensors
        if not torch.is_grad_enabled():  # the gradients of these are not wanted
            options = CallOptions(ctx.how.scale)
            dq, dk, dv = ctx.noted.backend.backward(do, q, k, v, out, lse, ctx.noted.pieces, options)
            return dq, summed(dk, k.shape[1]), summed(dv, k.shape[1]), None, None
        dq, dk, dv, _ = AttentionBackward.apply(do, None, q, k, v, None, (out, Sums(lse), ctx.how))
        return dq, dk, dv, None, None

    jvp = staticmethod(no_forward_mode)
