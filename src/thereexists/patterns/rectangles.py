"""Many rectangles as one part: packed documents are a thousand of them, and a union needs every pair once.

``unite`` cuts the rows at every edge of a rectangle. The rows of one segment lie in the same rectangles, so they share
one set of columns; segments in the same rectangles form a *class*. A class keeps its columns as disjoint intervals,
ascending and with gaps between them. Everything is a list of numbers of rectangles or of tokens, never a bit of a
machine word, so the number of rectangles has no limit. For rectangles along the diagonal all lists have the length of
the number of rectangles; R nested ones need about R² numbers, a chunk at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thereexists.patterns.parts import Part, Rect, Tokens, ranges

_CHUNK = 1 << 22  # numbers in memory at a time


@dataclass(frozen=True, eq=False)
class RectUnion(Part):
    """Row ``k`` sees the columns ``first[i] ≤ j ≤ last[i]``, ``i = pointer[g] … pointer[g+1]−1``, ``g = group[k]``."""

    n: int
    group: np.ndarray
    pointer: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def contains(self, k, j):
        if not isinstance(k, np.ndarray | np.integer | int):
            from thereexists.patterns.tables import bisected_intervals

            return bisected_intervals(self, k.device)(k, j)
        i = np.searchsorted(self._keys, self.group[k] * (self.n + 1) + j, "right") - 1
        inside = i >= self.pointer[self.group[k]]
        if not len(self.last):
            return inside & False
        return inside & (j <= self.last[np.maximum(i, 0)])

    def entries(self, n, k):
        g = self.group[k]
        _, which = ranges(self.pointer[g], self.pointer[g + 1] - self.pointer[g])
        _, columns = ranges(self.first[which], self.last[which] - self.first[which] + 1)
        return self._before[self.pointer[g + 1]] - self._before[self.pointer[g]], columns

    def count(self, n, k, lo, hi):
        lo, hi = np.maximum(lo, 0), np.minimum(hi, n - 1)
        return np.where(lo <= hi, self._up_to(self.group[k], hi) - self._up_to(self.group[k], lo - 1), 0)

    def image(self, x, causal):
        latest = np.full(len(self.pointer) - 1, -1)  # the last member of x in each class
        seers = np.flatnonzero(x)
        np.maximum.at(latest, self.group[seers], seers)
        limit = np.repeat(latest, np.diff(self.pointer))
        last = np.minimum(self.last, limit) if causal else self.last
        seen = (limit >= 0) & (self.first <= last)
        delta = np.bincount(self.first[seen], minlength=self.n + 1) - np.bincount(last[seen] + 1, minlength=self.n + 1)
        return np.cumsum(delta[: self.n]) > 0

    def preimage(self, x, causal):
        n = self.n
        following = np.append(np.where(x, np.arange(n), n), n)  # the first member of x from here on
        following = np.minimum.accumulate(following[::-1])[::-1]
        found = following[self.first]
        earliest = np.full(len(self.pointer) - 1, n)
        owner = np.repeat(np.arange(len(earliest)), np.diff(self.pointer))
        np.minimum.at(earliest, owner, np.where(found <= self.last, found, n))
        of_row = earliest[self.group]
        return (of_row <= np.arange(n)) if causal else of_row < n

    def interval_rows(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Ends of every row, when every row is one interval and the ends never decrease."""
        if (np.diff(self.pointer)[self.group] != 1).any():
            return None
        lo, hi = self.first[self.pointer[self.group]], self.last[self.pointer[self.group]]
        return (lo, hi) if (np.diff(lo) >= 0).all() and (np.diff(hi) >= 0).all() else None

    @cached_property
    def _keys(self) -> np.ndarray:
        """``class·(n+1) + first`` ascends through all classes, so one bisection answers for every pair."""
        return np.repeat(np.arange(len(self.pointer) - 1), np.diff(self.pointer)) * (self.n + 1) + self.first

    @cached_property
    def _before(self) -> np.ndarray:
        """How many columns the intervals before each one hold."""
        return np.concatenate(([0], np.cumsum(self.last - self.first + 1)))

    def _up_to(self, g: np.ndarray, x: np.ndarray) -> np.ndarray:
        """How many columns ``j ≤ x`` class ``g`` has."""
        i = np.searchsorted(self._keys, g * (self.n + 1) + x, "right") - 1
        inside = i >= self.pointer[g]
        if not len(self.first):
            return np.zeros(np.shape(i), np.int64)
        i = np.maximum(i, 0)
        partial = np.minimum(x, self.last[i]) - self.first[i] + 1
        return np.where(inside, self._before[i] - self._before[self.pointer[g]] + partial, 0)


