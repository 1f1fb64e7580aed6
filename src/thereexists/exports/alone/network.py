"""A compact network in nothing but torch: what every export computes.

State dict, for block i: ``blocks.i.value.weight`` (m, d), ``blocks.i.output.weight`` (d, m) if the block has attention
(without more, its logits are zero: uniform over the real tokens), ``blocks.i.up.weight/bias`` and
``blocks.i.down.weight/bias`` of the feed-forward part; ``embed.weight``, (d, features) or (vocabulary, d); ``position``
(n, d) or none; ``readout.weight`` (outputs, d). A block whose entry of ``logit_heads`` is h > 0 has h heads with
``blocks.i.query.weight/bias`` and ``blocks.i.key.weight`` (m, d) too, m being h times the size of a head.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class StockBlock(nn.Module):
    def __init__(self, d: int, m: int, r: int, heads: int = 0, causal: bool = False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.value = nn.Linear(d, m, bias=False) if m else None
        self.output = nn.Linear(m, d, bias=False) if m else None
        self.query = nn.Linear(d, m) if heads else None
        self.key = nn.Linear(d, m, bias=False) if heads else None
        self.up, self.down = (nn.Linear(d, r), nn.Linear(r, d)) if r else (None, None)

    def forward(self, Z: Tensor, mask: Tensor) -> Tensor:
        if self.value is not None and self.output is not None:
            if self.query is not None and self.key is not None:
                Z = Z + self.output(self.attend(Z, mask))
            else:
                logits = torch.where(mask, 0.0, -torch.inf).to(Z.dtype)  # (batch, n): the same for every query
                mean = torch.softmax(logits, dim=-1)[:, None] @ self.value(Z)  # (batch, 1, m)
                Z = Z + self.output(mean)
        return Z if self.up is None or self.down is None else Z + self.down(torch.relu(self.up(Z)))

    def attend(self, Z: Tensor, mask: Tensor) -> Tensor:
        n = Z.shape[1]
        Q, K, V = (
            part(Z).unflatten(2, (self.heads, -1)).transpose(1, 2)  # pyright: ignore  # (batch, heads, n, size)
            for part in (self.query, self.key, self.value)
        )
        seen = mask[:, None, None, :]
        if self.causal:
            seen = seen & torch.ones(n, n, dtype=torch.bool, device=Z.device).tril()
        logits = torch.where(seen, Q @ K.transpose(-1, -2), -torch.inf)
        return (torch.softmax(logits, dim=-1) @ V).transpose(1, 2).flatten(2)


class StockNetwork(nn.Module):
    """``forward(features)`` or ``forward(ids)``; for ids, ``mask`` is True at real tokens (default: id > 0)."""

    def __init__(self, config: dict):
        super().__init__()
        d = config["hidden_size"]
        tokens = config["vocab_size"]
        self.embed = nn.Embedding(tokens, d) if tokens else nn.Linear(config["features"], d, bias=False)
        n = config["max_position_embeddings"]
        self.position = nn.Parameter(torch.zeros(n, d)) if config["positional"] else None
        heads = config.get("logit_heads") or [0] * len(config["head_sizes"])
        sizes = zip(config["head_sizes"], config["intermediate_sizes"], heads, strict=True)
        causal = bool(config.get("causal"))
        self.blocks = nn.ModuleList(StockBlock(d, m, r, h, causal) for m, r, h in sizes)
        self.readout = nn.Linear(d, config["outputs"], bias=False)

    def forward(self, X: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            mask = X > 0 if isinstance(self.embed, nn.Embedding) else torch.ones_like(X[..., 0], dtype=torch.bool)
        if isinstance(self.embed, nn.Embedding):
            X = X * mask  # whatever number stands for padding, row 0 of the embedding is read
        Z = self.embed(X)
        if self.position is not None:
            Z = Z + self.position[: X.shape[1]]
        for block in self.blocks:
            Z = block(Z, mask)
        return self.readout(Z)
