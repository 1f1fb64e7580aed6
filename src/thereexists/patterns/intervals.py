"""Intervals that are cut by others: packed documents, and what lies in two intervals at once.

``Documents`` is a sequence cut into pieces that do not see each other; ``Meet`` is the pairs that two interval parts
share, such as a window within each document. Both are intervals whose ends never decrease, so that all that is known of
windows (``IntervalPart``) holds for them: nothing is listed, and a new packing costs a look-up for each token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.patterns.numbers import FARTHEST, shown, vector
from thereexists.patterns.parts import IntervalPart


@dataclass(frozen=True, eq=False)
class Documents(IntervalPart):
    """Tokens ``starts[i] … starts[i+1] − 1`` see each other; the last document ends with the sequence."""

    starts: np.ndarray

    def __post_init__(self) -> None:
        starts = vector(self.starts, "The starts of documents", 0, FARTHEST)
        if not len(starts) or starts[0] != 0 or (np.diff(starts) <= 0).any():
            raise InvalidInput(f"The starts of documents must rise from 0; got {shown(starts[:9])}.")
        object.__setattr__(self, "starts", starts)

    def check(self, n):
        if self.starts[-1] >= n:
            raise InvalidInput(f"A document begins at token {self.starts[-1]}, and the step has {n} tokens.")

    def holds_itself(self, n):
        return True

    def number(self, k: Any) -> Any:
        """The document in which a token stands."""
        return np.searchsorted(self.starts, k, "right") - 1

    def contains(self, k, j):
        if not isinstance(k, np.ndarray | np.integer | int):
            import torch

            starts = torch.from_numpy(self.starts).to(k.device)
            return torch.bucketize(k, starts, right=True) == torch.bucketize(j, starts, right=True)
        return self.number(k) == self.number(j)

    def interval(self, n, k):
        i = self.number(k)
        return self.starts[i], np.append(self.starts, n)[i + 1] - 1


@dataclass(frozen=True, eq=False)
class Meet(IntervalPart):
    """The pairs that are in both: the larger of two rising ends rises, and so does the smaller."""

    one: IntervalPart
    other: IntervalPart

    def check(self, n):
        for part in (self.one, self.other):
            part.check(n)

    def holds_itself(self, n):
        return self.one.holds_itself(n) and self.other.holds_itself(n)

    def contains(self, k: Any, j: Any) -> Any:
        return self.one.contains(k, j) & self.other.contains(k, j)

    def interval(self, n, k):
        (a, b), (c, d) = self.one.interval(n, k), self.other.interval(n, k)
        return np.maximum(a, c), np.minimum(b, d)
