"""Attention over a step in plain torch operations, one number for each connection: differentiable at will.

The kernels give the output and the gradients. The gradient of the gradients (double backward) has no kernel; it is
taken by autograd through the formula below, which is the definition itself:

    o_k = Σ_{j∈A_k} P_kj v_j,    P_kj = e^{S_kj} / Σ_{i∈A_k} e^{S_ki},    S_kj = scale · ⟨q_k, k_j⟩,

the logits changed as ``call_options`` says.

It takes memory for connections × head size, where the kernels take n × head size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thereexists.attention.call_options import CallOptions, survivors
from thereexists.attention.ways import list_everything
from thereexists.patterns import Step

Tensors = tuple[Tensor | None, ...]
vjp: Callable[..., tuple[Any, Callable[..., Any]]] = torch.func.vjp  # type: ignore[assignment]  # no has_aux here


def attention_by_entries(
    q: Tensor, k: Tensor, v: Tensor, sinks: Tensor | None, step: Step, options: CallOptions
) -> tuple[Tensor, Tensor]:
    """The output (batch, heads, n, d) and the log-sum-exp; padding, dropout, cap, bias and sinks as in the kernels."""
    row, col = (torch.from_numpy(each).to(q.device) for each in _connections(step))
    kind = torch.promote_types(q.dtype, torch.float32)
    group = q.shape[1] // k.shape[1]
    q, k, v = (x.to(kind).repeat_interleave(times, 1) for x, times in ((q, 1), (k, group), (v, group)))
    logits = options.scale * (q[:, :, row] * k[:, :, col]).sum(-1)  # (batch, heads, connections)
    if options.cap:
        logits = options.cap * torch.tanh(logits / options.cap)
    if options.bias is not None:
        logits = logits + options.bias[:, col - row + step.n - 1]
    if options.pad is not None:
        logits = logits.masked_fill(~options.pad[:, None, col], -torch.inf)
    # The largest logit of a row cancels in P; it is a constant for autograd. A row of padding has −∞, and gets 0.
    top = logits.new_full(q.shape[:3], -torch.inf).scatter_reduce(2, row.expand_as(logits), logits.detach(), "amax")
    if sinks is not None:
        top = torch.maximum(top, sinks.detach().to(kind)[:, None])
    top = top.masked_fill(top == -torch.inf, 0.0)
    weight = torch.exp(logits - top[:, :, row])
    total = torch.zeros_like(top).index_add(2, row, weight)
    if sinks is not None:
        total = total + torch.exp(sinks.to(kind)[:, None] - top)
    empty = total == 0
    total = total.masked_fill(empty, 1.0)
    if options.dropout > 0:
        weight = weight * (options.gain * _kept(q, *_connections(step), options))
    out = torch.zeros_like(v).index_add(2, row, weight[..., None] * v[:, :, col]) / total[..., None]
    return out, (top + torch.log(total)).masked_fill(empty, -torch.inf)


def second_order(given: Tensors, tensors: Tensors, spans: Any, options_of: Any) -> Tensors:
    """The gradients of ⟨given, (dq, dk, dv, dsinks)⟩ with respect to ``tensors``: do, dlse, q, k, v and the sinks.

    By ``torch.func.vjp``, in which each argument has a name of its own, so that each derivative is a partial one even
    where q and k are the same tensor; its results can be differentiated and mapped again.
    """
    do, dlse, *inputs = tensors
    inputs = [x for x in inputs if x is not None]  # there may be no sinks

    def attend(q: Tensor, k: Tensor, v: Tensor, sinks: Tensor | None = None) -> tuple[Tensor, Tensor]:
        outs, lses = [], []
        for span, step in spans:
            own = slice(0, q.shape[1]) if span is None else slice(*span)
            which = torch.arange(own.start, own.stop, device=q.device) // (q.shape[1] // k.shape[1])
            keys = (k, v) if span is None else (k[:, which], v[:, which])
            mine = None if sinks is None else sinks[own]
            out, lse = attention_by_entries(q[:, own], *keys, mine, step, options_of(own))
            outs.append(out)
            lses.append(lse)
        return torch.cat(outs, dim=1), torch.cat(lses, dim=1)

    def gradients(do: Tensor, dlse: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        (out, lse), back = vjp(attend, *inputs)
        moved = dlse.to(lse.dtype).masked_fill(lse == -torch.inf, 0.0)  # but not of a row without keys
        return back((do.to(out.dtype), moved))

    still = inputs[0].new_zeros(inputs[0].shape[:3]) if dlse is None else dlse
    found, back = vjp(gradients, do, still, *inputs)
    along = (torch.zeros_like(x) if g is None else g for x, g in zip(found, given, strict=False))
    of_do, of_dlse, *of_inputs = back(tuple(along))
    return of_do, None if dlse is None else of_dlse, *of_inputs, *(None,) * (4 - len(inputs))


def _connections(step: Step) -> tuple[np.ndarray, np.ndarray]:
    listed = list_everything(step).entries
    assert listed is not None
    return np.repeat(np.arange(step.n), np.diff(listed.indptr)), listed.indices.astype(np.int64)


def _kept(q: Tensor, row: np.ndarray, col: np.ndarray, options: CallOptions) -> Tensor:
    b, h = q.shape[:2]
    kept = [survivors(options.seed, options.threshold, i, row, col) for i in range(b * h)]
    return torch.from_numpy(np.stack(kept)).view(b, h, -1).to(q.device, q.dtype)
