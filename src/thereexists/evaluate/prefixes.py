"""A network on tokens run on sequences shorter than its positions, without the n × n matrix of attention weights.

The first positions are taken, and each head's attention is one call of torch's fused kernel (logits are not scaled: the
class has no 1/√m). What a kernel may do otherwise than the plain formula is the order of sums.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from thereexists.core.errors import InvalidInput
from thereexists.core.fused_attention import fused_attention
from thereexists.model import EmbeddedTransformer

_TILE_NUMBERS = 1 << 24  # hidden activations of one tile


def run_prefixes(network: EmbeddedTransformer, ids: np.ndarray) -> np.ndarray:
    """Token numbers (batch, length), length at most the number of positions: (batch, length, outputs), float64."""
    length, width = ids.shape[1], max(network.shape()["r"], network.shape()["d"])
    tile = max(1, _TILE_NUMBERS // (length * width))
    device = network.W_out.device
    with torch.no_grad():
        parts = [
            prefixes(network, torch.from_numpy(ids[start : start + tile]).to(device)).double().cpu().numpy()
            for start in range(0, len(ids), tile)
        ]
    return np.concatenate(parts)


def prefixes(network: EmbeddedTransformer, X: Tensor) -> Tensor:
    """The same on a tensor of token numbers, in the network's own dtype."""
    if network.embedding is None or network.E is None or X.shape[1] > len(network.E):
        raise InvalidInput(f"A sequence of {X.shape[1]} tokens is longer than the positions of this network.")
    with network.in_a_safe_dtype():
        Z = nn.functional.embedding(X, network.embedding) + network.E[: X.shape[1]]
        for _, _, layer in network.layers():
            if layer.attention is not None:
                Z = Z + _attend(Z, *layer.attention)
            if layer.feed_forward is not None:
                W_1, b_1, W_2, b_2, _ = layer.feed_forward
                Z = Z + nn.functional.linear(nn.functional.relu(nn.functional.linear(Z, W_1, b_1)), W_2, b_2)
        return nn.functional.linear(Z, network.W_out)


def _attend(Z: Tensor, W_Q: Tensor, b_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor, mask: Tensor | None) -> Tensor:
    h, m, d = W_Q.shape
    heads = (
        nn.functional.linear(Z, W.reshape(h * m, d), bias).unflatten(2, (h, m)).transpose(1, 2)
        for W, bias in ((W_Q, b_Q.reshape(-1)), (W_K, None), (W_V, None))
    )
    if mask is not None:
        mask = mask[: Z.shape[1], : Z.shape[1]]
    query, key, value = heads
    found = fused_attention(query, key, value, mask, scale=1.0)  # (batch, h, length, m)
    return nn.functional.linear(found.transpose(1, 2).flatten(2), W_O.transpose(0, 1).reshape(d, h * m))
