"""Our blocks as Llama blocks: every weight of the checkpoint of an automaton.

**From ours to theirs.** Positions, a table in ours, are RoPE's. A bias is a weight on the constant row, divided by √d;
a weight on a map row is divided by √d/C, what a 1 is behind RMSNorm. ReLU(x + y − 1), our AND, becomes two SwiGLU units

    silu(G (2x + 2y − 5/2)) − silu(G (2x + 2y − 7/2)),      G = 512, divided by G,

which is x AND y, and 0 or 1 still where x and y err by up to 1/8: |gate| ≥ 128 throughout, where silu is 0 or the
identity. A map row is removed by a unit whose gate is constant, silu(G)·x/G = x, whatever x is.

All numbers but the queries are powers of two or short sums of them; queries are rounded to bfloat16 here, so that the
network is the same network in both dtypes.
"""

from __future__ import annotations

import numpy as np
import torch

from thereexists.certificates.llama.tokens import BOS, EOS, SYMBOLS, vocabulary_of
from thereexists.exports.llama.layout import CONSTANT, THETA, Layout
from thereexists.exports.llama.offsets import keys, query

GATE = 512.0
ANSWER = 32.0  # the logit of the answer; of a token that says something else that is true, half of it


def lowered(layout: Layout, embedding: np.ndarray) -> dict[str, torch.Tensor]:
    """The weights in float32. ``embedding``: the own rows of <s> and of every symbol, (1 + symbols, own)."""
    shape = layout.shape
    weights = {name: np.zeros(size) for name, size in shape.weights().items()}
    for name, weight in weights.items():
        if "norm" in name:
            weight[:] = 1.0
    _embed(weights["model.embed_tokens.weight"], layout, embedding)
    gates = _gates(layout)
    for t in range(shape.layers):
        prefix = f"model.layers.{t}"
        attention = [weights[f"{prefix}.self_attn.{part}_proj.weight"] for part in "qkvo"]
        _attention(layout, 2**t, *attention)
        for part, weight in zip(("gate", "up", "down"), gates, strict=True):
            weights[f"{prefix}.mlp.{part}_proj.weight"] = weight
    _read_out(weights["lm_head.weight"], layout)
    return {name: torch.from_numpy(weight).to(torch.bfloat16).float() for name, weight in weights.items()}


def _embed(E: np.ndarray, layout: Layout, embedding: np.ndarray) -> None:
    rows, answers = layout.rows, vocabulary_of(layout.maps.automaton).outputs.start
    E[:, rows.constant] = CONSTANT
    E[BOS, rows.first] = 1.0
    E[[EOS, *range(answers, len(E))], rows.done] = 1.0
    E[:, rows.own] = embedding[0]
    E[SYMBOLS:answers, rows.own] = embedding[1:]


def _attention(layout: Layout, offset: int, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, W_O: np.ndarray) -> None:
    """One head of each group looks back; the value of a fetched row is the sum of the own rows that become it."""
    shape, rows, size = layout.shape, layout.rows, layout.shape.head_size
    other, first = keys(size)
    group = shape.heads // shape.key_heads
    for g in range(shape.key_heads):
        heard, key = slice(g * group * size, g * group * size + size), slice(g * size, (g + 1) * size)
        W_Q[heard, rows.constant] = query(offset, THETA, size, layout.n + 1) / layout.top
        W_K[key, rows.constant] = other / layout.top
        W_K[key, rows.first] = (first - other) / layout.bit
    row = np.arange(layout.maps.fetched)
    W_V[layout.maps.projection(), np.arange(rows.own.start, rows.own.stop)] = 1 / layout.bit
    W_O[rows.fetched.start + row, (row // size) * group * size + row % size] = 1.0


def _gates(layout: Layout) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ANDs of all products, two units each, then a unit for every row that is removed."""
    shape, rows, maps = layout.shape, layout.rows, layout.maps
    gate, up, down = (np.zeros(size) for size in ((shape.width, shape.d_model),) * 2 + ((shape.d_model, shape.width),))
    a, b, c = maps.products()
    for k, (threshold, sign) in enumerate(((2.5, 1.0), (3.5, -1.0))):
        unit = k * len(a) + np.arange(len(a))
        gate[unit, rows.fetched.start + a] = gate[unit, rows.own.start + b] = 2 * GATE / layout.bit
        gate[unit, rows.constant] = -threshold * GATE / layout.top
        up[unit, rows.constant] = 1 / layout.top
        down[rows.own.start + c, unit] = sign / GATE
    row = np.arange(rows.own.start, rows.fetched.stop)
    unit = 2 * len(a) + np.arange(len(row))
    gate[unit, rows.constant] = GATE / layout.top
    up[unit, row] = 1 / layout.bit
    down[row, unit] = -1 / GATE
    return gate, up, down


def _read_out(W: np.ndarray, layout: Layout) -> None:
    """Where the start is led to: state, acceptance, output; the answer counts twice. Behind an answer, </s>."""
    maps, rows, machine = layout.maps, layout.rows, layout.maps.automaton
    vocabulary = vocabulary_of(machine)
    said = maps.readout() / layout.bit  # (states + outputs + 1, own)
    half, accepts = ANSWER / 2, ANSWER / (2 if machine.writes else 1)
    W[:, rows.constant] = -2 * ANSWER / layout.top
    W[vocabulary.outputs.start :, rows.constant] = 0.0
    W[vocabulary.states, rows.own] = half * said[: machine.size]
    if machine.dead is not None:
        dead = vocabulary.states.start + machine.dead
        W[dead, rows.own] = -half * said[: machine.size].sum(axis=0)
        W[dead, rows.constant] = half / layout.top
    yes, no = vocabulary.verdicts.start, vocabulary.verdicts.start + 1
    W[yes, rows.own], W[no, rows.own] = accepts * said[-1], -accepts * said[-1]
    W[no, rows.constant] = accepts / layout.top
    if machine.writes:
        W[vocabulary.outputs, rows.own] = ANSWER * said[machine.size : -1]
    W[EOS, rows.done] = 4 * ANSWER / layout.bit
