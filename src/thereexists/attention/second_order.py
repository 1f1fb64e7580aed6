"""Attention over a step in plain torch operations, one number for each connection: differentiable at will.

The kernels give the output and the gradients. The gradient of the gradients (double backward) has no kernel; it is
taken by autograd through the formula below, which is the definition itself:

    o_k = Σ_{j∈A_k} P_kj v_j,    P_kj = e^{S_kj} / Σ_{i∈A_k} e^{S_ki},    S_kj = scale · ⟨q_k, k_j⟩.

It takes memory for connections × head size, where the kernels take n × head size.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from thereexists.attention.call_options import CallOptions, survivors
from thereexists.attention.ways import list_everything
from thereexists.patterns import Step


def attention_by_entries(q: Tensor, k: Tensor, v: Tensor, step: Step, options: CallOptions) -> Tensor:
    """The output (batch, heads, n, d), with padding and dropout as in the kernels."""
    row, col = _connections(step, q.device)
    kind = torch.promote_types(q.dtype, torch.float32)
    q, k, v = (x.to(kind) for x in (q, k, v))
    logits = options.scale * (q[:, :, row] * k[:, :, col]).sum(-1)  # (batch, heads, connections)
    if options.pad is not None:
        logits = logits.masked_fill(~options.pad[:, None, col], -torch.inf)
    # The largest logit of a row cancels in P; it is a constant for autograd. A row of padding has −∞, and gets 0.
    top = logits.new_full(q.shape[:3], -torch.inf).scatter_reduce(2, row.expand_as(logits), logits.detach(), "amax")
    weight = torch.exp(logits - top.masked_fill(top == -torch.inf, 0.0)[:, :, row])
    total = torch.zeros_like(top).index_add(2, row, weight)
    total = total.masked_fill(total == 0, 1.0)
    if options.dropout > 0:
        weight = weight * (options.gain * _kept(q, row, col, options))
    return torch.zeros_like(v).index_add(2, row, weight[..., None] * v[:, :, col]) / total[..., None]


def second_order(
    given: tuple[Tensor, ...], do: Tensor, q: Tensor, k: Tensor, v: Tensor, step: Step, options: CallOptions
) -> tuple[Tensor, ...]:
    """The gradients of ⟨given, (dq, dk, dv)(do, q, k, v)⟩ with respect to do, q, k and v."""
    again = torch.is_grad_enabled()  # somebody wants the third order too
    with torch.enable_grad():
        # Fresh names for the four, so that each derivative is a partial one even where q and k are the same tensor.
        e, a, b, c = (x.view_as(x) if again and x.requires_grad else x.detach().requires_grad_() for x in (do, q, k, v))
        out = attention_by_entries(a, b, c, step, options)
        first = torch.autograd.grad(out, (a, b, c), e.to(out.dtype), create_graph=True)
        return torch.autograd.grad(first, (e, a, b, c), given, create_graph=again)


def _connections(step: Step, device: torch.device) -> tuple[Tensor, Tensor]:
    listed = list_everything(step).entries
    assert listed is not None
    row = np.repeat(np.arange(step.n), np.diff(listed.indptr))
    return torch.from_numpy(row).to(device), torch.from_numpy(listed.indices.astype(np.int64)).to(device)


def _kept(q: Tensor, row: Tensor, col: Tensor, options: CallOptions) -> Tensor:
    b, h = q.shape[:2]
    r, c = row.cpu().numpy(), col.cpu().numpy()
    kept = [survivors(options.seed, options.threshold, i, r, c) for i in range(b * h)]
    return torch.from_numpy(np.stack(kept)).view(b, h, -1).to(q.device, q.dtype)
