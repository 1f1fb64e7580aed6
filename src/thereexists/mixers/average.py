"""Average attention: ``X + W_O X (11ᵀ/n)``, every token receives the same mean.

``W_O`` is linear, so it is applied once to the mean instead of once to every token: the same function, n times cheaper.
The causal version gives token k the mean of tokens 0..k, and needs ``W_O`` for each of them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from thereexists.core.shapes import Bool, Float
from thereexists.mixers.config import MixerConfig
from thereexists.mixers.registry import Mixer, MixerKind, dense_parameters


class Average(Mixer):
    """The mean of the real tokens; in a decoder, of those so far."""

    def __init__(self, config: MixerConfig):
        super().__init__()
        self.causal = config.is_decoder
        self.output = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Float[Tensor, "batch n d"], real: Bool[Tensor, "batch n"] | None = None) -> Tensor:
        return self.output(prefix_mean(x, real)) if self.causal else self.output(mean(x, real)).expand_as(x)


def mean(x: Tensor, real: Tensor | None) -> Tensor:
    """``(batch, 1, d)``: the mean over the real tokens; zero where there are none."""
    if real is None:
        return x.mean(dim=1, keepdim=True)
    count = real.sum(dim=1).clamp(min=1)[:, None, None]
    total = (x * real[..., None]).sum(dim=1, keepdim=True, dtype=torch.promote_types(x.dtype, torch.float32))
    return (total / count).to(x.dtype)


def prefix_mean(x: Tensor, real: Tensor | None) -> Tensor:
    """``(batch, n, d)``: token k receives the mean over the real tokens among 0..k. Sums in float32 or better."""
    wide = torch.promote_types(x.dtype, torch.float32)
    if real is None:
        count = torch.arange(1, x.shape[1] + 1, device=x.device, dtype=wide)[:, None]
        return (x.cumsum(dim=1, dtype=wide) / count).to(x.dtype)
    count = real.cumsum(dim=1).clamp(min=1)[..., None]
    return ((x * real[..., None]).cumsum(dim=1, dtype=wide) / count).to(x.dtype)


def _flops(config: MixerConfig, layer: int, n: int) -> float:
    d = config.hidden_size
    return d + 2 * d**2 if config.is_decoder else d + 2 * d**2 / n  # the sum; W_O


AVERAGE = MixerKind(
    name="average",
    formula="X + W_O X (11ᵀ/n)",
    build=lambda config, layer: Average(config),
    layer_parameters=lambda config, layer: dense_parameters(config.hidden_size, config.hidden_size),
    layer_flops=_flops,
    permutation_equivariant=True,
    fixed_length=False,
    cost="d + 2d²/n",
)
