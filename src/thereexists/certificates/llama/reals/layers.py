"""What one layer adds to a row beside what it is wanted to: SwiGLU as ReLU and as a product, heads that look back.

*ReLU.* A unit is silu(g·x̂)(h·x̂), and h reads the constant only: it gives U. With the weight D of the row, D·U·silu(g)
stands for a·ReLU(t): with G = a/(D U) > 0, a·ReLU(t) = D·U·ReLU(G t). The gate differs from G t by what ``reading.py``
says; |silu(x) − ReLU(x)| ≤ 0.2785 for all x (it is |x|/(1 + exp|x|)), and what a machine takes for silu differs by at
most 2^-10·|x| where |x| < 128, and not at all beyond. As G is large, dividing by it leaves little of that.

*Product.* The gate is K·g̃ with g̃ a number of the program, and is at least 128 or at most −128: silu is the identity
there, or 0. So the unit is the product of two linear layers.

*Heads.* Queries and keys read tables only, so that all logits are known, up to rounding; the token that must be looked
at leads every other one up to here by 128, and the rest have no weight. Or queries are 0: then all logits are 0, and
all tokens so far have the same weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from thereexists.certificates.llama.format import Checkpoint
from thereexists.certificates.llama.offsets import Turning, Vector, logit_error
from thereexists.certificates.llama.reals.network import CONSTANT, Fetched, Head, Hinges, Network, Products, Real, Write
from thereexists.certificates.llama.reals.operations import means
from thereexists.certificates.llama.reals.reading import FLUSHED, HIGHEST, Reader, finite
from thereexists.certificates.llama.rounding import SATURATED, SLACK, STEP, VANISHES, sums
from thereexists.core.errors import NotProved
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_down
from thereexists.functions.target import Array

SILU = 2.0**-10
SOFT = 0.2785 + SATURATED * SILU
WEIGHT = {"float32": 2.0**-20, "bfloat16": 2.0**-7}  # of a softmax over one key, or over equal ones, relative


@dataclass(frozen=True)
class Layers:
    """The weights of a checkpoint, rounded to the dtype, in float64; and what is known of the rows."""

    checkpoint: Checkpoint
    network: Network
    weights: dict[str, Array]
    reader: Reader

    def of(self, t: int) -> dict[str, Array]:
        """Of layer t, by short names: mlp.gate, self_attn.q."""
        start, end = f"model.layers.{t}.", "_proj.weight"
        found = ((name, W) for name, W in self.weights.items() if name.startswith(start) and name.endswith(end))
        return {name.removeprefix(start).removesuffix(end): W for name, W in found}

    def reach(self, reals: Sequence[Real], errors: Errors) -> Array:
        """The most that the forms of these numbers are, (n, k)."""
        return np.stack([real.size + errors[real] for real in reals], axis=1)


Errors = dict[Real, Array]


def written(layers: Layers, write: Write, most: Array, errors: Errors) -> Array:
    """How far a row may be from what it is wanted to be, (n,); ``most``: how large that is."""
    return finite(_WRITES[type(write)](layers, write, most, errors)) * SLACK


def _hinges(layers: Layers, write: Hinges, most: Array, errors: Errors) -> Array:
    reader, u, units = layers.reader, layers.reader.rounding.u, list(write.units)
    weights = layers.of(write.layer)
    gate, up, down = weights["mlp.gate"][units], weights["mlp.up"][units], weights["mlp.down"][write.row, units]
    if np.delete(up, CONSTANT, axis=1).any():
        raise NotProved("the other factor of a hinge reads more than the constant.")
    a, U = np.array([float(part.a) for part in write.parts]), up[:, CONSTANT] * reader.scale[CONSTANT]
    if not (a * down * U > 0).all() or not (np.abs(U) > 1 / HIGHEST**0.5).all():
        raise NotProved("a hinge is missing, or opens the wrong way.")
    reach = np.stack([part.size + errors[part.of] for part in write.parts], axis=1)
    read = reader.read(gate, [part.form for part in write.parts], a / (down * U), reach)
    highest = read.highest + read.away
    wrong = SOFT + u * highest + read.error + read.away  # of silu as computed, less ReLU(G t)
    times = (
        (1 + reader.common) * (1 + reader.own) * (1 + sums(1)) * (1 + u) ** 2
    )  # of the other factor, and the product
    error = np.abs(U) * (wrong * times + highest * (times - 1)) + FLUSHED
    return _summed(reader, np.abs(U) * (highest + wrong) * times, error, down, most)


def _products(layers: Layers, write: Products, most: Array, errors: Errors) -> Array:
    reader, u, units = layers.reader, layers.reader.rounding.u, list(write.units)
    weights = layers.of(write.layer)
    gate, up, down = weights["mlp.gate"][units], weights["mlp.up"][units], weights["mlp.down"][write.row, units]
    if (down == 0).any():
        raise NotProved("a product is missing.")
    K = np.array([_scale_of(reader, W, g) for W, (_, g, _) in zip(gate, write.parts, strict=True)])
    coefficients, factors, reals = zip(*write.parts, strict=True)
    gates = reader.read(gate, [g.form for g in factors], K, layers.reach(factors, errors))
    H = np.array([float(c) for c in coefficients]) / (down * K)
    others = reader.read(up, [of.form for of in reals], H, layers.reach(reals, errors))
    low = np.stack([g.low - errors[g] for g in factors], axis=1) * K
    high = np.stack([g.high + errors[g] for g in factors], axis=1) * K
    off = (gates.error + gates.away) * SLACK
    opened, shut = low - off >= SATURATED, high + off <= -SATURATED
    if not (opened | shut).all():
        raise NotProved("a gate of a product is neither wide open nor shut.")
    A, B, d_B = gates.highest + gates.away, others.highest + others.away, others.error + others.away
    error = A * d_B + B * off + off * d_B + u * (A * B) * (1 + u) + FLUSHED
    size = A * B * (1 + u)
    return _summed(reader, np.where(opened, size, 0.0), np.where(opened, error, 0.0), down, most)


def _scale_of(reader: Reader, W: Array, gate: Real) -> float:
    """By what a gate's weights are those of its form: at the form's largest number."""
    row = max(gate.form, key=lambda r: abs(float(gate.form[r])))
    found = float(W[row] * reader.scale[row]) / float(gate.form[row])
    if not found > 0:
        raise NotProved("a gate of a product does not read what it must.")
    return found


def _summed(reader: Reader, size: Array, error: Array, down: Array, most: Array) -> Array:
    """``down_proj`` on units (n, k) of these sizes and errors: a sum in float32, and a rounding."""
    weight, u, highest = np.abs(down), reader.rounding.u, finite(size + error)
    off = error @ weight + sums(len(down)) * finite(highest @ weight) + FLUSHED * (1 + len(down) + weight.sum())
    return off + u * (most + off)


def _fetched(layers: Layers, write: Fetched, most: Array, errors: Errors) -> Array:
    reader, u, size = layers.reader, layers.reader.rounding.u, layers.checkpoint.shape.head_size
    weights, (place,) = layers.of(write.layer), write.columns(size)
    out = float(weights["self_attn.o"][write.row, place])
    if out == 0:
        raise NotProved("a row is not fetched.")
    read = reader.read(
        weights["self_attn.v"][[place]], [write.of.form], np.array([1 / out]), layers.reach([write.of], errors)
    )
    moved: Callable[[Array], Array] = means if write.source is None else lambda part: part[list(write.source or ())]
    highest, error = (moved(part[:, 0]) for part in (read.highest + read.away, read.error + read.away))
    terms = np.arange(1.0, len(highest) + 1) if write.source is None else np.ones(len(highest))
    weight = WEIGHT[reader.rounding.name]
    off = error * (1 + weight) + highest * (weight + (terms + 2) * STEP * (1 + weight))
    off = (off + u * (highest + off) + FLUSHED) * SLACK
    off = abs(out) * (off + sums(1) * (highest + off)) + FLUSHED * (2 + abs(out))
    return off + u * (most + off)


_WRITES: dict[type[Write], Callable[..., Array]] = {Hinges: _hinges, Products: _products, Fetched: _fetched}


def lead(layers: Layers, t: int, h: int, head: Head) -> float:
    """By how much the token that a head looks at leads, at the least; infinite where it looks at all of them."""
    if head.source is None:
        return float(np.inf)
    shape, reader, n = layers.checkpoint.shape, layers.reader, layers.network.n
    known = [CONSTANT, *(r for r, row in enumerate(layers.network.rows) if row.table is not None)]
    part, weights = slice(h * shape.head_size, (h + 1) * shape.head_size), layers.of(t)
    E = layers.weights["model.embed_tokens.weight"][:n].copy()
    E[:, CONSTANT] = 1.0
    nominal, vectors = [], []
    for name in ("self_attn.q", "self_attn.k"):
        W = weights[name][part]
        if np.delete(W, known, axis=1).any():
            raise NotProved(f"layer {t + 1}: a query or a key reads more than the constant and the tables.")
        X, (_, error) = E @ (W * reader.scale).T, reader.computed(W, np.abs(E))
        nominal.append(X[:, : shape.head_size // 2] + 1j * X[:, shape.head_size // 2 :])
        vectors.append(Vector(np.abs(X).max(axis=0), error.max(axis=0)))
    turning = Turning(layers.checkpoint.theta, shape.head_size, shape.positions, n)
    finite(vectors[0].nominal.sum() * vectors[1].nominal.sum() + np.zeros(1))
    turned = np.exp(1j * np.outer(np.arange(n), turning.frequencies))
    logits = np.real((nominal[0] * turned) @ (nominal[1] * turned).conj().T) / np.sqrt(turning.size)
    source = np.array(head.source)
    right = logits[np.arange(n), source]
    others = np.tri(n, dtype=bool) & (np.arange(n) != source[:, None])
    least = float((right - np.where(others, logits, -np.inf).max(axis=1)).min())
    found = least - 2 * logit_error(vectors[0], vectors[1], turning, reader.rounding)
    if not found >= VANISHES:
        raise NotProved(
            f"layer {t + 1}, head {h}: the right token leads by {rounded_down(found, 4)} only; "
            f"{in_full(VANISHES)} is wanted."
        )
    return found
