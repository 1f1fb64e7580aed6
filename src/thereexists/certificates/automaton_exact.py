"""Sums that no rounding can touch: the one argument about floating point that an automaton's network needs.

Let all terms of a sum be whole multiples of a power of two u, and the sum of their sizes at most 2^p·u, p being the
bits of the dtype's significand. Then every partial sum, in any order, is a multiple of u of size at most 2^p·u, and
those are numbers of the dtype: nothing is ever rounded, in whatever order a machine adds, and in whatever wider format.
(The exponents must be there too: u is at least the smallest normal number, the sum of sizes at most the largest.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from thereexists.core.dtypes import DTYPES, SIGNIFICAND, as_dtype
from thereexists.core.verdict import Verdict

# exp(t) is 0 for all t at or below −VANISHES in every dtype: the smallest number of float64 is 4.9e-324 = exp(−744.4).
VANISHES = 800.0


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
        if self.most > 2.0**bits * self.unit:
            return f"{self.where}: sums up to {self.most:g} in steps of {self.unit:g} take more than {bits} bits"
        if self.unit < limits.smallest_normal or self.most > limits.max:
            return f"{self.where}: sums up to {self.most:g} in steps of {self.unit:g} are beyond the range of {name}"
        return None


def verdicts(sums: list[Sum]) -> dict[str, Verdict]:
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
