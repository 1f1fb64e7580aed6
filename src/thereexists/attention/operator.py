"""The operator: forward and backward of a planned attention, with autograd, and as a custom op for ``torch.compile``.

A pattern is known to the op by an integer handle, since ops take tensors and numbers only; the plan for the tensors'
device is made on first use and kept with the pattern.
"""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from thereexists.attention.call_options import CallOptions
from thereexists.attention.ways import Explanation, HeadWay, explain, head_steps
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.fused_attention import fused_attention
from thereexists.patterns import Pattern, Step

_KNOWN: weakref.WeakValueDictionary[int, Pattern | Step] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count(1)


def handle_of(pattern: Pattern | Step) -> int:
    """The number under which the op finds the pattern again."""
    known = pattern.__dict__.get("_attention_handle")
    if known is None or _KNOWN.get(known) is not pattern:
        known = next(_NUMBERS)
        pattern.__dict__["_attention_handle"] = known  # frozen fields stay; this is a note beside them
        pattern.__dict__["_attention_plans"] = {}
        _KNOWN[known] = pattern
    return known


def explained(
    pattern: Pattern | Step, device: torch.device, padded: bool = False, dropout: bool = False
) -> Explanation:
    """How it will be run, worked out once for each device and kind of call."""
    handle_of(pattern)
    kept = pattern.__dict__["_attention_plans"]
    key = (device.type, padded, dropout)
    if key not in kept:
        if device.type not in ("cpu", "cuda"):
            raise InvalidInput(f"Sparse attention runs on cpu and cuda; the tensors are on '{device.type}'.")
        kept[key] = explain(pattern, device.type, padded, dropout)
    return kept[key]


def known(handle: int) -> Pattern | Step:
    """The pattern behind a number."""
    return _KNOWN[handle]


def pieces_for(head: HeadWay, device: torch.device) -> Any:
    """The pieces with their tables on ``device``."""
    kept = head.__dict__.setdefault("_on_device", {})
    if device not in kept:
        if device.type == "cuda":
            try:
                from thereexists.attention.triton_backend import TritonPieces
            except ImportError as error:
                raise CannotBuild(
                    "Sparse attention on CUDA runs through Triton, which is not installed; pip install triton."
                ) from error
            kept[device] = TritonPieces(head.lowered, device)
        else:
            from thereexists.attention.cpu_backend import CpuPieces

            kept[device] = CpuPieces(head.lowered)
    return kept[device]


def mask_for(head: HeadWay, device: torch.device) -> Tensor | None:
    """The n × n mask of a head that is ``masked``; None for ``dense``."""
    if head.way == "dense":
        return None
    kept = head.__dict__.setdefault("_masks", {})
    if device not in kept:
        kept[device] = torch.from_numpy(head.step.mask()).to(device)
    return kept[device]


def stock_attention(q: Tensor, k: Tensor, v: Tensor, head: HeadWay, scale: float, dropout: float = 0.0) -> Tensor:
    mask = mask_for(head, q.device)
    causal = mask is None and head.step.causal
    return fused_attention(q, k, v, mask, is_causal=causal, scale=scale, dropout_p=dropout)


def _spans(p: Explanation, heads: int) -> list[tuple[HeadWay, slice]]:
    return [(h, slice(0, heads) if h.heads is None else slice(*h.heads)) for h in p.heads]


def _backend(device: torch.device) -> Any:
    if device.type == "cuda":
        from thereexists.attention import triton_backend

        return triton_backend
    from thereexists.attention import cpu_backend

    return cpu_backend


@dataclass(frozen=True)
class Weighting:
    """Which pairs a call weighs, and how: all that it has besides its tensors. The ops list the same, one by one."""

    handle: int  # of the pattern
    scale: float
    pad: Tensor | None = None  # (batch, n), True = a real token
    dropout: float = 0.0
    seed: Tensor | None = None

    @property
    def pattern(self) -> Pattern | Step:
        return _KNOWN[self.handle]

    def explained(self, device: torch.device) -> Explanation:
        return explained(self.pattern, device, self.pad is not None, self.dropout > 0)

    def options(self, head: int) -> CallOptions:
        """Groups of heads get seeds of their own, so that two heads never drop the same pairs."""
        seed = 0 if self.seed is None else int(self.seed.item()) + (head << 40)
        return CallOptions(self.scale, self.pad, self.dropout, seed)


def run_forward(q: Tensor, k: Tensor, v: Tensor, how: Weighting) -> tuple[Tensor, Tensor]:
    p = how.explained(q.device)
    out = torch.empty_like(q)
    lse = torch.empty(q.shape[:3], dtype=torch.float64 if q.dtype == torch.float64 else torch.float32, device=q.device)
    for head, span in _spans(p, q.shape[1]):
        qs, ks, vs = q[:, span], k[:, span], v[:, span]
        if head.way in ("dense", "masked"):
            out[:, span] = stock_attention(qs, ks, vs, head, how.scale)
            continue
        options = how.options(span.start)
        whole = len(p.heads) == 1
        own = lse if whole else torch.empty_like(lse[:, span], memory_format=torch.contiguous_format)
        _backend(q.device).forward(qs, ks, vs, out[:, span], own, pieces_for(head, q.device), options)
        if not whole:
            lse[:, span] = own
    return out, lse


