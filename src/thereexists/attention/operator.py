"""Planned attention as torch knows it: with autograd, as a custom op for ``torch.compile``, and under ``torch.func``.

A pattern is known to the op by its number (``core/numbered.py``), since ops take tensors and numbers only.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from thereexists.attention.log_sums import Sums
from thereexists.attention.mapped import rule_of
from thereexists.attention.planned import (
    Weighting,
    run_backward_of_both,
    run_forward,
    run_second_order,
    run_sinks_backward,
)
from thereexists.attention.ways import backend_has
from thereexists.core.errors import InvalidInput
from thereexists.core.fused_attention import no_autocast
from thereexists.core.numbered import numbered


def no_forward_mode(ctx: Any, *grad_inputs: Any) -> Any:
    raise InvalidInput(
        "Sparse attention has no forward mode (jvp, jacfwd, hessian); use reverse mode: grad, vjp, jacrev, or "
        "jacrev(jacrev(f)) for a Hessian."
    )


class Attention(torch.autograd.Function):
    """The eager path: the same two functions without the dispatcher's overhead. Output and log-sum-exp."""

    @staticmethod
    def forward(ctx, q, k, v, sinks, how: Weighting):
        out, sums = run_forward(q, k, v, how)
        ctx.save_for_backward(q, k, v, out, *sums, *how.tensors)
        ctx.how = how.bare()
        ctx.pattern = how.pattern  # keeps what was worked out alive until the backward
        ctx.set_materialize_grads(False)
        return out, sums.lse

    @staticmethod
    def backward(ctx, do, given):
        q, k, v, out, lse, lost, *tensors = ctx.saved_tensors
        how = ctx.how.holding(*tensors)
        do = torch.zeros_like(out) if do is None else do
        with no_autocast(q):
            dq, dk, dv, ds = AttentionBackward.apply(do, given, q, k, v, how.sinks, (out, Sums(lse, lost), how))
        return dq, dk, dv, ds, None

    jvp = staticmethod(no_forward_mode)


class AttentionBackward(torch.autograd.Function):
    """The gradients as a function with gradients of its own; out and lse are functions of q, k and v, counted there."""

    @staticmethod
    def forward(ctx, do, given, q, k, v, sinks, known: tuple[Tensor, Sums, Weighting]):
        out, sums, how = known
        ctx.save_for_backward(do, given, q, k, v, *how.tensors)
        ctx.how = how.bare()
        ctx.pattern = how.pattern
        ctx.set_materialize_grads(False)
        grads = run_backward_of_both(do, given, q, k, v, out, sums, how)
        return *grads, None if sinks is None else run_sinks_backward(do, given, out, sums, sinks)

    @staticmethod
    def backward(ctx, *given):
        do, dlse, q, k, v, *tensors = ctx.saved_tensors
        how = ctx.how.holding(*tensors)
        with no_autocast(q):
            return *run_second_order(given, (do, dlse, q, k, v, how.sinks), how), None

    jvp = staticmethod(no_forward_mode)


_CALL = (  # what both ops end with
    "int handle, float scale, Tensor? pad, float dropout, Tensor? seed, "
    "Tensor? sinks=None, float cap=0.0, Tensor? bias=None, bool whole=False"
)


@torch.library.custom_op(
    "thereexists::sparse_attention",
    mutates_args=(),
    schema=f"(Tensor q, Tensor k, Tensor v, {_CALL}) -> (Tensor, Tensor, Tensor)",
)
def attention_op(
    q: Tensor, k: Tensor, v: Tensor, handle: int, scale: float, pad: Tensor | None, dropout: float,
    seed: Tensor | None, sinks: Tensor | None = None, cap: float = 0.0, bias: Tensor | None = None, whole: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return _forward(q, k, v, handle, scale, pad, dropout, seed, sinks, cap, bias, whole)


def _forward(q, k, v, *how) -> tuple[Tensor, Tensor, Tensor]:
    out, (lse, lost) = run_forward(q, k, v, Weighting(*how))
    return out, lse, q.new_empty(0) if lost is None else lost


@torch.library.custom_op(
    "thereexists::sparse_attention_backward",
    mutates_args=(),
    schema="(Tensor do, Tensor? given, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, Tensor lost, "
    f"{_CALL}) -> (Tensor, Tensor, Tensor, Tensor)",
)
def attention_backward_op(
    do: Tensor, given: Tensor | None, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, lost: Tensor,
    handle: int, scale: float, pad: Tensor | None, dropout: float, seed: Tensor | None,
    sinks: Tensor | None = None, cap: float = 0.0, bias: Tensor | None = None, whole: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    return _backward(do, given, q, k, v, out, lse, lost, handle, scale, pad, dropout, seed, sinks, cap, bias, whole)


def _backward(do, given, q, k, v, out, lse, lost, *how) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    how, sums = Weighting(*how), Sums(lse, lost if lost.shape == lse.shape else None)
    grads = run_backward_of_both(do, given, q, k, v, out, sums, how)
    ds = q.new_empty(0) if how.sinks is None else run_sinks_backward(do, given, out, sums, how.sinks)
    return *(g.contiguous() for g in grads), ds  # type: ignore[return-value]


@attention_op.register_fake
def _(q, k, v, *_how):
    kind = torch.float64 if q.dtype == torch.float64 else torch.float32
    lse = q.new_empty(q.shape[:3], dtype=kind)
    return torch.empty_like(q), lse, torch.empty_like(lse) if backend_has(q.device.type, "lost") else q.new_empty(0)


@attention_backward_op.register_fake
def _(do, given, q, k, v, *rest):
    sinks = rest[8] if len(rest) > 8 else None  # after out, lse, lost, handle, scale, pad, dropout, seed
    grads = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))
    return *grads, q.new_empty(0) if sinks is None else torch.empty_like(sinks)


