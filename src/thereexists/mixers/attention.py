"""Attention, as BERT has it: ``X + W_O concat_i(ρ[Q_i K_iᵀ / √m] V_i)`` with softmax ρ and biases everywhere.

The three input projections are one matrix product of width 3d; the rest is torch's fused attention.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from thereexists.core.fused_attention import fused_attention
from thereexists.core.shapes import Bool, Float
from thereexists.mixers.config import MixerConfig
from thereexists.mixers.registry import Mixer, MixerKind, dense_parameters


class Attention(Mixer):
    """Dense multi-head self-attention; causal in a decoder."""

    def __init__(self, config: MixerConfig):
        super().__init__()
        self.heads = config.num_attention_heads
        self.causal = config.is_decoder
        self.dropout = config.attention_probs_dropout_prob
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Float[Tensor, "batch n d"], real: Bool[Tensor, "batch n"] | None = None) -> Tensor:
        q, k, v = split_heads(self.qkv(x), 3, self.heads)  # (batch, h, n, m) each
        mask = key_mask(real, x.shape[1], self.causal)
        y = fused_attention(
            q, k, v, mask, dropout_p=self.dropout if self.training else 0.0, is_causal=self.causal and mask is None
        )
        return self.output(join_heads(y))


class CrossAttention(nn.Module):
    """The tokens of a decoder look at those of the encoder; always dense."""

    def __init__(self, config: MixerConfig):
        super().__init__()
        self.heads = config.num_attention_heads
        self.dropout = config.attention_probs_dropout_prob
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.kv = nn.Linear(config.hidden_size, 2 * config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(
        self,
        x: Float[Tensor, "batch n d"],
        source: Float[Tensor, "batch s d"],
        source_real: Bool[Tensor, "batch s"] | None = None,
    ) -> Tensor:
        (q,) = split_heads(self.query(x), 1, self.heads)
        k, v = split_heads(self.kv(source), 2, self.heads)
        mask = None if source_real is None else source_real[:, None, None, :]
        y = fused_attention(q, k, v, mask, dropout_p=self.dropout if self.training else 0.0)
        return self.output(join_heads(y))


def split_heads(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """``(batch, n, parts·h·m)`` into ``parts`` tensors ``(batch, h, n, m)``, views of the same memory.

    Split first, into heads after: the gradient then comes back by one concatenation along the last axis.
    """
    batch, n, width = x.shape
    m = width // (parts * heads)
    return tuple(part.view(batch, n, heads, m).transpose(1, 2) for part in x.split(heads * m, dim=-1))


def join_heads(x: Tensor) -> Tensor:
    """``(batch, h, n, m)`` into ``(batch, n, h·m)``."""
    return x.transpose(1, 2).flatten(2)


def key_mask(real: Tensor | None, n: int, causal: bool) -> Tensor | None:
    """What each token may look at, broadcastable to ``(batch, h, n, n)``; None when fused attention needs no mask.

    In the causal case a padded token keeps itself, so that no row is empty: token 0 may be padding.
    """
    if real is None:
        return None
    keys = real[:, None, None, :]  # (batch, 1, 1, n)
    if not causal:
        return keys
    earlier = torch.ones(n, n, dtype=torch.bool, device=real.device).tril()
    return earlier & (keys | torch.eye(n, dtype=torch.bool, device=real.device))


def attention_parameters(config: MixerConfig, layer: int = 0) -> int:
    return 4 * dense_parameters(config.hidden_size, config.hidden_size)


def attention_flops(config: MixerConfig, layer: int, n: int) -> float:
    d = config.hidden_size
    return 8 * d**2 + 4 * n * d  # four projections; Q Kᵀ and A V


ATTENTION = MixerKind(
    name="attention",
    formula="X + W_O V ρ[KᵀQ/√m], heads side by side",
    build=lambda config, layer: Attention(config),
    layer_parameters=attention_parameters,
    layer_flops=attention_flops,
    permutation_equivariant=True,
    fixed_length=False,
    cost="8d² + 4nd",
)
