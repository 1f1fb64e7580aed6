"""Masked dense attention in float64, and how far a correct low-precision run may be from it.

The bounds follow the rounding errors of the usual algorithm to first order and are doubled for the higher orders. With
u = the unit roundoff of the tensors' type, U = that of float32 (float64 for float64 tensors), x = the relative error of
the exponential, and for row k with L keys:

    |δS|  ≤ E_k = (D + 3)·U·max_j scale·Σ|q||k|          logits: D products, their sum, the scale, base 2
    |δP|  ≤ P·r_k,  r_k = 2·(E_k + x) + (L + 4)·U + 2u    exponential, log-sum-exp, P stored in the tensors' type
    |δO|  ≤ P|V|·(r_k + m·u) + tiny                        m outputs stored along the way (one per piece)
    |δdS| ≤ P·(r_k·|dP − D| + δdP + δD) + u·|dS|           δD from the stored O, δdP from D products
    dQ, dK, dV: the same through the last product, plus its own sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_EXP_ERROR = 2.0**-19  # PyTorch's CPU kernels use a 20-bit exponential


@dataclass(frozen=True)
class Exact:
    """Output and gradients in float64, and a bound on the error of each entry of a correct run."""

    out: Tensor
    grads: tuple[Tensor, Tensor, Tensor]
    out_bound: Tensor
    grad_bounds: tuple[Tensor, Tensor, Tensor]


def exact_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor,
    do: Tensor,
    scale: float,
    pieces: int = 4,
    gain: Tensor | None = None,
) -> Exact:
    """Reference for ``mask`` (broadcast to batch × heads × n × n; True = attend). Rows without keys give 0.

    ``gain`` is what dropout multiplies each weight by, in the same shape: 0, or 1 / (1 − p). A ``mask`` of numbers is
    added to the logits, and the sum rounded to its type; that is every kernel's logit, and the bounds are right, where
    products of queries and keys are exact in this type.
    """
    stored, worked = _unit(q.dtype), _unit(torch.float64 if q.dtype == torch.float64 else torch.float32)
    exp_error = 4 * worked if q.dtype == torch.float64 else _EXP_ERROR
    tiny = torch.finfo(q.dtype).tiny
    q, k, v, do = (x.detach().double() for x in (q, k, v, do))
    mask = mask.expand(*q.shape[:2], *mask.shape[-2:])
    d = q.shape[-1]
    s = q @ k.mT * scale
    if mask.dtype != torch.bool:
        s, mask = (s.to(mask.dtype) + mask).double(), mask > -torch.inf
    s = s.masked_fill(~mask, -torch.inf)
    p = torch.where(mask, torch.softmax(s, -1), 0.0)  # of no keys: NaN
    gain = torch.ones_like(p) if gain is None else gain.double()
    used = p * gain
    out = used @ v
    dp = (do @ v.mT) * gain
    delta = (do * out).sum(-1, keepdim=True)
    ds = p * (dp - delta)
    dq, dk, dv = ds @ k * scale, ds.mT @ q * scale, used.mT @ do

    size = (q.abs() @ k.abs().mT * scale).masked_fill(~mask, 0.0)
    e = (d + 3) * worked * size.amax(-1, keepdim=True)
    length = mask.sum(-1, keepdim=True)
    r = 2 * (e + exp_error) + (length + 4) * worked + 2 * stored
    out_bound = 2 * ((used @ v.abs()) * (r + pieces * stored) + tiny * v.abs().sum(-2, keepdim=True))
    d_dp = (d + 1) * worked * (do.abs() @ v.abs().mT) * gain
    d_delta = (do.abs() * out_bound).sum(-1, keepdim=True) + (d + 1) * worked * (do * out).abs().sum(-1, keepdim=True)
    d_ds = p * (r * (dp - delta).abs() + d_dp + d_delta) + stored * ds.abs() + tiny
    n = q.shape[2]
    summed = n * worked
    dq_bound = 2 * scale * ((d_ds + summed * ds.abs()) @ k.abs()) + pieces * stored * dq.abs() + tiny
    dk_bound = 2 * scale * ((d_ds + summed * ds.abs()).mT @ q.abs()) + pieces * stored * dk.abs() + tiny
    dv_bound = 2 * ((used * (r + summed)).mT @ do.abs()) + pieces * stored * dv.abs() + tiny * n
    return Exact(out, (dq, dk, dv), out_bound, (dq_bound, dk_bound, dv_bound))


def excess(got: Tensor, want: Tensor, bound: Tensor) -> float:
    """The largest error in units of its bound: at most 1 for a correct run. NaN counts as infinite."""
    ratio = (got.detach().double() - want).abs() / bound.clamp_min(torch.finfo(torch.float64).tiny)
    ratio = torch.where((got.detach().double() == want), 0.0, ratio)
    return float(torch.nan_to_num(ratio, nan=torch.inf).max()) if ratio.numel() else 0.0


def _unit(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps / 2
