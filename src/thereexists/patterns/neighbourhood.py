"""Neighbourhoods in a grid of one, two, three or more dimensions (Hassani et al. 2023, NATTEN).

Token k has the coordinates ``c_1, …, c_m`` of a grid whose sides are ``shape``, the last one running fastest. In every
direction it sees ``window_i`` coordinates around its own; near a border the window is moved inwards, not cut, so that
every token sees ``∏ window_i`` tokens. In direction i that is ``[s, s + w)`` with ``s = min(max(c − w//2, 0), L − w)``:
an interval whose ends never decrease with c. A row is the product of such intervals, so sets grow direction by
direction, and counting is a formula.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.patterns.numbers import FARTHEST, shown, vector
from thereexists.patterns.parts import Part

_CHUNK = 1 << 21


@dataclass(frozen=True)
class Neighbourhood(Part):
    """The tokens of a grid that lie in a window around a token, in every direction."""

    shape: tuple[int, ...]
    window: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("shape", "window"):
            object.__setattr__(
                self, name, tuple(vector(getattr(self, name), f"'{name}' of a grid", 1, FARTHEST).tolist())
            )
        fits = len(self.shape) == len(self.window) > 0
        if not fits or any(w > side for w, side in zip(self.window, self.shape, strict=True)):
            raise InvalidInput(
                f"A neighbourhood needs one window for each side of its grid, none larger than the side; got windows "
                f"{shown(list(self.window))} and sides {shown(list(self.shape))}."
            )

    def check(self, n):
        size = 1
        for side in self.shape:
            size *= side
        if size != n:
            raise InvalidInput(f"A grid of {shown(list(self.shape))} has {size} tokens; the step has {n}.")

    def holds_itself(self, n):
        return True

    def _axes(self) -> list[tuple[int, int, int]]:
        """Side, window and stride of each direction."""
        strides = [1]
        for side in self.shape[:0:-1]:
            strides.append(strides[-1] * side)
        return list(zip(self.shape, self.window, reversed(strides), strict=True))

    def contains(self, k, j):
        found = k == k
        for side, w, stride in self._axes():
            c, x = k // stride % side, j // stride % side
            first = c - w // 2
            found = found & ((x >= first) | (x >= side - w)) & ((x < first + w) | (x < w))
        return found

    def first(self, axis: int, c: np.ndarray) -> np.ndarray:
        """Where the window around the coordinate ``c`` begins."""
        side, w = self.shape[axis], self.window[axis]
        return np.clip(c - w // 2, 0, side - w)

    def entries(self, n, k):
        columns = np.zeros((len(k), 1), np.int64)
        for axis, (side, w, stride) in enumerate(self._axes()):
            seen = self.first(axis, k // stride % side)[:, None] + np.arange(w)
            columns = (columns[:, :, None] + seen[:, None] * stride).reshape(len(k), -1)
        return np.full(len(k), columns.shape[1]), columns.ravel()

    def count(self, n, k, lo, hi):
        return np.maximum(self._before(n, k, np.minimum(hi, n - 1) + 1) - self._before(n, k, np.maximum(lo, 0)), 0)

    def _before(self, n: int, k: np.ndarray, x: np.ndarray) -> np.ndarray:
        """How many members of row k come before token x: direction by direction, as in a dictionary."""
        total, inside = np.zeros(len(k), np.int64), np.ones(len(k), bool)
        behind = int(np.prod(self.window))
        for axis, (side, w, stride) in enumerate(self._axes()):
            behind //= w
            s, at = self.first(axis, k // stride % side), x // stride % side
            total += np.where(inside, np.clip(at - s, 0, w) * behind, 0)
            inside &= (at >= s) & (at < s + w)
        return np.where(x >= n, int(np.prod(self.window)), total)

    def image(self, x, causal):
        return self._moved(x, causal, False)

    def preimage(self, x, causal):
        return self._moved(x, causal, True)

    def _moved(self, x: np.ndarray, causal: bool, backwards: bool) -> np.ndarray:
        if causal:
            return self._listed(x, backwards)
        out = x.reshape(self.shape)
        for axis, side in enumerate(self.shape):
            c = np.arange(side)
            low = self.first(axis, c)
            high = low + self.window[axis]
            if not backwards:  # who sees c: the ends of the windows rise, so it is an interval too
                low, high = np.searchsorted(high, c, "right"), np.searchsorted(low, c, "right")
            before = np.insert(np.cumsum(out, axis=axis, dtype=np.int32), 0, 0, axis=axis)
            out = np.take(before, high, axis=axis) > np.take(before, low, axis=axis)
        return out.ravel()

    def _listed(self, x: np.ndarray, backwards: bool) -> np.ndarray:
        """With ``j ≤ k`` directions depend on each other: the pairs, some rows at a time."""
        n, out = len(x), np.zeros(len(x), bool)
        rows = np.arange(n) if backwards else np.flatnonzero(x)
        size = max(_CHUNK // int(np.prod(self.window)), 1)
        for a in range(0, len(rows), size):
            k = rows[a : a + size]
            counts, j = self.entries(n, k)
            k = np.repeat(k, counts)
            if backwards:
                out[k[(j <= k) & x[j]]] = True
            else:
                out[j[j <= k]] = True
        return out
