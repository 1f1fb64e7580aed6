"""Sparse Transformers of the general class ``ST^{h,m,r}`` (paper B), for training and inspection.

    PaperAttention(X)_k = X_k + Σ_i W_O^i (W_V^i X_{A_k}) ρ[(W_K^i X_{A_k})ᵀ (W_Q^i X_k + b_Q^i)]
    FF(X)                = X + W_2 ReLU(W_1 X + b_1) + b_2

No LayerNorm, no 1/√m, a query bias, residuals around both. The paper writes X as d × n with tokens as columns; here X
is ``(batch, n, d)``. Block number t uses step ``t mod p`` of the pattern; in a *multihead* pattern every block uses all
steps, each in its own heads. With the softmax this runs on ``te.attention.sparse_attention``; the other maps ρ need the
whole row of logits and run as masked dense attention, quadratic in n.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from thereexists.core.errors import InvalidInput
from thereexists.core.shapes import Bool, Float
from thereexists.model.probability import PROBABILITY_MAPS, ProbabilityMap, probability_map
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step


class PaperAttention(nn.Module):
    """The attention layer of ``ST^{h,m,r}``, as the paper writes it: any map ρ, a residual, no 1/√m.

        layer = te.attention.PaperAttention(d=4, h=2, m=2, pattern=te.patterns.window(n=8, window=3))
        layer(torch.rand(1, 8, 4)).shape

    For a layer of today's models (1/√m, fused projections, no residual) see ``te.attention.SparseAttention``.

    Args:
        d: features of a token.
        h: how many heads.
        m: the size of a head.
        pattern: which token attends to which.
        l: the step of the pattern that this layer has.
        rho: one of ``te.patterns.PROBABILITY_MAPS``, by name or itself.
    """

    def __init__(self, d: int, h: int, m: int, pattern: Pattern, l: int = 0, rho: str | ProbabilityMap = "softmax"):
        super().__init__()
        for name, size in (("d", d), ("h", h), ("m", m)):
            if size < 1:
                raise InvalidInput(f"'{name}' must be a positive integer; got {size}.")
        self.rho = probability_map(rho)
        self.W_Q, self.W_K, self.W_V = (nn.Parameter(torch.randn(h, m, d) * d**-0.5) for _ in range(3))
        self.W_O = nn.Parameter(torch.randn(h, d, m) * (h * m) ** -0.5)
        self.b_Q = nn.Parameter(torch.zeros(h, m))
        if pattern.heads is not None and sum(pattern.heads) != h:
            raise InvalidInput(f"'{pattern.name}' is made for {sum(pattern.heads)} heads; got h = {h}.")
        self.seen = pattern if pattern.heads is not None else pattern.step(l)
        self._mask: Tensor | None = None

    @property
    def mask(self) -> Bool[Tensor, "h n n"]:
        """``mask[i, k, j]`` says whether head i of token k sees j; made on first use."""
        if self._mask is None or self._mask.device != self.W_Q.device:
            self._mask = _head_masks(self.seen, self.W_Q.shape[0]).to(self.W_Q.device)
        return self._mask

    def _queries_and_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        _check_shape(x, self.seen.n, self.W_Q.shape[-1])
        q = torch.einsum("hmd,bnd->bhnm", self.W_Q, x) + self.b_Q[:, None]
        return q, torch.einsum("hmd,bnd->bhnm", self.W_K, x)

    def attention(self, x: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch h n n"]:
        """Column j of the paper's ρ[…], as row: what token k attends to, exactly 0 outside ``A_k``."""
        return self._weights(*self._queries_and_keys(x))

    def _weights(self, q: Tensor, k: Tensor) -> Tensor:
        logits = q @ k.transpose(-1, -2)  # (batch, h, n, n)
        return self.rho(logits.masked_fill(~self.mask, -torch.inf))

    def forward(self, x: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        q, k = self._queries_and_keys(x)
        v = torch.einsum("hmd,bnd->bhnm", self.W_V, x)
        if self.rho is PROBABILITY_MAPS["softmax"]:
            from thereexists.attention import sparse_attention  # imports patterns, hence not at the top

            y = sparse_attention(q, k, v, self.seen, scale=1.0)
        else:
            y = self._weights(q, k) @ v
        return x + torch.einsum("hdm,bhnm->bnd", self.W_O, y)


class FeedForward(nn.Module):
    """``X + W_2 ReLU(W_1 X + b_1) + b_2`` with ``r`` hidden units."""

    def __init__(self, d: int, r: int):
        super().__init__()
        if r < 1:
            raise InvalidInput(f"'r' must be a positive integer; got {r}.")
        self.W_1, self.b_1 = nn.Parameter(torch.randn(r, d) * d**-0.5), nn.Parameter(torch.zeros(r))
        self.W_2, self.b_2 = nn.Parameter(torch.randn(d, r) * r**-0.5), nn.Parameter(torch.zeros(d))

    def forward(self, x: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        return x + torch.relu(x @ self.W_1.T + self.b_1) @ self.W_2.T + self.b_2


class SparseTransformer(nn.Module):
    """Blocks of the class ``ST^{h,m,r}`` over a pattern, to be trained; block t has step t mod p of it.

        pattern = te.patterns.window(n=8, window=3)
        te.attention.SparseTransformer(d=4, h=2, m=2, r=8, pattern=pattern, blocks=2)(torch.rand(1, 8, 4)).shape

    Args:
        d: features of a token.
        h: how many heads.
        m: the size of a head.
        r: the width of the feed-forward layers.
        pattern: which token attends to which.
        blocks: how many.
        rho: one of ``te.patterns.PROBABILITY_MAPS``, by name or itself.
        positional: whether a learned positional encoding E is added to the input.
    """

    def __init__(
        self,
        d: int,
        h: int,
        m: int,
        r: int,
        pattern: Pattern,
        blocks: int,
        rho: str | ProbabilityMap = "softmax",
        positional: bool = True,
    ):
        super().__init__()
        if blocks < 1:
            raise InvalidInput(f"'blocks' must be a positive integer; got {blocks}.")
        self.pattern, self.d = pattern, d
        self.E = nn.Parameter(torch.zeros(pattern.n, d)) if positional else None
        self.layers = nn.ModuleList()
        for t in range(blocks):
            attention = PaperAttention(d, h, m, pattern, t % pattern.cycle, rho)
            self.layers.append(nn.Sequential(attention, FeedForward(d, r)))

    def forward(self, x: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        _check_shape(x, self.pattern.n, self.d)
        x = x if self.E is None else x + self.E
        for layer in self.layers:
            x = layer(x)
        return x


def _head_masks(seen: Pattern | Step, h: int) -> Tensor:
    """``(h, n, n)``: one step for every head, or for a multihead pattern each step in its own heads."""
    if isinstance(seen, Step):
        return torch.from_numpy(seen.mask()).expand(h, -1, -1)
    masks = [torch.from_numpy(step.mask()) for step in seen.steps]
    return torch.stack([mask for mask, count in zip(masks, seen.heads or (), strict=True) for _ in range(count)])


def _check_shape(x: Tensor, n: int, d: int) -> None:
    if x.shape[1:] != (n, d):
        raise InvalidInput(f"The input must be (batch, {n}, {d}), as pattern and layer are; got {tuple(x.shape)}.")
