"""Sums that no rounding can touch: the one argument about floating point that an automaton's network needs.

*Weights.* Each is 0 or a normal number of the dtype, used or not: then the network converted to the dtype is the very
network that was looked at. (A weight that is 0 in a narrower dtype is another network; a subnormal one is 0 on machines
that flush them; and 0 · ∞ is not a number.)

*Sums.* Let all terms of a sum be whole multiples of a power of two u, and the sum of their sizes at most 2^p·u, p being
the bits of the dtype's significand. Then every partial sum, in any order, is a multiple of u of size at most 2^p·u, and
those are numbers of the dtype: nothing is ever rounded, in whatever order a machine adds, and in whatever wider format.
(The exponents must be there too: u is at least the smallest normal number, the sum of sizes at most the largest.)

*Attention in parts.* A fused kernel takes the keys in parts. It keeps the largest logit so far, adds up values times
exp(l − largest), and multiplies the sum by exp(old − new) ∈ [0, 1] when the largest grows. Only at the end is this the
sum of the formula: before the right position is met, others lead, and many of them may be equal. What they add up to is
then multiplied by 0, which forgets it if it is a number at all; ∞ · 0 is none. So n + 1 values of the largest size must
add up to a finite number, at weights of up to ``LAZY`` each, in the format in which kernels add: float32, or the dtype
where it is wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from thereexists.core.dtypes import DTYPES, SIGNIFICAND, as_dtype
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_up
from thereexists.core.verdict import Verdict

# exp(t) is 0 for all t at or below −VANISHES in every dtype: the smallest number of float64 is 4.9e-324 = exp(−744.4).
VANISHES = 800.0
# Kernels that rescale only when the largest logit has grown by enough let a weight come to 2^8 (FlashAttention-4).
LAZY = 256.0

ASSUMPTIONS = (
    "an operation whose exact result is a number of the dtype gives it, in any order of a sum and in any wider format",
    "softmax subtracts the largest logit before all else; exp(0) is 1, and exp(t) is 0 for t ≤ −800, as it is below "
    "the smallest number of every dtype",
    "attention that takes the keys in parts subtracts the largest logit so far, or one that is less by 8·log 2 at "
    "most; it adds up in float32 or in a wider dtype, and rescales what it has by exp(old − new) when the largest "
    "grows",
)


class Exact(Protocol):
    """A condition under which a dtype rounds nothing."""

    def holds(self, name: str) -> str | None:
        """Why it fails in a dtype, or None."""
        ...


@dataclass(frozen=True)
class Weights:
    """The sizes of an array of weights, but for 0: each must be a normal number of the dtype."""

    where: str
    sizes: torch.Tensor

    @classmethod
    def of(cls, where: str, weights: torch.Tensor) -> Weights:
        found = weights.detach()
        return cls(where, found[found != 0].abs().unique())  # most weights are 0, and few others are distinct

    def finite(self) -> bool:
        return bool(self.sizes.isfinite().all())

    def holds(self, name: str) -> str | None:
        dtype, limits = as_dtype(name), torch.finfo(as_dtype(name))
        outside = (self.sizes < limits.smallest_normal) | (self.sizes > limits.max)
        if bool(outside.any()):
            return f"a weight of {self.where}, {in_full(float(self.sizes[outside][0]))}, is beyond the range of {name}"
        rounded = self.sizes.to(dtype).to(self.sizes.dtype) != self.sizes
        if bool(rounded.any()):
            w = float(self.sizes[rounded][0])
            return f"a weight of {self.where}, {w!r}, takes more than {SIGNIFICAND[name]} bits"
        return None


@dataclass(frozen=True)
class Sum:
    """A sum of the network: its terms are multiples of ``unit``, and their sizes add up to at most ``most``."""

    where: str
    unit: float
    most: float

    def holds(self, name: str) -> str | None:
        """Why a dtype may round it, or None."""
        limits = torch.finfo(as_dtype(name))
        bits = SIGNIFICAND[name]
        if not (np.isfinite(self.most) and self.unit > 0):
            return f"{self.where}: a number is not finite"
        sums = f"{self.where}: sums up to {rounded_up(self.most, 6)} in steps of {in_full(self.unit)}"
        if self.most > 2.0**bits * self.unit:
            return f"{sums} take more than {bits} bits"
        if self.unit < limits.smallest_normal or self.most > limits.max:
            return f"{sums} are beyond the range of {name}"
        return None


@dataclass(frozen=True)
class InParts:
    """Sums of attention whatever part of the keys they are over: their sizes are at most ``most``."""

    where: str
    most: float

    def holds(self, name: str) -> str | None:
        if self.most <= max(torch.finfo(as_dtype(name)).max, torch.finfo(torch.float32).max):
            return None
        most = rounded_up(self.most, 6)
        return f"{self.where}: sums over some of the keys, up to {most}, are beyond the range of {name}"


def verdicts(sums: Sequence[Exact]) -> dict[str, Verdict]:
    """For every dtype whether all sums are exact in it."""
    found = {}
    for name in DTYPES:
        wrong = next((reason for reason in (each.holds(name) for each in sums) if reason is not None), None)
        found[name] = Verdict(wrong is None, (wrong or f"all sums are exact in {name}, in any order",))
    return found


def unit_of(*arrays: np.ndarray) -> float:
    """The largest power of two of which all numbers are whole multiples; 1 where all are 0."""
    least = 0.0
    for array in arrays:
        x = np.abs(np.asarray(array, dtype=np.float64).reshape(-1))
        x = x[x > 0]
        if not len(x):
            continue
        if not np.isfinite(x).all():
            return float("nan")
        mantissa, exponent = np.frexp(x)
        whole = np.ldexp(mantissa, 53).astype(np.int64)
        units = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
        least = float(units.min()) if least == 0 else min(least, float(units.min()))
    return least or 1.0


def most_of(W: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The largest Σ|W·z| of every row of W (…, rows) over 0/1 vectors z with at most one 1 in each group of rows."""
    total = np.zeros(len(W))
    size = np.abs(W)
    for group in np.unique(groups):
        total += size[:, groups == group].max(axis=1)
    return total
