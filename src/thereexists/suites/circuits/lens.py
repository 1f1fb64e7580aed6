"""The weights as TransformerLens names them: a HookedTransformer without normalisation, ReLU, attention both ways.

The page in the suite (``texts.py``) has the lines that load them, for TransformerLens 4 and for 3. The vocabulary is
the 17 numbers 0, 1/16, …, 1. Heads and units that a block lacks are zeros. Logits are divided by ``SCALE``, with which
the queries are multiplied: exact, as it is a power of two. It is not 1 because TransformerLens 4 refuses that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thereexists.functions.target import Array
from thereexists.suites.circuits.programs import VALUES
from thereexists.suites.net import Block, Net

SCALE = 2.0  # what logits are divided by


def sizes(net: Net) -> tuple[int, int, int]:
    """Heads, the size of a head, and hidden units: the most of any block."""
    heads = max((len(block.heads) for block in net.blocks), default=0)
    size = max((W.shape[1] for block in net.blocks for h in block.softmax_heads for W in (h.W_Q, h.W_V)), default=1)
    width = max((len(block.hidden.b_1) for block in net.blocks if block.hidden is not None), default=1)
    return max(heads, 1), size, max(width, 1)


def config_of(net: Net, dtype: str) -> dict[str, Any]:
    heads, size, width = sizes(net)
    return {
        "n_layers": len(net.blocks),
        "d_model": net.d,
        "n_ctx": net.n,
        "d_head": size,
        "n_heads": heads,
        "d_mlp": width,
        "d_vocab": VALUES,
        "d_vocab_out": net.W_out.shape[1],
        "act_fn": "relu",
        "normalization_type": None,
        "attention_dir": "bidirectional",
        "attn_scale": SCALE,
        "use_attn_scale": True,
        "positional_embedding_type": "standard",
        "dtype": dtype,
        "device": "cpu",
        "seed": 0,
    }


def state_of(net: Net) -> dict[str, Array]:
    heads, size, width = sizes(net)
    d = net.d
    values = np.arange(VALUES)[:, None] / (VALUES - 1)
    state = {
        "embed.W_E": values @ net.W_in,
        "pos_embed.W_pos": net.E,
        "unembed.W_U": net.W_out,
        "unembed.b_U": np.zeros(net.W_out.shape[1]),
    }
    for i, block in enumerate(net.blocks):
        start = f"blocks.{i}."
        W = {name: np.zeros((heads, d, size)) for name in "QKV"} | {"O": np.zeros((heads, size, d))}
        b = {name: np.zeros((heads, size)) for name in "QKV"} | {"O": np.zeros(d)}
        for j, head in enumerate(block.softmax_heads):
            m, v = head.W_Q.shape[1], head.W_V.shape[1]
            W["Q"][j, :, :m], W["K"][j, :, :m], W["V"][j, :, :v] = SCALE * head.W_Q, head.W_K, head.W_V
            W["O"][j, :v], b["Q"][j, :m], b["K"][j, :m] = head.W_O, SCALE * head.b_Q, head.b_K
        state |= {f"{start}attn.W_{name}": array for name, array in W.items()}
        state |= {f"{start}attn.b_{name}": array for name, array in b.items()}
        state |= {f"{start}mlp.{name}": W for name, W in _hidden(block, d, width).items()}
    return state


def _hidden(block: Block, d: int, width: int) -> dict[str, Array]:
    found = {"W_in": np.zeros((d, width)), "b_in": np.zeros(width), "W_out": np.zeros((width, d)), "b_out": np.zeros(d)}
    if block.hidden is not None:
        h, r = block.hidden, len(block.hidden.b_1)
        found["W_in"][:, :r], found["b_in"][:r], found["W_out"][:r], found["b_out"] = h.W_1, h.b_1, h.W_2, h.b_2
    return found
