"""What a call needs besides tensors and pieces.

Logits are S = cap · tanh(scale · ⟨q, k⟩ / cap) + bias(j − k), the cap and the bias where there is one. A *sink* is one
more logit of a head that has no value: it joins the denominator, and takes that share of the weight to itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from thereexists.core.errors import InvalidInput


def is_number(given: object) -> bool:
    """A finite one."""
    number = isinstance(given, int | float | np.integer | np.floating)
    return number and bool(-math.inf < given < math.inf)  # a comparison, which a compiler can follow


def kind_of(given: object) -> str:
    """For messages: what somebody gave in the place of a tensor."""
    return str(given.dtype) if isinstance(given, Tensor) else type(given).__name__


SOFTCAPS = 1e-9, 1e9  # S/c and c·tanh(S/c) stay in the middle of float32 for every logit that is


class Scores(TypedDict, total=False):
    """What changes the logits of a call, and whether their log-sum-exp is wanted too: names and kinds for checkers."""

    softcap: float | None
    sinks: Tensor | None
    bias: Tensor | None
    return_lse: bool


@dataclass(frozen=True)
class Changes:
    """``Scores``, looked through."""

    softcap: float | None = None
    sinks: Tensor | None = None  # (heads,)
    bias: Tensor | None = None  # (heads,): ALiBi slopes; (heads, 2n − 1): by the offset j − k, from −(n − 1) on
    return_lse: bool = False

    def __post_init__(self) -> None:
        if self.softcap is not None and not (is_number(self.softcap) and SOFTCAPS[0] <= self.softcap <= SOFTCAPS[1]):
            raise InvalidInput(
                f"'softcap' must be a positive number, from 1e-9 to 1e9, or None for none; got {self.softcap}."
            )
        if not isinstance(self.return_lse, bool):
            raise InvalidInput(f"'return_lse' must be True or False; got {kind_of(self.return_lse)}.")

    def check(self, heads: int, n: int) -> None:
        for name, given in (("sinks", self.sinks), ("bias", self.bias)):
            if given is not None and not (isinstance(given, Tensor) and given.dtype.is_floating_point):
                raise InvalidInput(f"'{name}' must be a tensor of real numbers; got {kind_of(given)}.")
            if given is not None and given.is_meta:
                raise InvalidInput(f"'{name}' must hold numbers; it is on the meta device.")
        if self.sinks is not None and tuple(self.sinks.shape) != (heads,):
            raise InvalidInput(f"'sinks' must hold one logit for each of {heads} heads; got {tuple(self.sinks.shape)}.")
        if self.bias is None:
            return
        if tuple(self.bias.shape) not in ((heads,), (heads, 2 * n - 1)):
            raise InvalidInput(
                f"'bias' must hold a slope for each of {heads} heads, or a number for each head and each of the "
                f"{2 * n - 1} offsets from {1 - n} to {n - 1}; got {tuple(self.bias.shape)}."
            )
        if self.bias.requires_grad and torch.is_grad_enabled():
            raise InvalidInput("'bias' is taken as a constant: give bias.detach(), or add a learned bias to the keys.")

    @property
    def plain(self) -> bool:
        return self.softcap is None and self.sinks is None and self.bias is None and not self.return_lse

    def table(self, like: Tensor, n: int) -> Tensor | None:
        """The bias of each head by offset, (heads, 2n − 1), in the type in which logits are summed."""
        if self.bias is None:
            return None
        bias = self.bias.detach().to(like.device, torch.promote_types(like.dtype, torch.float32))
        if bias.ndim == 2:
            return bias.contiguous()
        return -bias[:, None] * torch.arange(1 - n, n, device=bias.device, dtype=bias.dtype).abs()


@dataclass(frozen=True)
class CallOptions:
    """How pairs are weighed. A dropped pair is a function of (seed, head, row, key) alone, not of the plan."""

    scale: float
    pad: Tensor | None = None  # (batch, n), True = a real token
    dropout: float = 0.0
    seed: int = 0
    cap: float = 0.0  # of the logits; 0: none
    bias: Tensor | None = None  # (heads, 2n − 1): added to the logit at j − k + n − 1

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
    Heads with steps of their own are groups: each counts its own heads, and has the seed + 2^40 · (its first head).
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