def unite(rects: Sequence[Rect], n: int) -> RectUnion:
    """The union of ``rects`` over ``n`` tokens."""
    row_of, row_start, row_stop = _runs([rect.rows for rect in rects])
    edges = np.unique(np.concatenate(([0, n], row_start, row_stop)))
    # run r covers the segments a[r] … b[r]−1
    a, b = np.searchsorted(edges, row_start), np.searchsorted(edges, row_stop)
    segments = len(edges) - 1
    class_of = np.zeros(segments, np.int64)  # class 0: in no rectangle
    lists: list[np.ndarray] = [np.zeros(0, np.int64)]
    depth = np.cumsum(np.bincount(a, minlength=segments + 1) - np.bincount(b, minlength=segments + 1))[:segments]
    for s0, s1 in _slices(depth):
        here = np.flatnonzero((a < s1) & (b > s0))
        counts, segment = ranges(np.maximum(a[here], s0), np.minimum(b[here], s1) - np.maximum(a[here], s0))
        rect = np.repeat(row_of[here], counts)
        order = np.lexsort((rect, segment))
        rect, lengths = rect[order], depth[s0:s1]
        starts = np.cumsum(lengths) - lengths
        for length in np.unique(lengths[lengths > 0]):
            same = np.flatnonzero(lengths == length)
            table = rect[starts[same][:, None] + np.arange(length)]  # one list of rectangles a segment
            as_one = np.ascontiguousarray(table).view(np.dtype((np.void, table.itemsize * int(length)))).ravel()
            _, example, which = np.unique(as_one, return_index=True, return_inverse=True)
            class_of[s0 + same] = len(lists) + which
            lists.extend(table[example])
    pointer, first, last = _columns(rects, lists, n)
    return RectUnion(n, np.repeat(class_of, np.diff(edges)), pointer, first, last)


def _columns(rects: Sequence[Rect], lists: list[np.ndarray], n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(pointer, first, last)``: the union of the columns of each list of rectangles, as disjoint intervals."""
    col_of, col_start, col_stop = _runs([rect.cols for rect in rects])
    runs = np.bincount(col_of, minlength=len(rects))  # intervals of each rectangle's columns
    begin = np.cumsum(runs) - runs
    before = np.concatenate(([0], np.cumsum(runs[np.concatenate(lists)])))
    sizes = np.diff(before[np.cumsum([0, *map(len, lists)])])
    firsts, lasts, counts = [], [], []
    for c0, c1 in _slices(sizes):
        members = np.concatenate(lists[c0:c1])
        _, run = ranges(begin[members], runs[members])
        owner = np.repeat(np.arange(c0, c1), sizes[c0:c1])
        start, stop = owner * (n + 1) + col_start[run], owner * (n + 1) + col_stop[run]
        order = np.argsort(start, kind="stable")
        start, stop, owner = start[order], np.maximum.accumulate(stop[order]), owner[order]
        # The stops of one class lie before the starts of the next, so a running maximum may cross classes.
        opens = np.append(True, start[1:] > stop[:-1])[: len(start)]
        closes = np.append(start[1:] > stop[:-1], True)[: len(start)]
        firsts.append(start[opens] % (n + 1))
        lasts.append(stop[closes] % (n + 1) - 1)
        counts.append(np.bincount(owner[opens] - c0, minlength=c1 - c0))
    pointer = np.concatenate(([0], np.cumsum(np.concatenate(counts))))
    return pointer, np.concatenate(firsts), np.concatenate(lasts)


def _runs(sets: Sequence[Tokens]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(owner, start, stop)`` of the maximal runs of neighbouring tokens in each set, set by set."""
    starts, stops = [], []
    for tokens in sets:
        if isinstance(tokens, range) and (tokens.step == 1 or len(tokens) < 2):
            starts.append(np.array([tokens.start][: len(tokens)], np.int64))
            stops.append(starts[-1] + len(tokens))
            continue
        tokens = np.asarray(tokens, np.int64)
        jumps = np.flatnonzero(np.diff(tokens) != 1)
        starts.append(tokens[np.append(0, jumps + 1)] if len(tokens) else tokens)
        stops.append(tokens[np.append(jumps, len(tokens) - 1)] + 1 if len(tokens) else tokens)
    owner = np.repeat(np.arange(len(sets)), [len(s) for s in starts])
    return owner, np.concatenate(starts), np.concatenate(stops)


def _slices(sizes: np.ndarray) -> Iterator[tuple[int, int]]:
    """Consecutive items in slices of about ``_CHUNK`` numbers."""
    stops = np.searchsorted(np.cumsum(sizes), np.arange(_CHUNK, int(sizes.sum()), _CHUNK), "right")
    cuts = np.unique(np.concatenate(([0], stops, [len(sizes)])))
    yield from zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