def _setup(ctx, inputs, output):
    q, k, v, handle, scale, pad, dropout, seed, sinks, cap, bias, whole = inputs
    ctx.save_for_backward(q, k, v, *output, pad, seed, sinks, bias)
    ctx.rest = handle, scale, dropout, cap, whole
    ctx.pattern = numbered(handle)  # lives until the backward, whoever else forgets it
    ctx.set_materialize_grads(False)


def _op_backward(ctx, do, given, _lost):
    return _gradients(attention_backward_op, ctx, do, given)


def _gradients(backward, ctx, do, given):
    q, k, v, out, lse, lost, pad, seed, sinks, bias = ctx.saved_tensors
    handle, scale, dropout, cap, whole = ctx.rest
    do = torch.zeros_like(out) if do is None else do
    how = (handle, scale, pad, dropout, seed, sinks, cap, bias, whole)
    dq, dk, dv, ds = backward(do, given, q, k, v, out, lse, lost, *how)
    return dq, dk, dv, None, None, None, None, None, None if sinks is None else ds, None, None, None


attention_op.register_autograd(_op_backward, setup_context=_setup)


def _setup_second(ctx, inputs, output):
    do, given, q, k, v, _, _, _, handle, scale, pad, dropout, seed, sinks, cap, bias, whole = inputs
    ctx.save_for_backward(do, given, q, k, v, pad, seed, sinks, bias)
    ctx.rest = handle, scale, dropout, cap, whole
    ctx.pattern = numbered(handle)


def _op_second_order(ctx, *given):
    do, dlse, q, k, v, pad, seed, sinks, bias = ctx.saved_tensors
    handle, scale, dropout, cap, whole = ctx.rest
    how = Weighting(handle, scale, pad, dropout, seed, sinks, cap, bias, whole)
    given = given if sinks is not None else (*given[:3], None)
    *grads, ds = run_second_order(given, (do, dlse, q, k, v, sinks), how)
    return *grads, *(None,) * 8, ds, None, None, None


attention_backward_op.register_autograd(_op_second_order, setup_context=_setup_second)

attention_op.register_vmap(rule_of(attention_op, 3))
attention_backward_op.register_vmap(rule_of(attention_backward_op, 8))


class TransformedAttention(torch.autograd.Function):
    """The same under ``torch.func``, whose ``grad`` takes no operators; four times the overhead of ``Attention``."""

    @staticmethod
    def forward(q, k, v, *how):
        return _forward(q, k, v, *how)

    setup_context = staticmethod(_setup)
    jvp = staticmethod(no_forward_mode)

    @staticmethod
    def backward(ctx, do, given, _lost):
        return _gradients(TransformedBackward.apply, ctx, do, given)

    @staticmethod
    def vmap(info, in_dims, *args):
        return rule_of(TransformedAttention.apply, 3)(info, in_dims, *args)


class TransformedBackward(torch.autograd.Function):
    forward = staticmethod(_backward)
    setup_context = staticmethod(_setup_second)
    backward = staticmethod(_op_second_order)
    jvp = staticmethod(no_forward_mode)

    @staticmethod
    def vmap(info, in_dims, *args):
        return rule_of(TransformedBackward.apply, 8)(info, in_dims, *args)
