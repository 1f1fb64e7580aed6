"""Our blocks as Llama blocks: every weight of the checkpoint of a circuit.

**From ours to theirs.** Positions, a table in ours, are RoPE's. A bias is a weight on the constant row, divided by √d;
a weight on a row of bits is divided by √d/C, what a 1 is behind RMSNorm. ReLU(x + y − 1), our AND, becomes two SwiGLU
units

    silu(G (2x + 2y − 5/2)) − silu(G (2x + 2y − 7/2)),      G = 512, divided by G,

which is x AND y, and 0 or 1 still where x and y err by up to 1/16 each: |gate| ≥ 128 throughout, where silu is 0 or the
identity. Of k > 2 rows it is 4(x₁ + … + x_k − k) + 2 ± 1/2: they may err by 5/16 together. A row is removed by a unit
whose gate is constant, silu(G)·x/G = x, whatever x is.

All numbers but the queries are powers of two or short sums of them; queries are rounded to bfloat16 here, so that the
network is the same network in both dtypes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from thereexists.certificates.llama.circuit import BITS, DONE, FIRST, CircuitLayer
from thereexists.certificates.llama.circuit import CONSTANT as TOP
from thereexists.certificates.llama.tokens import BOS
from thereexists.core.errors import CannotBuild
from thereexists.exports.llama.layout import CONSTANT, THETA, Layout, fetches, units
from thereexists.exports.llama.offsets import keys, query

GATE = 512.0
CONTENT = 2.0**11  # the logit of one bit that query and key share


def lowered(layout: Layout, read_out: np.ndarray) -> dict[str, torch.Tensor]:
    """The weights in float32. ``read_out``: the logits (tokens, 2 + rows) of the constant, of an answer, of a bit."""
    shape, circuit = layout.shape, layout.circuit
    weights = {name: np.zeros(size) for name, size in shape.weights().items()}
    for name, weight in weights.items():
        if "norm" in name:
            weight[:] = 1.0
    E = weights["model.embed_tokens.weight"]
    E[:, TOP] = CONSTANT
    E[BOS, FIRST] = 1.0
    E[list(circuit.answers), DONE] = 1.0
    E[:, BITS : BITS + circuit.rows] = circuit.embedding
    for t, layer in enumerate(circuit.layers):
        prefix = f"model.layers.{t}"
        _attention(layout, layer, *(weights[f"{prefix}.self_attn.{part}_proj.weight"] for part in "qkvo"))
        _gates(layout, layer, *(weights[f"{prefix}.mlp.{part}_proj.weight"] for part in ("gate", "up", "down")))
    W = weights["lm_head.weight"]
    W[:, TOP] = read_out[:, 0] / layout.top
    W[:, DONE : BITS + circuit.rows] = read_out[:, 1:] / layout.bit
    return {name: torch.from_numpy(weight).to(torch.bfloat16).float() for name, weight in weights.items()}


def _attention(
    layout: Layout, layer: CircuitLayer, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, W_O: np.ndarray
) -> None:
    """One head of each group looks back; the value of a target row is the sum of the source rows that become it."""
    shape, size = layout.shape, layout.shape.head_size
    group = shape.heads // shape.key_heads
    offsets = np.unique(layer.offset)
    for g in range(shape.key_heads):
        key = slice(g * size, (g + 1) * size)
        for k, offset in enumerate(offsets.tolist()):
            heard = slice((g * group + k) * size, (g * group + k + 1) * size)
            _LOOKS[layer.looks](layout, layer, offset, W_Q[heard], W_K[key])
    head, slot = fetches(shape, layer)
    W_V[slot, BITS + layer.source] = 1 / layout.bit
    W_O[BITS + layer.target, head * size + slot % size] = 1.0


def _back(layout: Layout, layer: CircuitLayer, offset: int, W_Q: np.ndarray, W_K: np.ndarray) -> None:
    """The query is turned back by the offset; keys are the same everywhere but at the first token."""
    size = layout.shape.head_size
    other, first = keys(size)
    W_Q[:, TOP] = query(offset, THETA, size, layout.circuit.reach) / layout.top
    W_K[:, TOP] = other / layout.top
    W_K[:, FIRST] = (first - other) / layout.bit


def _content(layout: Layout, layer: Any, offset: int, W_Q: np.ndarray, W_K: np.ndarray) -> None:
    """Bit by bit on the slowest frequencies; the first token has a score halfway between c bits and c − 1."""
    slowest = layout.shape.head_size // 2 - 1
    place, unit = slowest - 1 - np.arange(len(layer.queries)), CONTENT * layout.shape.head_size**0.5
    if len(place) > slowest:
        raise CannotBuild(f"A head compares at most {slowest} rows of a code; this one has {len(place)}.")
    W_Q[slowest, TOP] = (layer.weight - 0.5) * unit / layout.top
    W_K[slowest, FIRST] = 1 / layout.bit
    W_Q[place, BITS + layer.queries] = unit / layout.bit
    W_K[place, BITS + layer.keys] = 1 / layout.bit


_LOOKS = {"back": _back, "content": _content}


def _gates(layout: Layout, layer: CircuitLayer, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> None:
    """The ANDs of all sets of rows, two units each, then a unit for every row that is removed."""
    made, removes = units(layer)
    reads = layer.reads[np.unique(made[:, 0], return_index=True)[1]]  # (sets, most)
    count = (reads >= 0).sum(axis=1)
    slope = np.where(count > 2, 4.0, 2.0)
    for k, (before, sign) in enumerate(((0.5, 1.0), (-0.5, -1.0))):
        unit = np.unique(made[:, k])
        which, place = np.nonzero(reads >= 0)
        gate[unit[which], BITS + reads[which, place]] = slope[which] * GATE / layout.bit
        gate[unit, TOP] = (before - slope * (count - 0.5)) * GATE / layout.top
        up[unit, TOP] = 1 / layout.top
        down[BITS + layer.z, made[:, k]] = sign / GATE
    gate[removes, TOP] = GATE / layout.top
    up[removes, BITS + layer.cleared] = 1 / layout.bit
    down[BITS + layer.cleared, removes] = -1 / GATE
