"""The Transformer class T^{h,m,r} of Yun et al. (ICLR 2020, arXiv 1912.10077), exactly as the proofs use it.

    Attn(X) = X + Σ_i W_O^i (W_V^i X) ρ[(W_K^i X)^T (W_Q^i X + b_Q^i 1^T)]
    FF(X)   = Attn(X) + W_2 φ(W_1 Attn(X) + b_1 1^T) + b_2 1^T

No LayerNorm, no 1/√m. ρ is softmax, hardmax or another probability map, φ is ReLU or a three-piece linear function (the
modified class). In the sparse class ST^{h,m,r} (NeurIPS 2020, arXiv 2006.04862) an attention layer has a pattern: token
k attends to the tokens of A_k^l only, l cycling through the pattern's steps from layer to layer.
The paper writes sequences as d × n matrices with tokens in columns. Here, as everywhere in PyTorch, a batch of
sequences is an array (batch, n, d): tokens are rows, and the formulas above appear transposed.

A network of the proofs is very deep and very narrow, so its weights are stacked by depth: a *stage* is a run of
consecutive blocks whose weights share their shapes. A stage without an attention part (or without a feed-forward
part) stands for blocks whose missing half has zero weights: by the residual connection that half is the identity.

Longer than 400 lines because the whole class is in one file, to be read from top to bottom beside the paper.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from thereexists.core import shards
from thereexists.core.dtypes import dtype_name
from thereexists.core.errors import InvalidInput
from thereexists.core.shapes import Bool, Float
from thereexists.model.probability import PROBABILITY_MAPS


class Transformer(nn.Module):
    """``g(X + E)``: a positional encoding (or none), then the blocks of every stage in order.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        te.Transformer(dict(witness.network.stages), needs=torch.float64)(torch.rand(1, 2, 1).double())

    Args:
        stages: the stages by name, in the order in which they run.
        rho: the probability map of the attention: one of ``te.patterns.PROBABILITY_MAPS``.
        E: the positional encoding (n, d), or None.
        needs: the only dtype in which the network is right, if there is one; it refuses to run in another.
    """

    stages: Mapping[str, Stage]
    wide: ClassVar = False  # few blocks of many units, or many of few
    safe: tuple[str, ...] = ("float64",)  # the dtypes in which it is called right

    def __init__(
        self,
        stages: dict[str, Stage],
        rho: str = "softmax",
        E: Float[Tensor, "n d"] | None = None,
        needs: torch.dtype | None = None,
    ):
        super().__init__()
        self.needs = needs
        if rho not in PROBABILITY_MAPS:
            raise InvalidInput(f"rho must be one of {sorted(PROBABILITY_MAPS)}; got {rho!r} instead.")
        widths = {part.parameters_list()[0].shape[-1] for stage in stages.values() for part in stage.halves()}
        if len(widths | ({E.shape[-1]} if E is not None else set())) > 1:
            raise InvalidInput(f"All parts of a network must have one d; got {sorted(widths)}.")
        self.rho = rho
        self.E = None if E is None else nn.Parameter(E)
        self.stages = nn.ModuleDict(stages)  # pyright: ignore[reportAttributeAccessIssue]

    def forward(self, X: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        dtype = next(self.parameters()).dtype
        if self.needs is not None and (self.needs != dtype or self.needs != X.dtype):
            raise InvalidInput(
                f"This network is right only in {self.needs}: its ids need more bits than a lower precision carries. "
                f"Got weights in {dtype} and an input in {X.dtype}."
            )
        Z = X if self.E is None else X + self.E
        for _, _, layer in self.layers():
            Z = layer(Z)
        return Z

    def layers(self) -> Iterator[tuple[str, int, Block]]:
        """Every layer in order as ``(stage name, index in the stage, layer)``; the weights are views of the stacks."""
        for name, stage in self.stages.items():
            for index, layer in enumerate(stage.layers(self.rho)):
                yield name, index, layer

    @property
    def depth(self) -> int:
        return sum(stage.depth for stage in self.stages.values())

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def shape(self) -> dict[str, Any]:
        """The class: the largest h, m and r over all stages, and d."""
        attention = [s.attention for s in self.stages.values() if s.attention is not None]
        feed_forward = [s.feed_forward for s in self.stages.values() if s.feed_forward is not None]
        return {
            "h": max((a.W_Q.shape[1] for a in attention), default=0),
            "m": max((a.W_Q.shape[2] for a in attention), default=0),
            "r": max((f.W_1.shape[1] for f in feed_forward), default=0),
            "d": next(iter(self.parameters())).shape[-1],
        }

    def ends(self) -> tuple[int | None, int]:
        """How many features a token has at the input (None: it is a number of a vocabulary), and at the output."""
        return self.shape()["d"], self.shape()["d"]

    def input_map(self) -> np.ndarray | None:
        """W_in (d_model, d) of a network that reads features into more rows; None where the rows are the features."""
        return None

    def output_map(self) -> np.ndarray | None:
        """W_out (d, d_model), or None where all rows are read."""
        return None

    def run(self, X: np.ndarray) -> np.ndarray:
        """A batch (batch, n, d), float64 in and out."""
        with torch.no_grad():
            return self(torch.from_numpy(X)).numpy()

    def size_for(self, N: int, n: int, d: int, positional: bool, thin: bool = False) -> tuple[int, int, str]:
        """The fewest layers of a table on a grid of N cells per feature, the layers of this network, and the word.

        One layer per context: (N^d)^n of n tokens each; without positions the sets of distinct columns only. On a
        domain that is not a box (``thin``) the number of contexts is unknown: then a layer for every step of the
        quantiser.
        """
        if thin:
            return N * d * (n if positional else 1), self.depth, "layers or more"
        K = N**d
        if positional:
            return n * K**n, self.depth, "layers or more"
        needed, ways, j = 0, 1, 1
        while j <= min(n, K) and needed <= self.depth:  # stops as soon as it is too large
            ways = ways * (K - j + 1) // j
            needed, j = needed + j * ways, j + 1
        return needed, self.depth, "layers or more"

    def blocks(self) -> list[BlockModule]:
        """The same network as one plain ``torch.nn.Module`` per block, missing halves written out as zeros."""
        shape = self.shape()
        return [BlockModule.from_layer(layer, **shape) for _, _, layer in self.layers()]

    @classmethod
    def from_blocks(cls, blocks: Sequence[BlockModule], E: Float[Tensor, "n d"] | None = None) -> Transformer:
        """Stack plain blocks of equal shape into one stage; the inverse of :meth:`blocks`."""
        if not blocks:
            raise InvalidInput("A Transformer needs at least one block; got none.")
        stack = {name: torch.stack([getattr(b, name).detach() for b in blocks]) for name in _BLOCK_WEIGHTS}
        masks = [b.mask for b in blocks if b.mask is not None]
        if masks and len(masks) != len(blocks):
            raise InvalidInput("Either all blocks have a mask or none; got both kinds.")
        pattern = torch.stack(masks) if masks else None
        attention = Attention(*(stack[name] for name in _ATTENTION), pattern=pattern)
        feed_forward = FeedForward(stack["W_1"], stack["b_1"], stack["W_2"], stack["b_2"])
        return cls({"blocks": Stage(attention, feed_forward)}, blocks[0].rho, E)

    def structure(self) -> dict[str, Any]:
        """All that is needed, besides the weights, to make this network again (see :meth:`from_structure`)."""
        return {
            "rho": self.rho,
            "E": None if self.E is None else list(self.E.shape),
            "needs": None if self.needs is None else dtype_name(self.needs),
            "stages": {name: stage.structure() for name, stage in self.stages.items()},
        }

    @classmethod
    def from_structure(cls, structure: dict[str, Any], weights: dict[str, Tensor]) -> Transformer:
        """Put stored weights (named as in ``state_dict``) into the structure they were stored with."""
        if structure.get("kind") == "embedded" and cls is Transformer:
            from thereexists.model.embedded import EmbeddedTransformer

            return EmbeddedTransformer.from_structure(structure, weights)
        files = getattr(weights, "files", None)  # of weights that are mapped and not read, see ``shards.py``
        stages = stages_from_structure(structure["stages"], weights)
        E = weights.pop("E") if structure["E"] is not None else None
        if weights:
            raise InvalidInput(f"The weights hold arrays that the structure does not name: {sorted(weights)}.")
        needs = structure["needs"]
        if needs not in (None, "float64"):
            raise InvalidInput(f"A network may need float64 or nothing special; got {needs!r} instead.")
        network = cls(stages, structure["rho"], E, None if needs is None else torch.float64)
        if files is not None:
            shards.remember(network, files)
        check_described(network, structure)
        return network


def check_described(network: Transformer, structure: dict[str, Any]) -> None:
    """Whatever a record says of a network beside its weights must be so: sizes, kinds, and nothing more."""
    found, said = (  # as text, in which true is not 1
        {name: json.dumps(value, sort_keys=True) for name, value in of.items()}
        for of in (network.structure(), structure)
    )
    for name in sorted(found.keys() | said.keys()):
        if found.get(name) != said.get(name):
            told, so = (of.get(name, "nothing")[:80] for of in (said, found))
            raise InvalidInput(f"'{name[:40]}' of the network is described as {told}, and is {so}.")


def stages_from_structure(structure: dict[str, Any], weights: dict[str, Tensor], least: int = 1) -> dict[str, Stage]:
    """The stages that a record names, made of the weights of theirs, which leave ``weights``."""
    if not isinstance(structure, dict) or len(structure) < least:
        raise InvalidInput(f"A network needs stages, at least {least}; the record names fewer.")
    parts: dict[str, dict[str, Tensor]] = {name: {} for name in structure}
    for key in [key for key in weights if key.startswith("stages.")]:
        name = key.split(".", 2)[1]
        if name in parts:
            parts[name][key] = weights.pop(key)
    return {name: Stage.from_structure(part, parts[name]) for name, part in structure.items()}


class Stage(nn.Module):
    """Consecutive blocks with stacked weights: an attention half, a feed-forward half, or both.

        from thereexists.model import FeedForward, Stage

        double = FeedForward(torch.ones(1, 1, 1), torch.zeros(1, 1), torch.ones(1, 1, 1), torch.zeros(1, 1))
        te.Transformer({"doubled": Stage(feed_forward=double)})(torch.ones(1, 2, 1))  # X + ReLU(X) = 2

    Args:
        attention: the attention layers, or None.
        feed_forward: the feed-forward layers, or None; as many as there are attention layers.
    """

    def __init__(self, attention: Attention | None = None, feed_forward: FeedForward | None = None):
        super().__init__()
        depths = {len(part.parameters_list()[0]) for part in (attention, feed_forward) if part is not None}
        if len(depths) != 1:
            raise InvalidInput(f"The halves of a stage must have one common depth; got {sorted(depths)}.")
        self.attention = attention
        self.feed_forward = feed_forward
        self.depth = depths.pop()

    def halves(self) -> list[Attention | FeedForward]:
        return [part for part in (self.attention, self.feed_forward) if part is not None]

    def layers(self, rho: str) -> Iterator[Block]:
        attention = self.attention.unstacked() if self.attention is not None else [None] * self.depth
        feed_forward = self.feed_forward.unstacked() if self.feed_forward is not None else [None] * self.depth
        return (Block(rho, a, f) for a, f in zip(attention, feed_forward, strict=True))

    def structure(self) -> dict[str, Any]:
        return {
            "depth": self.depth,
            "attention": self.attention is not None,
            "pattern": self.attention is not None and self.attention.pattern is not None,
            "feed_forward": self.feed_forward is not None,
            "phi": self.feed_forward is not None and self.feed_forward.phi is not None,
        }

    @classmethod
    def from_structure(cls, structure: dict[str, Any], weights: dict[str, Tensor]) -> Stage:
        by_name = {key.split(".", 2)[2]: value for key, value in weights.items()}
        for name, array in by_name.items():
            wanted = _DIMENSIONS.get(name.rpartition(".")[2], 3 if ".phi." in name else 4)
            if array.ndim != wanted or 0 in array.shape:
                raise InvalidInput(
                    f"The array {name} must have {wanted} dimensions, none of size 0; got {tuple(array.shape)}."
                )
        try:
            pattern = by_name["attention.pattern"] if structure["pattern"] else None
            arrays = [by_name[f"attention.{k}"] for k in _ATTENTION] if structure["attention"] else None
            attention = None if arrays is None else Attention(*arrays, pattern=pattern)
            phi = ThreePiece(*(by_name[f"feed_forward.phi.{k}"] for k in _PHI)) if structure["phi"] else None
            feed_forward = (
                FeedForward(**{k: by_name[f"feed_forward.{k}"] for k in _FEED_FORWARD}, phi=phi)
                if structure["feed_forward"]
                else None
            )
        except KeyError as missing:
            raise InvalidInput(f"The weights or their description lack {missing}.") from None
        stage = cls(attention, feed_forward)
        if stage.structure() != structure:
            raise InvalidInput(f"A stage is described as {structure}, and its weights are {stage.structure()}.")
        return stage


def _require_shapes(**arrays: tuple[Tensor, tuple[int, ...]]) -> None:
    for name, (array, shape) in arrays.items():
        if tuple(array.shape) != shape:
            raise InvalidInput(f"{name} must have the shape {shape}; got {tuple(array.shape)} instead.")


class _Stack(nn.Module):
    def parameters_list(self) -> list[Tensor]:
        return list(self.parameters(recurse=False))


class Attention(_Stack):
    """``depth`` attention layers of ``h`` heads of size ``m``; the head of this file has their formula.

        from thereexists.model import Attention, Stage

        W, b = torch.ones(1, 1, 1, 1), torch.zeros(1, 1, 1)  # one layer, one head of size 1, one feature
        te.Transformer({"one": Stage(Attention(W, b, W, W, W))})(torch.rand(1, 3, 1))

    Args:
        W_Q: queries (depth, h, m, d).
        b_Q: biases of the queries (depth, h, m).
        W_K: keys (depth, h, m, d).
        W_V: values (depth, h, m, d).
        W_O: outputs (depth, h, d, m).
        pattern: booleans (p, n, n): in layer l, token k may attend to token j where ``pattern[l mod p, k, j]`` is
            True. None for dense attention.
    """

    pattern: Tensor | None

    def __init__(
        self,
        W_Q: Float[Tensor, "depth h m d"],
        b_Q: Float[Tensor, "depth h m"],
        W_K: Float[Tensor, "depth h m d"],
        W_V: Float[Tensor, "depth h m d"],
        W_O: Float[Tensor, "depth h d m"],
        pattern: Bool[Tensor, "p n n"] | None = None,
    ):
        super().__init__()
        depth, h, m, d = W_Q.shape
        _require_shapes(b_Q=(b_Q, (depth, h, m)), W_K=(W_K, (depth, h, m, d)), W_V=(W_V, (depth, h, m, d)))
        _require_shapes(W_O=(W_O, (depth, h, d, m)))
        if pattern is not None and (pattern.dtype != torch.bool or pattern.ndim != 3):
            raise InvalidInput("A pattern must be a boolean array (p, n, n).")
        if pattern is not None and not bool(pattern.any(-1).all()):
            raise InvalidInput("Every token of a pattern must attend to at least one token in every step.")
        self.register_buffer("pattern", pattern)
        self.W_Q, self.b_Q, self.W_K = nn.Parameter(W_Q), nn.Parameter(b_Q), nn.Parameter(W_K)
        self.W_V, self.W_O = nn.Parameter(W_V), nn.Parameter(W_O)

    def unstacked(self) -> Iterator[tuple[Any, ...]]:
        weights = (getattr(self, name).unbind(0) for name in _ATTENTION)
        return zip(*weights, (self.mask(l) for l in range(len(self.W_Q))), strict=True)

    def mask(self, layer: int) -> Tensor | None:
        """Which token may attend to which in a layer: (n, n), or None if all may."""
        return None if self.pattern is None else self.pattern[layer % len(self.pattern)]


class FeedForward(_Stack):
    """``depth`` feed-forward layers of width ``r``, each X + W_2 ReLU(W_1 X + b_1) + b_2, or with ``phi`` for ReLU.

        from thereexists.model import FeedForward, Stage

        double = FeedForward(torch.ones(1, 1, 1), torch.zeros(1, 1), torch.ones(1, 1, 1), torch.zeros(1, 1))
        te.Transformer({"doubled": Stage(feed_forward=double)})(torch.ones(1, 2, 1))  # 2

    Args:
        W_1: (depth, r, d).
        b_1: (depth, r).
        W_2: (depth, d, r).
        b_2: (depth, d).
        phi: the functions that take the place of ReLU in the modified class, or None.
    """

    def __init__(
        self,
        W_1: Float[Tensor, "depth r d"],
        b_1: Float[Tensor, "depth r"],
        W_2: Float[Tensor, "depth d r"],
        b_2: Float[Tensor, "depth d"],
        phi: ThreePiece | None = None,
    ):
        super().__init__()
        depth, r, d = W_1.shape
        _require_shapes(b_1=(b_1, (depth, r)), W_2=(W_2, (depth, d, r)), b_2=(b_2, (depth, d)))
        self.W_1, self.b_1 = nn.Parameter(W_1), nn.Parameter(b_1)
        self.W_2, self.b_2 = nn.Parameter(W_2), nn.Parameter(b_2)
        self.phi = phi

    def unstacked(self) -> Iterator[tuple[Any, ...]]:
        weights = (getattr(self, name).unbind(0) for name in _FEED_FORWARD)
        phis = self.phi.unstacked() if self.phi is not None else [None] * len(self.W_1)
        return zip(*weights, phis, strict=True)


class ThreePiece(_Stack):
    """Functions φ of three linear pieces, one constant at least: the activations of the modified class.

        from thereexists.model import FeedForward, Stage, ThreePiece

        step = ThreePiece(torch.zeros(1, 1, 2), torch.zeros(1, 1, 3), torch.tensor([[[0.0, 1.0, 1.0]]]))  # t ≥ 0
        jump = FeedForward(torch.ones(1, 1, 1), torch.zeros(1, 1), torch.ones(1, 1, 1), torch.zeros(1, 1), step)
        te.Transformer({"jump": Stage(feed_forward=jump)})(torch.tensor([[[-0.5], [0.5]]]))  # −0.5 and 1.5

    On piece i, φ(t) = ``slopes[i]·t + intercepts[i]``; the pieces are t < κ_0, κ_0 ≤ t < κ_1 and κ_1 ≤ t.

    Args:
        knots: κ_0 ≤ κ_1, (depth, r, 2). A knot at +∞ leaves the pieces above it unused.
        slopes: (depth, r, 3), one of each three 0.
        intercepts: (depth, r, 3).
    """

    def __init__(
        self,
        knots: Float[Tensor, "depth r 2"],
        slopes: Float[Tensor, "depth r 3"],
        intercepts: Float[Tensor, "depth r 3"],
    ):
        super().__init__()
        if not bool((knots[..., 0] <= knots[..., 1]).all()):
            raise InvalidInput("The knots of a three-piece function must not decrease.")
        if not bool((slopes == 0).any(-1).all()):
            raise InvalidInput("A three-piece function of the modified class must have a constant piece.")
        self.knots, self.slopes, self.intercepts = nn.Parameter(knots), nn.Parameter(slopes), nn.Parameter(intercepts)

    def unstacked(self) -> Iterator[tuple[Tensor, ...]]:
        return zip(*(getattr(self, name).unbind(0) for name in _PHI), strict=True)


_ATTENTION = ("W_Q", "b_Q", "W_K", "W_V", "W_O")
_FEED_FORWARD = ("W_1", "b_1", "W_2", "b_2")
_BLOCK_WEIGHTS = _ATTENTION + _FEED_FORWARD
_PHI = ("knots", "slopes", "intercepts")
_DIMENSIONS = {"b_Q": 3, "W_1": 3, "b_1": 2, "W_2": 3, "b_2": 2, "pattern": 3}  # those of the others: 4, of φ: 3


@dataclass(frozen=True)
class Block:
    """One layer with its own weights (views of a stack): the two displayed formulas, and nothing else."""

    rho: str
    attention: tuple[Any, ...] | None  # the five weights and the mask
    feed_forward: tuple[Any, ...] | None  # the four weights and φ

    def __call__(self, Z: Tensor) -> Tensor:
        if self.attention is not None:
            Z = Z + attention_heads(Z, *self.attention, rho=self.rho)
        if self.feed_forward is not None:
            W_1, b_1, W_2, b_2, phi = self.feed_forward
            T = nn.functional.linear(Z, W_1, b_1)  # (batch, n, r)
            T = nn.functional.relu(T) if phi is None else three_piece(T, *phi)
            Z = Z + nn.functional.linear(T, W_2, b_2)
        return Z

    def attention_weights(self, Z: Tensor) -> Tensor | None:
        """ρ of the logits: (batch, h, n, n), row j = the distribution over the tokens that token j attends to."""
        if self.attention is None:
            return None
        return _attention_weights(Z, *self.attention[:3], mask=self.attention[-1], rho=self.rho)


def attention_heads(
    Z: Tensor, W_Q: Tensor, b_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor, mask: Tensor | None, rho: str
) -> Float[Tensor, "batch n d"]:
    """Σ_i W_O^i (W_V^i Z) ρ[(W_K^i Z)^T (W_Q^i Z + b_Q^i 1^T)], ρ over the tokens that the mask leaves."""
    P = _attention_weights(Z, W_Q, b_Q, W_K, mask, rho)
    V = torch.einsum("bnd,hmd->bhnm", Z, W_V)
    return torch.einsum("bhjk,bhkm,hdm->bjd", P, V, W_O)


def _attention_weights(Z: Tensor, W_Q: Tensor, b_Q: Tensor, W_K: Tensor, mask: Tensor | None, rho: str) -> Tensor:
    Q = torch.einsum("bnd,hmd->bhnm", Z, W_Q) + b_Q[:, None, :]
    K = torch.einsum("bnd,hmd->bhnm", Z, W_K)
    logits = Q @ K.transpose(-1, -2)  # (batch, h, n, n)
    return PROBABILITY_MAPS[rho](logits if mask is None else logits.masked_fill(~mask, -torch.inf))


def three_piece(T: Tensor, knots: Tensor, slopes: Tensor, intercepts: Tensor) -> Tensor:
    piece = (T >= knots[:, 0]).long() + (T >= knots[:, 1]).long()  # (batch, n, r)
    unit = torch.arange(T.shape[-1], device=T.device)
    return slopes[unit, piece] * T + intercepts[unit, piece]


def three_piece_of_tokens(T: Tensor, knots: Tensor, slopes: Tensor, intercepts: Tensor) -> Tensor:
    """The same where every token (tokens, r) has a φ of its own: knots (tokens, r, 2), the rest (tokens, r, 3)."""
    piece = ((T >= knots[..., 0]).long() + (T >= knots[..., 1]).long())[..., None]
    return slopes.gather(-1, piece)[..., 0] * T + intercepts.gather(-1, piece)[..., 0]


class BlockModule(nn.Module):
    """One block t^{h,m,r} as a plain module: what you would write by hand.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        witness.network.blocks()[0](torch.rand(1, 2, 1).double())

    Args:
        weights: W_Q, b_Q, W_K, W_V and W_O with the head first, and W_1, b_1, W_2 and b_2.
        rho: the probability map of the attention.
        mask: which token may attend to which, (n, n); None if all may.
    """

    mask: Tensor | None

    def __init__(self, weights: dict[str, Tensor], rho: str = "softmax", mask: Tensor | None = None):
        super().__init__()
        self.rho = rho
        self.register_buffer("mask", mask)
        for name in _BLOCK_WEIGHTS:
            setattr(self, name, nn.Parameter(weights[name]))

    def forward(self, Z: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        attention = tuple(getattr(self, name) for name in _ATTENTION)
        feed_forward = tuple(getattr(self, name) for name in _FEED_FORWARD)
        return Block(self.rho, (*attention, self.mask), (*feed_forward, None))(Z)

    @classmethod
    def from_layer(cls, layer: Block, h: int, m: int, r: int, d: int) -> BlockModule:
        shapes = {"W_Q": (h, m, d), "b_Q": (h, m), "W_K": (h, m, d), "W_V": (h, m, d), "W_O": (h, d, m)}
        shapes |= {"W_1": (r, d), "b_1": (r,), "W_2": (d, r), "b_2": (d,)}
        given: dict[str, Tensor] = {}
        if layer.attention is not None:
            given |= dict(zip(_ATTENTION, layer.attention[:-1], strict=True))
        if layer.feed_forward is not None:
            if layer.feed_forward[-1] is not None:
                raise InvalidInput("Only ReLU networks convert to plain blocks; this one has three-piece functions.")
            given |= dict(zip(_FEED_FORWARD, layer.feed_forward[:-1], strict=True))
        like = next(iter(given.values()))
        weights = {name: _padded(given.get(name), shape, like) for name, shape in shapes.items()}
        return cls(weights, layer.rho, None if layer.attention is None else layer.attention[-1])


def _padded(weight: Tensor | None, shape: tuple[int, ...], like: Tensor) -> Tensor:
    full = like.new_zeros(shape)
    if weight is not None:
        full[tuple(slice(size) for size in weight.shape)] = weight.detach()
    return full
