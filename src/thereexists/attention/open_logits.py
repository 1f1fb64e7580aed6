"""Dense attention whose logits are in memory, so that they may be changed: a soft cap, and a bias by offset.

    S = cap · tanh(scale · ⟨q, k⟩ / cap) + bias,    dS/d(scale · ⟨q, k⟩) = 1 − tanh²,

and the rest is the merge of ``docs/attention.md``: the backward takes the merged output and log-sum-exp, the latter in
two numbers (``log_sums``), since a bias or a cap may be as large as it likes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from thereexists.attention.log_sums import anchored, in_two


@dataclass(frozen=True, eq=False)
class Change:
    """What is done to the logits of a call."""

    cap: float  # 0: none
    bias: Tensor | None  # (g, 1, rows, keys)


def open_attention(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Tensor | None, change: Change):
    """Output and both numbers of the log-sum-exp of (g, chunks, rows, D); a row without keys gives 0 and −inf."""
    q, k, v = _wide(q, k, v)
    s, _ = _logits(q, k, scale, mask, change)
    top = s.amax(-1)
    p = s.sub_(anchored(top)[..., None]).exp_()
    total = p.sum(-1)
    return (p @ v).div_(total.masked_fill(total == 0, 1.0)[..., None]), *in_two(top, torch.log(total))


def open_backward(do, q, k, v, out, lse, lost, how: tuple[float, Tensor | None, Change]):
    """The gradients of q, k and v, for gradients of ``out`` that are multiplied by e^(−lost) already.

    A row that counts elsewhere, or has no keys, comes with lse = +inf, and P = 0. No weight is above 1: a product of
    other shapes than the forward's may round a large logit to a neighbour, whose exponential is anything.
    """
    scale, mask, change = how
    do, q, k, v, out = _wide(do, q, k, v, out)
    s, slope = _logits(q, k, scale, mask, change)
    p = s.sub_(lse[..., None]).clamp_(max=lost[..., None]).exp_()  # P · e^lost
    dv = p.mT @ do
    ds = p.mul_((do @ v.mT).sub_((do * out).sum(-1, keepdim=True)))
    ds = ds.mul_(slope) if slope is not None else ds
    return (ds @ k).mul_(scale), (ds.mT @ q).mul_(scale), dv


def _logits(q: Tensor, k: Tensor, scale: float, mask: Tensor | None, change: Change) -> tuple[Tensor, Tensor | None]:
    """The logits, and the derivative of the cap where there is one."""
    s, slope = (q * scale) @ k.mT, None
    if change.cap:
        bent = s.div_(change.cap).tanh_()
        slope = 1 - bent.square()
        s = bent * change.cap
    s = s if change.bias is None else s.add_(change.bias)
    return (s if mask is None else s.add_(mask)), slope


def _wide(*tensors: Tensor) -> list[Tensor]:
    kind = torch.promote_types(tensors[0].dtype, torch.float32)
    return [x.to(kind) for x in tensors]
