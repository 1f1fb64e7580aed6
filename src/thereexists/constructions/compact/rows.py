"""Named subspaces of the residual stream, and feed-forward layers written unit by unit in those names."""

from __future__ import annotations

import numpy as np
import torch

from thereexists.functions.target import Array
from thereexists.model import Attention, FeedForward, Stage


class Rows:
    """``Rows(x=1, slot=12)``: ``rows["slot"]`` are the indices of the 12 slot rows; ``rows.d_model`` is their sum."""

    def __init__(self, **sizes: int):
        ends = np.cumsum(list(sizes.values()))
        self._index = {name: np.arange(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}
        self.d_model = int(ends[-1])

    def __getitem__(self, name: str) -> Array:
        return self._index[name]


class Layer:
    """``r`` hidden units over ``d_model`` rows, all zero to begin with: W_1 (r, d), b_1 (r,), W_2 (r, d), b_2 (d,)."""

    def __init__(self, r: int, d_model: int):
        self.W_1, self.b_1 = np.zeros((r, d_model)), np.zeros(r)
        self.W_2, self.b_2 = np.zeros((r, d_model)), np.zeros(d_model)  # W_2 transposed: a unit's row is what it writes

    def with_(self, other: Layer) -> Layer:
        """Both as one layer; only this one may add a constant."""
        joined = Layer(0, len(self.b_2))
        joined.W_1, joined.W_2 = np.concatenate([self.W_1, other.W_1]), np.concatenate([self.W_2, other.W_2])
        joined.b_1, joined.b_2 = np.concatenate([self.b_1, other.b_1]), self.b_2
        return joined

    def stages(self, name: str, max_width: int | None, attention: Attention | None = None) -> dict[str, Stage]:
        """One block, or several of at most ``max_width`` units in a row: no unit reads what another one writes."""
        width = max_width or len(self.b_1)
        starts = range(0, max(len(self.b_1), 1), max(width, 1))
        made = {}
        for number, start in enumerate(starts):
            part = slice(start, start + width)
            constant = self.b_2 if number == 0 else np.zeros_like(self.b_2)
            tensors = (self.W_1[part], self.b_1[part], self.W_2[part].T, constant)
            W_1, b_1, W_2, b_2 = (torch.tensor(np.ascontiguousarray(a)[None]) for a in tensors)
            feed_forward = FeedForward(W_1, b_1, W_2, b_2)
            made[name if number == 0 else f"{name}_{number + 1}"] = Stage(
                attention if number == 0 else None, feed_forward
            )
        return made


def uniform_attention(read: Array, write: Array, factor: float, d_model: int) -> Attention:
    """One head with zero logits: row write[i] += factor · the mean over the tokens of row read[i]."""
    m = len(read)
    zero = torch.zeros(1, 1, m, d_model, dtype=torch.float64)
    W_V, W_O = zero.clone(), torch.zeros(1, 1, d_model, m, dtype=torch.float64)
    W_V[0, 0, torch.arange(m), torch.from_numpy(read)] = 1.0
    W_O[0, 0, torch.from_numpy(write), torch.arange(m)] = factor
    return Attention(zero, torch.zeros(1, 1, m, dtype=torch.float64), zero.clone(), W_V, W_O)


def block_count(r: int, max_width: int | None) -> int:
    """Blocks that ``Layer.stages`` makes of r units."""
    return 1 if not max_width else max(1, -(-r // max_width))
