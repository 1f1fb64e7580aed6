"""Probability vectors: a flat domain, whose measure is the volume of all entries but one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import shown
from thereexists.functions.anywhere import FINE
from thereexists.functions.domains.domain import SPARE, TOLERANCE, Array, Domain, Ends

_MOST = 12  # entries of which the volume of a slice is computed exactly: its alternating sum loses bits


@final
@dataclass(frozen=True)
class Simplex(Domain):
    """x ≥ 0 with Σ x = 1: every token, or with ``whole`` the entries of the sequence together.

    The measure: leave one entry out, which the others determine; the volume of the rest is the same whichever it was,
    since the map between two choices, x_k = 1 − Σ of the others, has the determinant ±1. In all, 1/(size − 1)!.
    """

    whole: bool = False
    size: int | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    kind: ClassVar[str] = "simplex"

    def __post_init__(self) -> None:
        if not isinstance(self.whole, bool | np.bool_):
            raise InvalidInput(f"'whole' must be True or False; got {shown(self.whole)} instead.")
        object.__setattr__(self, "whole", bool(self.whole))

    def sized(self, n: int, d: int) -> Domain:
        size = n * d if self.whole else d
        if size < 2:
            raise InvalidInput(
                "A probability vector has at least two entries: choose d of at least 2, or Simplex(whole=True) (on the "
                "command line: simplex whole), whose entries are those of the whole sequence."
            )
        return replace(self, size=size)

    @property
    def ends(self) -> Ends:
        return np.zeros(self._k), np.ones(self._k)

    def contains(self, x: Array) -> Array:
        return (x >= 0).all(axis=1) & (x <= 1).all(axis=1) & (np.abs(x.sum(axis=1) - 1) <= TOLERANCE)

    def meets(self, low: Array, high: Array) -> Array:
        least, most = np.maximum(low, 0.0).sum(axis=1), np.minimum(high, 1.0).sum(axis=1)
        return (high >= 0).all(axis=1) & (low <= 1).all(axis=1) & (least <= 1 + SPARE) & (most >= 1 - SPARE)

    def within(self, low: Array, high: Array) -> Array:
        return np.zeros(len(low), dtype=bool)

    def anchor(self, low: Array, high: Array) -> Array:
        """On the way from the lower to the upper corner, where the sum is 1; beside the simplex, an end of that way."""
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        least, most = low.sum(axis=1), high.sum(axis=1)
        share = np.clip((1 - least) / np.where(most > least, most - least, 1.0), 0.0, 1.0)[:, None]
        x = low + share * (high - low)
        return _summing_to_one(x)

    def point(self, low: Array, high: Array) -> Array:
        return self.anchor(low, high)

    def measure(self, low: Array, high: Array) -> Array:
        """Of boxes of equal sides s: s^{k−1} · P(a ≤ U_1 + … + U_{k−1} ≤ a + 1), else all sides but the longest.

        The sums of uniform numbers have the Irwin–Hall distribution, an alternating sum, right to 2^-30 for k ≤ 12.
        """
        sides = high - low
        longest = sides.max(axis=1)
        rest = np.where(longest > 0, sides.prod(axis=1) / np.where(longest > 0, longest, 1.0), 0.0)
        even = (longest > 0) & (longest - sides.min(axis=1) <= 2.0**-40 * longest)
        if self._k <= _MOST and even.any():
            side = longest[even]
            start = (1 - high[even, -1] - low[even, :-1].sum(axis=1)) / side  # x_k = 1 − Σ ≤ its upper end
            m = self._k - 1
            share = _sums_below(start + 1, m) - _sums_below(start, m) + 2.0**-30 + 2.0**-48 / side
            rest[even] = rest[even] * np.clip(share, 0.0, 1.0)
        return np.where(self.meets(low, high), rest * (1 + SPARE), 0.0)

    @property
    def flat(self) -> int:
        return 1

    @property
    def mass(self) -> float:
        return 1 / math.factorial(self._k - 1)

    def least(self, low: Array, high: Array) -> float:
        return self.mass * (1 - SPARE)

    def drawn(self, unit: Array, fine: Array) -> tuple[Array, Array]:
        """The gaps between sorted uniform numbers are uniform on the simplex; gaps of multiples of 2^-53 are exact."""
        order = np.lexsort((fine[:, : self._k - 1], unit[:, : self._k - 1]), axis=1)
        gaps = [
            np.diff(np.take_along_axis(part, order, axis=1), axis=1, prepend=0.0, append=end)
            for part, end in ((unit, 1.0), (fine, 0.0))
        ]
        return _summing_to_one(np.maximum(gaps[0] + FINE * gaps[1], 0.0)), np.ones(len(unit), dtype=bool)

    def words(self) -> str:
        return f"the probability vectors of {self._k} entries" if self.size else "the probability vectors"

    def measured(self) -> str:
        return "the volume on probability vectors is that of all entries but one, whichever is left out"

    def command(self) -> str | None:
        return "simplex whole" if self.whole else "simplex"

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "whole": self.whole}

    @property
    def _k(self) -> int:
        return int(self.size or 0)


def _summing_to_one(x: Array) -> Array:
    """Off by a few last bits of 1, all entries in [0, 1]."""
    total = x.sum(axis=1, keepdims=True)
    return np.clip(np.where(total > 0, x / np.where(total > 0, total, 1.0), 1 / x.shape[1]), 0.0, 1.0)


def _sums_below(t: Array, m: int) -> Array:
    """P(U_1 + … + U_m ≤ t): Σ_j (−1)^j C(m, j) (t − j)_+^m / m!, from the end of the range that is nearer."""
    near = np.clip(np.minimum(t, m - t), 0.0, m)
    terms = [(-1) ** j * math.comb(m, j) * np.maximum(near - j, 0.0) ** m for j in range(m // 2 + 1)]
    below = np.sum(terms, axis=0) / math.factorial(m)
    return np.where(t <= 0, 0.0, np.where(t >= m, 1.0, np.where(2 * t <= m, below, 1 - below)))
