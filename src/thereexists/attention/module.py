"""``SparseAttention``: multi-head self-attention over a pattern, a drop-in layer that trains."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from thereexists.attention.functional import Dropout, Held, attend, padding
from thereexists.attention.ways import head_steps
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import whole
from thereexists.core.shapes import Bool, Float, Integer
from thereexists.patterns import Pattern, Step


class SparseAttention(nn.Module):
    """Projections to ``heads`` heads of size dim / heads, attention over ``pattern``, and a projection back.

        attn = te.attention.SparseAttention(te.patterns.strided(n=64, stride=8).union(), heads=12, dim=768)
        y = attn(torch.randn(1, 64, 768))  # (batch, n, dim) → (batch, n, dim)

    Args:
        pattern: of one step, or multihead.
        heads: how many.
        dim: of a token.
        dropout: share of weights that are dropped.
        bias: whether the projections have one.
    """

    def __init__(self, pattern: Pattern | Step, heads: int, dim: int, dropout: float = 0.0, bias: bool = True):
        super().__init__()
        for name, size in (("heads", heads), ("dim", dim)):
            whole(size, f"'{name}'", 1)
        if dim % heads:
            raise InvalidInput(f"'dim' must be a multiple of 'heads'; got dim = {dim} and heads = {heads}.")
        if not 0 <= dropout < 1:
            raise InvalidInput(f"'dropout' must lie in [0, 1); got {dropout}.")
        self.heads, self.dim, self.dropout = heads, dim, dropout
        self.pattern = pattern
        self.qkv = nn.Linear(dim, 3 * dim, bias=bias)
        self.out = nn.Linear(dim, dim, bias=bias)

    def __setattr__(self, name: str, value: Any) -> None:
        """Another pattern must be for as many heads."""
        if name == "pattern":
            spans = head_steps(value)
            if spans[-1][0] is not None and spans[-1][0][1] != self.heads:
                raise InvalidInput(f"The pattern is made for {spans[-1][0][1]} heads; got heads = {self.heads}.")
            self._seen_heads = None if spans[0][0] is None else self.heads
        super().__setattr__(name, value)

    def forward(
        self,
        x: Float[Tensor, "batch n dim"],
        key_padding_mask: Bool[Tensor, "batch n"] | None = None,
        lengths: Integer[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch n dim"]:
        if x.ndim != 3 or x.shape[-1] != self.dim:
            raise InvalidInput(f"The input must be (batch, n, {self.dim}); got {tuple(x.shape)}.")
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, self.dim // self.heads).permute(2, 0, 3, 1, 4)
        pad = padding(q, key_padding_mask, lengths)
        dropout = self.dropout if self.training else 0.0
        held = Held(self.pattern.number, self.pattern.n, self._seen_heads)
        y = attend(q, k, v, held, None, pad, Dropout(dropout))
        return self.out(y.transpose(1, 2).reshape(b, n, self.dim))

    def extra_repr(self) -> str:
        name = self.pattern.name if isinstance(self.pattern, Pattern) else "step"
        return f"{name}, n={self.pattern.n}, heads={self.heads}, dim={self.dim}, dropout={self.dropout}"
