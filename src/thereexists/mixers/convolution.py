"""Depth-wise convolution along the tokens in the layout ``(batch, n, d)``, with the gate in front of it.

    a_t = u_t ⊙ σ(g_t)          (zero for padding)
    y_t = Σ_j w_j ⊙ a_{t+j−left}        j = 0..k−1; what lies outside the sequence counts as zero

Stock ``conv1d`` wants channels first, so it moves all of ``a`` twice; on CUDA one fused kernel does gate and
convolution in a single pass (``convolution_triton.py``), elsewhere k shifted multiply-adds do it.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import pad

from thereexists.core.shapes import Bool, Float


def gated_convolution(
    ug: Float[Tensor, "batch n twice_d"],
    weight: Float[Tensor, "k d"],
    left: int,
    real: Bool[Tensor, "batch n"] | None = None,
) -> Float[Tensor, "batch n d"]:
    """``y`` above; ``ug`` holds u and g side by side, ``left`` is how many tokens the kernel looks back."""
    if ug.is_cuda and _triton_is_there():
        from thereexists.mixers.convolution_triton import fused_gated_convolution

        return fused_gated_convolution(ug, weight, left, real)
    u, g = ug.chunk(2, dim=-1)
    a = u * torch.sigmoid(g)
    return depthwise_convolution(a if real is None else a * real[..., None], weight, left)


def depthwise_convolution(
    a: Float[Tensor, "batch n d"], weight: Float[Tensor, "k d"], left: int
) -> Float[Tensor, "batch n d"]:
    """``y_t = Σ_j w_j a_{t+j−left}`` as k shifted multiply-adds, differentiable by autograd."""
    k, n = weight.shape[0], a.shape[1]
    weight = weight.to(a.dtype)
    padded = pad(a, (0, 0, left, k - 1 - left))  # (batch, n + k − 1, d)
    y = padded[:, :n] * weight[0]
    for j in range(1, k):
        y = torch.addcmul(y, padded[:, j : j + n], weight[j])
    return y


@cache
def _triton_is_there() -> bool:
    try:
        import triton  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError:
        return False
    return True
