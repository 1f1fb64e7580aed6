"""A stock Llama folder in float64 NumPy, taken apart as in ``circuits/run.py``: what every component adds to the

residual stream, and what comes out if some edges are cut. Each place that reads has a norm of its own, over what it
sees. Heads of one group share keys and values; an edge to ``a0.h1.k`` is what that head alone sees there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from thereexists.certificates.llama.format import Checkpoint, Shape, read_checkpoint, read_claim
from thereexists.functions.target import Array
from thereexists.suites.circuits.run import Edge, Run, Writes, architecture


@dataclass(frozen=True)
class Layer:
    """Weights as the files have them, (out, in); the heads' apart from each other."""

    Q: tuple[Array, ...]
    K: tuple[Array, ...]
    V: tuple[Array, ...]
    O: tuple[Array, ...]
    gate: Array
    up: Array
    down: Array
    norms: tuple[Array, Array]


@dataclass(frozen=True)
class StockNet:
    """``E`` (tokens, d), ``W_out`` (tokens, d)."""

    shape: Shape
    theta: float
    eps: float
    E: Array
    layers: tuple[Layer, ...]
    norm: Array
    W_out: Array

    def edges(self) -> list[Edge]:
        """Every edge that the architecture has."""
        return architecture([self.shape.heads] * len(self.layers), [True] * len(self.layers))

    @cached_property
    def _idle(self) -> set[str]:
        """Heads that write nothing."""
        return {f"a{i}.h{j}" for i, layer in enumerate(self.layers) for j, O in enumerate(layer.O) if not O.any()}

    def run(self, tokens: Array, kept: Collection[Edge] | None = None, other: Writes | None = None) -> Run:
        """Logits (batch, length, tokens). With ``kept`` all other edges are cut: they carry ``other``."""
        there: dict[str, list[str]] = {}
        for writer, place in kept or ():
            there.setdefault(place, []).append(writer)
        writes: Writes = {"input": self.E[tokens]}
        total = writes["input"] if other is None else other["input"]  # of all writers so far; cut ones, if some are

        def seen(place: str, weight: Array) -> Array:
            X = total
            if kept is not None and other is not None:
                for writer in there.get(place, ()):
                    X = X + (writes[writer] - other[writer])
            return X / np.sqrt((X**2).mean(axis=-1, keepdims=True) + self.eps) * weight

        cos, sin = self._turns(tokens.shape[1])
        nothing = np.zeros_like(total)
        for i, layer in enumerate(self.layers):
            made: Writes = {}
            for j in range(self.shape.heads):
                name = f"a{i}.h{j}"
                if name in self._idle:
                    made[name] = nothing
                    continue
                Q, K = (
                    _turned(seen(f"{name}.{way}", layer.norms[0]) @ W[j].T, cos, sin)
                    for way, W in (("q", layer.Q), ("k", layer.K))
                )
                V = seen(f"{name}.v", layer.norms[0]) @ layer.V[j].T
                logits = Q @ np.swapaxes(K, -1, -2) / self.shape.head_size**0.5
                logits = np.where(np.tri(tokens.shape[1], dtype=bool), logits, -np.inf)
                powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
                made[name] = powers / powers.sum(axis=-1, keepdims=True) @ V @ layer.O[j].T
            writes |= made
            total = total + sum((made[name] if other is None else other[name] for name in made), nothing)
            X = seen(f"m{i}", layer.norms[1])
            t = X @ layer.gate.T
            writes[f"m{i}"] = (t * _sigmoid(t) * (X @ layer.up.T)) @ layer.down.T
            total = total + (writes if other is None else other)[f"m{i}"]
        return Run(writes, seen("output", self.norm) @ self.W_out.T)

    def _turns(self, length: int) -> tuple[Array, Array]:
        """RoPE: cosines and sines (length, size)."""
        size = self.shape.head_size
        angles = np.arange(length)[:, None] * self.theta ** (-np.arange(0, size, 2) / size)
        angles = np.concatenate([angles, angles], axis=1)
        return np.cos(angles), np.sin(angles)


def _turned(x: Array, cos: Array, sin: Array) -> Array:
    half = x.shape[-1] // 2
    return x * cos + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sin


def _sigmoid(t: Array) -> Array:
    small = np.exp(-np.abs(t))
    return np.where(t >= 0, 1.0, small) / (1.0 + small)


def net_of(checkpoint: Checkpoint) -> StockNet:
    shape, W = checkpoint.shape, checkpoint.rounded("float32")
    size, group = shape.head_size, shape.heads // shape.key_heads

    def heads(name: str) -> tuple[Array, ...]:
        count, share = (shape.heads, 1) if name.endswith("q_proj.weight") else (shape.key_heads, group)
        parts = [W[name][j * size : (j + 1) * size] for j in range(count)]
        return tuple(part for part in parts for _ in range(share))

    layers = []
    for t in range(shape.layers):
        start = f"model.layers.{t}."
        Q, K, V = (heads(f"{start}self_attn.{way}_proj.weight") for way in "qkv")
        O = W[f"{start}self_attn.o_proj.weight"]
        out = tuple(O[:, j * size : (j + 1) * size] for j in range(shape.heads))
        gate, up, down = (W[f"{start}mlp.{part}_proj.weight"] for part in ("gate", "up", "down"))
        norms = (W[f"{start}input_layernorm.weight"], W[f"{start}post_attention_layernorm.weight"])
        layers.append(Layer(Q, K, V, out, gate, up, down, norms))
    ends = (W["model.norm.weight"], W["lm_head.weight"])
    return StockNet(shape, checkpoint.theta, checkpoint.eps, W["model.embed_tokens.weight"], tuple(layers), *ends)


def read_stock(folder: Path) -> tuple[StockNet, Checkpoint]:
    """From the files, whose hashes are compared; the claim is in the checkpoint."""
    checkpoint = read_checkpoint(folder, read_claim(folder))
    return net_of(checkpoint), checkpoint
