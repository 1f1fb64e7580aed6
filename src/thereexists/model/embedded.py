"""A Transformer with scratch rows: ``W_out · g(embed(X) + E)``, g in the class T^{h,m,r} over d_model rows.

The blocks are those of ``transformer.py``. Only the two ends differ: the d features of a token (or its number in a
vocabulary) enter a residual stream of d_model ≥ d rows, and some of those rows are read at the end.

    features   embed(X) = W_in X        tokens   embed(v) = row v of the embedding table; row 0 is padding

A padded position is masked out of every attention, so nothing that stands there reaches another position.
``safe`` names the dtypes in which the network is right (``certificates/float_run.py`` proves which); it refuses to run
in others.
"""

from __future__ import annotations

import copy
import dataclasses
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from thereexists.core.dtypes import DTYPES, dtype_name
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.fused_attention import no_autocast
from thereexists.core.shapes import Bool, Float, Int
from thereexists.model.transformer import Stage, Transformer, check_described, stages_from_structure

_TILE_NUMBERS = 1 << 23  # hidden activations of one tile


class EmbeddedTransformer(Transformer):
    """Blocks over ``d_model`` rows, with a linear or a tabulated embedding and a linear read-out.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2, construction="compact")
        witness.network(torch.rand(1, 2, 1).double())

    Args:
        stages: the stages by name, in the order in which they run; their feed-forward layers have ReLU.
        W_out: the read-out (out, d_model).
        W_in: the linear embedding of features (d_model, d); None for tokens.
        embedding: the rows of a vocabulary (V, d_model), row 0 for padding; None for features.
        E: the positional encoding (n, d_model), or None.
        safe: the dtypes in which the network is proved right; it refuses to run in others.
    """

    wide = True

    def __init__(
        self,
        stages: dict[str, Stage],
        W_out: Float[Tensor, "out d_model"],
        W_in: Float[Tensor, "d_model d"] | None = None,
        embedding: Float[Tensor, "V d_model"] | None = None,
        E: Float[Tensor, "n d_model"] | None = None,
        safe: tuple[str, ...] = ("float64",),
    ):
        super().__init__(stages, "softmax", E)
        if any(stage.feed_forward is not None and stage.feed_forward.phi is not None for stage in stages.values()):
            raise InvalidInput("An embedded network has ReLU feed-forward layers; got one with a three-piece φ.")
        if (W_in is None) == (embedding is None):
            raise InvalidInput("A network takes either features (W_in) or tokens (embedding), and not both.")
        self.W_in = None if W_in is None else nn.Parameter(W_in)
        self.embedding = None if embedding is None else nn.Parameter(embedding)
        self.W_out = nn.Parameter(W_out)
        self.safe = safe

    @property
    def dtype(self) -> torch.dtype:
        return self.W_out.dtype

    def rounded(self, dtype: torch.dtype) -> EmbeddedTransformer:
        """A copy with weights rounded to a dtype in which it is known to be right: it runs in no other."""
        copied = copy.deepcopy(self).to(dtype)
        copied.safe = (dtype_name(dtype),)
        return copied

    def embed(self, X: Tensor) -> Tensor:
        """The residual stream before the first block: (batch, n, d_model)."""
        if self.embedding is not None:
            Z = nn.functional.embedding(X, self.embedding)
        else:
            Z = nn.functional.linear(X, self.W_in)  # pyright: ignore[reportArgumentType]
        return Z if self.E is None else Z + self.E

    def forward(
        self,
        X: Float[Tensor, "batch n d"] | Int[Tensor, "batch n"],
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> Float[Tensor, "batch n out"]:
        """``mask`` is True at real tokens. Every row needs at least one."""
        if self.W_in is not None and X.dtype != self.dtype:
            raise InvalidInput(f"This network takes numbers in {self.dtype}; got an input in {X.dtype} instead.")
        with self.in_a_safe_dtype():
            Z = self.embed(X)
            for _, _, layer in self.layers():
                if mask is not None and layer.attention is not None:
                    *weights, pattern = layer.attention
                    real = mask[:, None, None, :] if pattern is None else mask[:, None, None, :] & pattern
                    layer = dataclasses.replace(layer, attention=(*weights, real))
                Z = layer(Z)
            return nn.functional.linear(Z, self.W_out)

    def in_a_safe_dtype(self) -> AbstractContextManager[Any]:
        """Refuses any other; and what is computed inside is in this one, whatever autocast would take."""
        name = dtype_name(self.dtype)
        if name not in self.safe:
            raise CannotBuild(f"This network is not safe in {name}; it is in {', '.join(self.safe)}.")
        return no_autocast(self.W_out)

    def ends(self) -> tuple[int | None, int]:
        return None if self.W_in is None else self.W_in.shape[1], self.W_out.shape[0]

    def input_map(self) -> np.ndarray | None:
        return None if self.W_in is None else self.W_in.detach().numpy()

    def output_map(self) -> np.ndarray | None:
        return self.W_out.detach().numpy()

    def size_for(self, N: int, n: int, d: int, positional: bool, thin: bool = False) -> tuple[int, int, str]:
        """A hidden unit for each step of the quantiser; without positions also one for each count of a token."""
        parts = [stage.feed_forward for stage in self.stages.values() if stage.feed_forward is not None]
        units = sum(part.W_1.shape[0] * part.W_1.shape[1] for part in parts)
        return max((N - 1) * d, 0 if positional else n), units, "hidden units or more"

    def run(self, X: np.ndarray) -> np.ndarray:
        """A batch of features in the network's own dtype, in tiles that fit into the cache; float64 in and out."""
        tile = max(1, _TILE_NUMBERS // (X.shape[1] * max(self.shape()["r"], self.shape()["d"])))
        with torch.no_grad():
            parts = [
                self(torch.from_numpy(X[start : start + tile]).to(self.dtype)).to(torch.float64).numpy()
                for start in range(0, len(X), tile)
            ]
        return np.concatenate(parts)

    def shape(self) -> dict[str, Any]:
        """The class: the largest h, m and r over all stages; ``d`` is d_model here."""
        stages = list(self.stages.values())
        attention = [s.attention.W_Q for s in stages if s.attention is not None]
        return {
            "h": max((W.shape[1] for W in attention), default=0),
            "m": max((W.shape[2] for W in attention), default=0),
            "r": max((s.feed_forward.W_1.shape[1] for s in stages if s.feed_forward is not None), default=0),
            "d": self.W_out.shape[1],
        }

    def structure(self) -> dict[str, Any]:
        return super().structure() | {
            "kind": "embedded",
            "input": "tokens" if self.embedding is not None else "features",
            "safe": list(self.safe),
        }

    @classmethod
    def from_structure(cls, structure: dict[str, Any], weights: dict[str, Tensor]) -> EmbeddedTransformer:
        if structure.get("kind") != "embedded":
            raise InvalidInput("A network of this kind has an embedding and a read-out; this one does not.")
        stages = stages_from_structure(structure["stages"], weights, 0)  # embedding and read-out may be all of it
        try:
            first = {"embedding": weights.pop("embedding")} if structure["input"] == "tokens" else {}
            first = first or {"W_in": weights.pop("W_in")}
            E = weights.pop("E") if structure["E"] is not None else None
            W_out = weights.pop("W_out")
        except KeyError as missing:
            raise InvalidInput(f"The weights lack the array {missing}.") from None
        if weights:
            raise InvalidInput(f"The weights hold arrays that the structure does not name: {sorted(weights)}.")
        safe = structure["safe"]
        named = isinstance(safe, list) and bool(safe) and all(name in DTYPES for name in safe)
        if structure["rho"] != "softmax" or not named or len(set(safe)) != len(safe):
            raise InvalidInput("An embedded network has softmax attention and names each dtype it is safe in, once.")
        for name, array in {"W_out": W_out, "E": E, **first}.items():
            if array is not None and (array.ndim != 2 or 0 in array.shape):
                raise InvalidInput(f"{name} must be a matrix, not empty; its shape is {tuple(array.shape)}.")
        for stage in stages.values():
            pattern = None if stage.attention is None else stage.attention.pattern
            if pattern is not None and (E is None or pattern.shape[-2:] != (len(E), len(E))):
                raise InvalidInput(f"A pattern must be for the positions of the network; got {tuple(pattern.shape)}.")
        widths = {W_out.shape[1], *(w.shape[-1] for w in (E, first.get("embedding")) if w is not None)}
        widths |= {first["W_in"].shape[0]} if "W_in" in first else set()
        for stage in stages.values():
            widths |= {part.parameters_list()[0].shape[-1] for part in stage.children()}  # pyright: ignore
        if len(widths) != 1:
            raise InvalidInput(f"All parts of a network must have one d_model; got {sorted(widths)}.")
        network = cls(stages, W_out, E=E, safe=tuple(safe), **first)
        check_described(network, structure)
        return network
