"""What a call needs besides tensors and pieces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor


@dataclass(frozen=True)
class CallOptions:
    """Scale, key padding, dropout. A dropped pair is a function of (seed, head, row, key) alone, not of the plan."""

    scale: float
    pad: Tensor | None = None  # (batch, n), True = a real token
    dropout: float = 0.0
    seed: int = 0

    @property
    def threshold(self) -> int:
        """A pair survives when its 32-bit word reaches this."""
        return round(self.dropout * 2**32)

    @property
    def gain(self) -> float:
        """Survivors are scaled up, so that the expectation stays."""
        return 1 / (1 - self.dropout) if self.dropout < 1 else 0.0


def survivors(seed: int, threshold: int, head: int, row: np.ndarray, key: np.ndarray) -> np.ndarray:
    """The pairs that dropout keeps: Philox-4x32-10 (Salmon et al. 2011) of (row, key, head, 0) under ``seed``.

    ``head`` counts through batch and heads: batch index · heads + head. This is the definition; the kernels repeat it.
    """
    word = np.uint64(0xFFFFFFFF)
    row, key = np.broadcast_arrays(np.asarray(row), np.asarray(key))
    c0, c1 = row.astype(np.uint64), key.astype(np.uint64)
    c2, c3 = np.full_like(c0, head), np.zeros_like(c0)
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32 & 0xFFFFFFFF)
    a, b = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
    half = np.uint64(32)
    for _ in range(10):
        high, low = b * c2, a * c0
        c0, c2 = (high >> half) ^ c1 ^ k0, (low >> half) ^ c3 ^ k1
        c1, c3 = high & word, low & word
        k0 = np.uint64((int(k0) + 0x9E3779B9) & 0xFFFFFFFF)
        k1 = np.uint64((int(k1) + 0xBB67AE85) & 0xFFFFFFFF)
    return c0 >= np.uint64(threshold)
