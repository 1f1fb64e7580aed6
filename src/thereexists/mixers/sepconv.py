"""Separable convolution, gated: ``X + W_O (A * W_C)`` with ``A = W_A X ⊙ σ(W_G X)`` and a depth-wise ``W_C ∈ R^{d×k}``.

Paper A's formula has ``A = X``; its poster's parameter count (102.5M at base size) needs three d × d matrices a block:
a gated pointwise input and a pointwise output (docs/mixers.md). In a decoder the kernel looks to the left only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from thereexists.core.shapes import Bool, Float
from thereexists.mixers.config import MixerConfig
from thereexists.mixers.convolution import gated_convolution
from thereexists.mixers.registry import Mixer, MixerKind, dense_parameters


class SepConv(Mixer):
    """A kernel of its own for every channel, over a window of ``kernel_size`` tokens."""

    def __init__(self, config: MixerConfig):
        super().__init__()
        self.left = config.kernel_size - 1 if config.is_decoder else config.kernel_size // 2
        self.input = nn.Linear(config.hidden_size, 2 * config.hidden_size)  # W_A, then W_G
        self.weight = nn.Parameter(torch.empty(config.kernel_size, config.hidden_size))  # W_Cᵀ
        self.output = nn.Linear(config.hidden_size, config.hidden_size)

    @property
    def initial_std(self) -> float:
        """Of ``weight``: the sum over the window then has the variance of one token."""
        return self.weight.shape[0] ** -0.5

    def forward(self, x: Float[Tensor, "batch n d"], real: Bool[Tensor, "batch n"] | None = None) -> Tensor:
        return self.output(gated_convolution(self.input(x), self.weight, self.left, real))


def sepconv_parameters(config: MixerConfig, layer: int = 0) -> int:
    d = config.hidden_size
    return dense_parameters(d, 2 * d) + config.kernel_size * d + dense_parameters(d, d)


def sepconv_flops(config: MixerConfig, layer: int, n: int) -> float:
    d = config.hidden_size
    return 6 * d**2 + 2 * config.kernel_size * d


SEPCONV = MixerKind(
    name="sepconv",
    formula="X + W_O ((W_A X ⊙ σ(W_G X)) * W_C), depth-wise W_C ∈ R^{d×k}",
    build=lambda config, layer: SepConv(config),
    layer_parameters=sepconv_parameters,
    layer_flops=sepconv_flops,
    permutation_equivariant=False,
    fixed_length=False,
    cost="6d² + 2kd",
)