def run_backward(
    do: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, how: Weighting
) -> tuple[Tensor, Tensor, Tensor]:
    p = how.explained(q.device)
    parts = []
    for head, span in _spans(p, q.shape[1]):
        qs, ks, vs, gs = q[:, span], k[:, span], v[:, span], do[:, span]
        if head.way in ("dense", "masked"):
            with torch.enable_grad():
                a, b, c = (x.detach().requires_grad_() for x in (qs, ks, vs))
                parts.append(torch.autograd.grad(stock_attention(a, b, c, head, how.scale), (a, b, c), gs))
            continue
        options = how.options(span.start)
        parts.append(
            _backend(q.device).backward(
                gs, qs, ks, vs, out[:, span], lse[:, span].contiguous(), pieces_for(head, q.device), options
            )
        )
    if len(parts) == 1:
        return tuple(parts[0])  # type: ignore[return-value]
    dq, dk, dv = (torch.cat(grads, dim=1) for grads in zip(*parts, strict=True))
    return dq, dk, dv


def run_second_order(
    given: tuple[Tensor, ...], do: Tensor, q: Tensor, k: Tensor, v: Tensor, how: Weighting
) -> tuple[Tensor, ...]:
    """The gradients of ``run_backward``, with respect to do, q, k and v, for gradients ``given`` of dq, dk and dv."""
    from thereexists.attention.second_order import second_order

    parts = []
    for span, step in head_steps(how.pattern):
        own = slice(0, q.shape[1]) if span is None else slice(*span)
        options = how.options(own.start)
        mine = tuple(g[:, own] for g in given)
        parts.append(second_order(mine, do[:, own], q[:, own], k[:, own], v[:, own], step, options))
    return tuple(torch.cat(grads, dim=1) for grads in zip(*parts, strict=True))


class Attention(torch.autograd.Function):
    """The eager path: the same two functions without the dispatcher's overhead."""

    @staticmethod
    def forward(ctx, q, k, v, how: Weighting):
        out, lse = run_forward(q, k, v, how)
        ctx.save_for_backward(q, k, v, out, lse, how.pad, how.seed)
        ctx.how = replace(how, pad=None, seed=None)
        ctx.pattern = how.pattern  # keeps what was worked out alive until the backward
        return out

    @staticmethod
    def backward(ctx, do):
        q, k, v, out, lse, pad, seed = ctx.saved_tensors
        return *AttentionBackward.apply(do, q, k, v, out, lse, replace(ctx.how, pad=pad, seed=seed)), None


class AttentionBackward(torch.autograd.Function):
    """The gradients as a function with gradients of its own; out and lse are functions of q, k and v, counted there."""

    @staticmethod
    def forward(ctx, do, q, k, v, out, lse, how: Weighting):
        ctx.save_for_backward(do, q, k, v, how.pad, how.seed)
        ctx.how = replace(how, pad=None, seed=None)
        ctx.pattern = how.pattern
        return run_backward(do, q, k, v, out, lse, how)

    @staticmethod
    def backward(ctx, *given):
        do, q, k, v, pad, seed = ctx.saved_tensors
        return *run_second_order(given, do, q, k, v, replace(ctx.how, pad=pad, seed=seed)), None, None, None


_CALL = "int handle, float scale, Tensor? pad, float dropout, Tensor? seed"  # what both ops end with


@torch.library.custom_op(
    "thereexists::sparse_attention",
    mutates_args=(),
    schema=f"(Tensor q, Tensor k, Tensor v, {_CALL}) -> (Tensor, Tensor)",
)
def attention_op(
    q: Tensor, k: Tensor, v: Tensor, handle: int, scale: float, pad: Tensor | None, dropout: float, seed: Tensor | None
) -> tuple[Tensor, Tensor]:
    return run_forward(q, k, v, Weighting(handle, scale, pad, dropout, seed))


@torch.library.custom_op(
    "thereexists::sparse_attention_backward",
    mutates_args=(),
    schema=f"(Tensor do, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, {_CALL}) -> (Tensor, Tensor, Tensor)",
)
def attention_backward_op(
    do: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor,
    handle: int, scale: float, pad: Tensor | None, dropout: float, seed: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    grads = run_backward(do, q, k, v, out, lse, Weighting(handle, scale, pad, dropout, seed))
    return tuple(g.contiguous() for g in grads)  # type: ignore[return-value]


@attention_op.register_fake
def _(q, k, v, *_how):
    kind = torch.float64 if q.dtype == torch.float64 else torch.float32
    return torch.empty_like(q), q.new_empty(q.shape[:3], dtype=kind)


@attention_backward_op.register_fake
def _(do, q, k, v, *_rest):
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))


def _setup(ctx, inputs, output):
    q, k, v, handle, scale, pad, dropout, seed = inputs
    ctx.save_for_backward(q, k, v, *output, pad, seed)
    ctx.rest = handle, scale, dropout


def _op_backward(ctx, do, _):
    q, k, v, out, lse, pad, seed = ctx.saved_tensors
    handle, scale, dropout = ctx.rest
    grads = attention_backward_op(do, q, k, v, out, lse, handle, scale, pad, dropout, seed)
    return *grads, None, None, None, None, None


attention_op.register_autograd(_op_backward, setup_context=_setup)


def _setup_second(ctx, inputs, output):
    do, q, k, v, _, _, handle, scale, pad, dropout, seed = inputs
    ctx.save_for_backward(do, q, k, v, pad, seed)
    ctx.rest = handle, scale, dropout


def _op_second_order(ctx, *given):
    do, q, k, v, pad, seed = ctx.saved_tensors
    handle, scale, dropout = ctx.rest
    grads = run_second_order(given, do, q, k, v, Weighting(handle, scale, pad, dropout, seed))
    return *grads, None, None, None, None, None, None, None


attention_backward_op.register_autograd(_op_second_order, setup_context=_setup_second)
