"""A compact network as the stock module of ``alone/network.py``: its sizes and its state dict."""

from __future__ import annotations

import torch
from torch import Tensor

from thereexists.core.dtypes import dtype_name
from thereexists.core.errors import CannotBuild
from thereexists.exports.alone.network import StockNetwork
from thereexists.model import EmbeddedTransformer, Stage


def stock_config(network: EmbeddedTransformer, n: int) -> dict:
    """The sizes, named as the ecosystem names them where it has a name."""
    stages = [stage for stage in network.stages.values() for _ in range(stage.depth)]  # one block a layer
    heads = [0 if s.attention is None else s.attention.W_V.shape[1] * s.attention.W_V.shape[2] for s in stages]
    widths = [0 if s.feed_forward is None else s.feed_forward.W_1.shape[1] for s in stages]
    logit_heads = [_logit_heads(s) for s in stages]
    masked = {s.attention.pattern is not None for s in stages if s.attention is not None and _logit_heads(s)}
    if len(masked) == 2:
        raise CannotBuild(
            "An export must be causal in all blocks with heads, or in none; this network is causal in some of them."
        )
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
        raise CannotBuild("Exports have full or causal attention; this network has another mask.")
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
