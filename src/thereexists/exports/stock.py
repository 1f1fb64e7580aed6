"""A compact network in nothing but torch: what every export computes, forty lines that could stand anywhere.

State dict, for block i: ``blocks.i.value.weight`` (m, d), ``blocks.i.output.weight`` (d, m) if the block has attention
(without more, its logits are zero: uniform over the real tokens), ``blocks.i.up.weight/bias`` and
``blocks.i.down.weight/bias`` of the feed-forward part; ``embed.weight``, (d, features) or (vocabulary, d); ``position``
(n, d) or none; ``readout.weight`` (outputs, d). A block whose entry of ``logit_heads`` is h > 0 has h heads with
``blocks.i.query.weight/bias`` and ``blocks.i.key.weight`` (m, d) too, m being h times the size of a head.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from thereexists.core.dtypes import dtype_name
from thereexists.core.errors import CannotBuild
from thereexists.model import EmbeddedTransformer, Stage


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
        Z = self.embed(X)
        if self.position is not None:
            Z = Z + self.position
        for block in self.blocks:
            Z = block(Z, mask)
        return self.readout(Z)


def stock_config(network: EmbeddedTransformer, n: int) -> dict:
    """The sizes, named as the ecosystem names them where it has a name."""
    stages = [stage for stage in network.stages.values() for _ in range(stage.depth)]  # one block a layer
    heads = [0 if s.attention is None else s.attention.W_V.shape[1] * s.attention.W_V.shape[2] for s in stages]
    widths = [0 if s.feed_forward is None else s.feed_forward.W_1.shape[1] for s in stages]
    logit_heads = [_logit_heads(s) for s in stages]
    masked = {s.attention.pattern is not None for s in stages if s.attention is not None and _logit_heads(s)}
    if len(masked) == 2:
        raise CannotBuild("Exports are causal in all blocks with heads, or in none; this network is in some of them.")
    causal = masked == {True}
    return {
        "hidden_size": network.W_out.shape[1],
        "num_hidden_layers": len(stages),
        "num_attention_heads": max(logit_heads, default=0) or 1,
        "intermediate_size": max(widths, default=0),
        "intermediate_sizes": widths,
        "head_sizes": heads,
        **({"logit_heads": logit_heads} if any(logit_heads) else {}),
        **({"causal": True} if causal else {}),
        "max_position_embeddings": n,
        "vocab_size": 0 if network.embedding is None else len(network.embedding),
        "features": 0 if network.W_in is None else network.W_in.shape[1],
        "outputs": network.W_out.shape[0],
        "positional": network.E is not None,
        "hidden_act": "relu",
        "dtype": dtype_name(network.dtype),
    }


def _logit_heads(stage: Stage) -> int:
    """The heads of a block if any of them looks at something, or at some tokens only; 0 if all are plain averages."""
    part = stage.attention
    if part is None or not (part.W_Q.any() or part.b_Q.any() or part.pattern is not None):
        return 0
    if part.pattern is not None and not bool((part.pattern == torch.ones_like(part.pattern[0]).tril()).all()):
        raise CannotBuild("Exports know full and causal attention; this network has another mask.")
    return part.W_Q.shape[1]


def stock_state(network: EmbeddedTransformer) -> dict[str, Tensor]:
    """The same weights under the names above. Heads with zero logits keep only W_V and W_O."""
    state: dict[str, Tensor] = {"readout.weight": network.W_out}
    state["embed.weight"] = network.W_in if network.W_in is not None else network.embedding  # pyright: ignore
    if network.E is not None:
        state["position"] = network.E
    layers = [(stage, layer) for stage in network.stages.values() for layer in range(stage.depth)]
    for i, (stage, layer) in enumerate(layers):
        part = stage.attention
        if part is not None:
            state[f"blocks.{i}.value.weight"] = part.W_V[layer].flatten(0, 1)
            state[f"blocks.{i}.output.weight"] = part.W_O[layer].transpose(0, 1).flatten(1, 2)
            if _logit_heads(stage):
                state[f"blocks.{i}.query.weight"] = part.W_Q[layer].flatten(0, 1)
                state[f"blocks.{i}.query.bias"] = part.b_Q[layer].flatten()
                state[f"blocks.{i}.key.weight"] = part.W_K[layer].flatten(0, 1)
        if stage.feed_forward is not None:
            W_1, b_1, W_2, b_2 = (weight[layer] for weight in stage.feed_forward.parameters_list())
            state[f"blocks.{i}.up.weight"], state[f"blocks.{i}.up.bias"] = W_1, b_1
            state[f"blocks.{i}.down.weight"], state[f"blocks.{i}.down.bias"] = W_2, b_2
    return {name: tensor.detach().clone().contiguous() for name, tensor in state.items()}


def stock_network(network: EmbeddedTransformer, n: int) -> StockNetwork:
    """The stock module with the network's weights."""
    with torch.device("meta"):
        module = StockNetwork(stock_config(network, n))
    module.load_state_dict(stock_state(network), assign=True)
    return module.requires_grad_(False)
