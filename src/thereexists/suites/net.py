"""A network as plain float64 arrays, as it is written to ONNX: a token is a row, weights multiply from the right.

    Z = X W_in + E
    Z ← Z + Σ_heads softmax((Z W_Q + b_Q)(Z W_K + b_K)^T) (Z W_V) W_O        or, for a fixed head, A (Z W_V) W_O
    Z ← Z + ReLU(Z W_1 + b_1) W_2 + b_2
    Y = Z W_out

**Folding.** A head whose queries and keys read rows of Z that nothing ever writes, and into which no input goes, has
the same logits for every input. Where its softmax is 0/1 (a gather; the logits lead by hundreds, exp of their
difference is below 1e-300) or 1/n for a power of two n, the head may be written as the fixed matrix A instead.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch

from thereexists.functions.target import Array
from thereexists.model import EmbeddedTransformer


@dataclass(frozen=True)
class Head:
    """A softmax head."""

    W_Q: Array  # (d, m)
    b_Q: Array  # (m,)
    W_K: Array
    b_K: Array
    W_V: Array
    W_O: Array  # (m, d)


@dataclass(frozen=True)
class Fixed:
    """A head that looks at the same places whatever it sees: A (n, n), rows are distributions."""

    A: Array
    W_V: Array
    W_O: Array


@dataclass(frozen=True)
class Hidden:
    """The feed-forward half of a block."""

    W_1: Array  # (d, r)
    b_1: Array
    W_2: Array  # (r, d)
    b_2: Array


@dataclass(frozen=True)
class Block:
    heads: tuple[Head | Fixed, ...]
    hidden: Hidden | None

    @property
    def softmax_heads(self) -> list[Head]:
        """All heads, where none is a fixed matrix."""
        found = [head for head in self.heads if isinstance(head, Head)]
        if len(found) != len(self.heads):
            raise ValueError("a head is a fixed matrix")
        return found


@dataclass(frozen=True)
class Net:
    W_in: Array  # (features, d)
    E: Array  # (n, d)
    blocks: tuple[Block, ...]
    W_out: Array  # (d, outputs)

    @property
    def n(self) -> int:
        return self.E.shape[0]

    @property
    def d(self) -> int:
        return self.E.shape[1]

    def run(self, X: Array) -> Array:
        """(batch, n, features) → (batch, n, outputs), in float64: the formulas above."""
        Z = X @ self.W_in + self.E
        for block in self.blocks:
            seen = Z
            for head in block.heads:
                Z = Z + weights_of(head, seen) @ (seen @ head.W_V) @ head.W_O
            if block.hidden is not None:
                h = block.hidden
                Z = Z + np.maximum(Z @ h.W_1 + h.b_1, 0.0) @ h.W_2 + h.b_2
        return Z @ self.W_out

    def weights(self) -> dict[str, Array]:
        """Every array by its name, in the order of the network."""
        found = {"W_in": self.W_in, "E": self.E}
        for i, block in enumerate(self.blocks):
            for j, head in enumerate(block.heads):
                found |= {f"block{i}.head{j}.{name}": W for name, W in vars(head).items()}
            if block.hidden is not None:
                found |= {f"block{i}.hidden.{name}": W for name, W in vars(block.hidden).items()}
        return found | {"W_out": self.W_out}

    def size(self) -> int:
        return sum(W.size for W in self.weights().values())


def weights_of(head: Head | Fixed, Z: Array) -> Array:
    """The attention matrix of a head."""
    if isinstance(head, Fixed):
        return head.A
    logits = (Z @ head.W_Q + head.b_Q) @ np.swapaxes(Z @ head.W_K + head.b_K, -1, -2)
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def net_of(network: EmbeddedTransformer) -> Net:
    """The same weights as plain arrays; heads that write nothing are left out. Full attention only."""
    if network.W_in is None or network.E is None:
        raise ValueError("a network on features, with positions")
    return Net(_plain(network.W_in).T, _plain(network.E), blocks_of(network), _plain(network.W_out).T)


def blocks_of(network: EmbeddedTransformer) -> tuple[Block, ...]:
    return tuple(_block(layer) for _, _, layer in network.layers())


def _block(layer) -> Block:
    heads: list[Head | Fixed] = []
    if layer.attention is not None:
        *weights, mask = layer.attention
        if mask is not None:
            raise ValueError("full attention only")
        for W_Q, b_Q, W_K, W_V, W_O in zip(*map(_plain, weights), strict=True):
            if W_O.any() and W_V.any():
                heads.append(Head(W_Q.T, b_Q, W_K.T, np.zeros(len(b_Q)), W_V.T, W_O.T))
    hidden = None
    if layer.feed_forward is not None:
        W_1, b_1, W_2, b_2 = map(_plain, layer.feed_forward[:4])
        used = np.flatnonzero(W_2.any(axis=0) & (W_1.any(axis=1) | (b_1 > 0)))  # a unit that is always 0 is left out
        hidden = Hidden(W_1[used].T, b_1[used], W_2[:, used].T, b_2)
        hidden = hidden if used.size or b_2.any() else None
    return Block(tuple(heads), hidden)


def _plain(W: torch.Tensor) -> Array:
    return W.detach().to(torch.float64).numpy()


def constant_rows(net: Net) -> Array:
    """Which rows of Z no input enters and nothing writes."""
    touched = (net.W_in != 0).any(axis=0)
    for block in net.blocks:
        for head in block.heads:
            touched |= (head.W_O != 0).any(axis=0)
        if block.hidden is not None:
            touched |= (block.hidden.W_2 != 0).any(axis=0) | (block.hidden.b_2 != 0)
    return ~touched


def folded(net: Net) -> Net:
    """Every head whose logits are constants, and whose weights then are exact numbers, as a fixed matrix."""
    constant = constant_rows(net)

    def fold(head: Head | Fixed) -> Head | Fixed:
        if isinstance(head, Fixed) or head.W_Q[~constant].any():
            return head
        if head.W_K[~constant].any() and (head.W_Q.any() or head.b_Q.any()):
            return head
        A = weights_of(head, np.where(constant, net.E, 0.0))
        n = net.n
        exact = np.isin(A, (0.0, 1.0)).all() or ((A == 1 / n).all() and n & (n - 1) == 0)
        return Fixed(A, head.W_V, head.W_O) if exact else head

    blocks = tuple(dataclasses.replace(b, heads=tuple(fold(h) for h in b.heads)) for b in net.blocks)
    return dataclasses.replace(net, blocks=blocks)
