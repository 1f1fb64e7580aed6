"""Bilinear projection: ``X + W_O X W_P`` with a learned ``W_P ∈ R^{n×n}``, the same for every input (paper A).

Column j of ``W_P`` says how much of every token token j receives. The matrix is made for ``max_position_embeddings``
tokens: a shorter sequence uses its leading corner, as if it were padded with zeros; a longer one is refused. In a
decoder ``W_P`` is upper triangular: token j receives from tokens up to j only. Stored transposed, ``weight[j, i]``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from thereexists.core.errors import InvalidInput
from thereexists.core.shapes import Bool, Float
from thereexists.mixers.config import MixerConfig
from thereexists.mixers.registry import Mixer, MixerKind, dense_parameters


class BProj(Mixer):
    """One fixed mixing matrix for all inputs, and one for all channels."""

    def __init__(self, config: MixerConfig):
        super().__init__()
        self.causal = config.is_decoder
        self.length = config.max_position_embeddings
        self.weight = nn.Parameter(torch.empty(self.length, self.length))  # W_Pᵀ
        self.output = nn.Linear(config.hidden_size, config.hidden_size)

    @property
    def initial_std(self) -> float:
        """Of ``weight``: the sum over n tokens then has the variance of one."""
        return self.length**-0.5

    def forward(self, x: Float[Tensor, "batch n d"], real: Bool[Tensor, "batch n"] | None = None) -> Tensor:
        batch, n, _ = x.shape
        if n > self.length:
            raise InvalidInput(
                f"This BProj model mixes at most {self.length} tokens; got a sequence of {n}. Shorten it, or train a "
                f"model with max_position_embeddings of {n} or more."
            )
        x = x if real is None else x * real[..., None]
        weight = self.weight[:n, :n]
        weight = weight.tril() if self.causal else weight
        # One matrix for the whole batch, by a stride of zero; autocast would copy it, so the cast comes first.
        dtype = product_dtype(x)
        return self.output(torch.bmm(weight.to(dtype).expand(batch, n, n), x.to(dtype)))


def product_dtype(x: Tensor) -> torch.dtype:
    """What a matrix product with ``x`` is computed in: autocast's dtype where it is on."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def _parameters(config: MixerConfig, layer: int) -> int:
    return config.max_position_embeddings**2 + dense_parameters(config.hidden_size, config.hidden_size)


BPROJ = MixerKind(
    name="bproj",
    formula="X + W_O X W_P, W_P ∈ R^{n×n}",
    build=lambda config, layer: BProj(config),
    layer_parameters=_parameters,
    layer_flops=lambda config, layer, n: 2 * n * config.hidden_size + 2 * config.hidden_size**2,
    permutation_equivariant=False,
    fixed_length=True,
    cost="2nd + 2d²",
)
