"""One step of a pattern: what every token attends to in one block, as a union of symbolic parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.numbered import Numbered
from thereexists.core.owned_arrays import unwritable
from thereexists.patterns.numbers import as_tokens, inside, whole
from thereexists.patterns.parts import IntervalPart, Part, Rect, as_mask
from thereexists.patterns.rectangles import RectUnion, unite

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_TOKENS = 1 << 22  # counting the connections of a step keeps about ten numbers a token: 0.3 GiB
_CHUNK = 1 << 22  # entries enumerated at a time
_MASK_BYTES = 1 << 31
_FEW = 4  # rectangles asked one by one; more are united first


@dataclass(frozen=True, eq=False)
class Step(Numbered):
    """``A^l``: token ``k`` attends to the union of the rows of ``parts``; ``causal`` keeps ``j ≤ k`` only.

        te.patterns.strided(n=16, stride=4).step(0).mask()

    Args:
        n: how many tokens.
        parts: whose rows are united.
        causal: whether no token looks ahead.
    """

    n: int
    parts: tuple[Part, ...]
    causal: bool = False

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidInput("A step needs at least one part; got none.")
        object.__setattr__(self, "n", whole(self.n, "The number of tokens", least=1, most=MOST_TOKENS))
        for part in self.parts:
            part.check(self.n)

    def contains(self, k: Any, j: Any) -> Any:
        """Elementwise ``j ∈ A_k``, for numpy arrays and torch tensors."""
        k, j = as_tokens(k), as_tokens(j)
        found = self.united[0].contains(k, j)
        for part in self.united[1:]:
            found = found | part.contains(k, j)
        return found & (j <= k) if self.causal else found

    def rows(self, k: int) -> np.ndarray:
        """The tokens that token ``k`` attends to, ascending."""
        if not 0 <= whole(k, "A token") < self.n:
            raise InvalidInput(f"Token {k} does not exist: the pattern has tokens 0..{self.n - 1}.")
        return self.entries(np.array([k]))[1]

    def entries(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``(counts, columns)`` of the rows ``k``, columns ascending within a row and without repetitions."""
        k = np.asarray(k, np.int64)
        counts, columns = zip(*(part.entries(self.n, k) for part in self.united), strict=True)
        for part, column in zip(self.united, columns, strict=True):
            inside(column, self.n, type(part).__name__)
        if len(self.united) == 1 and not self.causal:
            return counts[0], columns[0]
        local = np.concatenate([np.repeat(np.arange(len(k)), c) for c in counts])
        column = np.concatenate(columns)
        if self.causal:
            keep = column <= k[local]
            local, column = local[keep], column[keep]
        key = local * self.n + column
        key = np.unique(key) if len(self.united) > 1 else key
        return np.bincount(key // self.n, minlength=len(k)), key % self.n

    def image(self, x: np.ndarray) -> np.ndarray:
        """The tokens that some token of the set ``x`` attends to."""
        out = np.zeros(self.n, bool)
        for part in self.united:
            out |= part.image(x, self.causal)
        return out

    def preimage(self, x: np.ndarray) -> np.ndarray:
        """The tokens that attend to some token of the set ``x``."""
        out = np.zeros(self.n, bool)
        for part in self.united:
            out |= part.preimage(x, self.causal)
        return out

    def as_causal(self) -> Step:
        return replace(self, causal=True)

    @cached_property
    def rectangles(self) -> RectUnion | None:
        """The union of the rectangles among the parts."""
        rects = [part for part in self.parts if isinstance(part, Rect)]
        return unite(rects, self.n) if rects else None

    @cached_property
    def united(self) -> tuple[Part, ...]:
        """The parts, with more than a few rectangles as one: the same relation, answered faster."""
        others = tuple(part for part in self.parts if not isinstance(part, Rect))
        if len(self.parts) - len(others) <= _FEW or self.rectangles is None:
            return self.parts
        return (*others, self.rectangles)

    # ---- sizes ------------------------------------------------------------------------------------------------

    @cached_property
    def degrees(self) -> np.ndarray:
        """``|A_k|`` for every ``k``, by counting formulas where the parts allow it."""
        return unwritable(self._degrees(np.arange(self.n)))

    def _degrees(self, k: np.ndarray) -> np.ndarray:
        last = k if self.causal else np.full(self.n, self.n - 1)
        rects = self.rectangles
        others = [p for p in self.parts if not isinstance(p, Rect | IntervalPart)]
        core = self.interval_core()
        n_intervals = sum(isinstance(p, IntervalPart) for p in self.parts)
        if len(others) > 1 or (n_intervals and core is None):
            return self._degrees_by_enumeration(k)
        lo, hi = core if core is not None else (np.zeros(self.n, np.int64), np.full(self.n, -1))
        total = np.maximum(hi - lo + 1, 0)
        if rects is not None:
            total = total + self._count_outside(rects, k, lo, hi, last)
        if others and rects is not None:
            return total + self._outside(others[0], rects, lo, hi, last)
        for part in others:
            total = total + self._count_outside(part, k, lo, hi, last)
        return total

    def _count_outside(self, part: Part, k, lo, hi, last) -> np.ndarray:
        """Members of ``part`` up to ``last`` that lie outside ``[lo, hi]``."""
        every = part.count(self.n, k, np.zeros(self.n, np.int64), last)
        return every - np.where(lo <= hi, part.count(self.n, k, lo, np.maximum(hi, lo)), 0)

    def _outside(self, part: Part, rects: RectUnion, lo, hi, last) -> np.ndarray:
        """Members of ``part`` outside ``[lo, hi]`` and outside the rectangles: only this part is enumerated."""
        n, k = self.n, np.arange(self.n)
        bound = part.count(n, k, np.zeros(n, np.int64), np.full(n, n - 1))
        out = np.zeros(n, np.int64)
        for rows in _chunks(np.maximum(bound, 1)):
            counts, column = part.entries(n, rows)
            row = np.repeat(rows, counts)
            keep = ((column < lo[row]) | (column > hi[row])) & (column <= last[row])
            keep &= ~rects.contains(row, column)
            out[rows] = np.bincount(row[keep] - rows[0], minlength=len(rows))
        return out

    def _degrees_by_enumeration(self, k: np.ndarray) -> np.ndarray:
        bound = sum(part.count(self.n, k, np.zeros_like(k), np.full(self.n, self.n - 1)) for part in self.united)
        out = np.zeros(self.n, np.int64)
        for rows in _chunks(np.asarray(bound)):
            out[rows] = self.entries(rows)[0]
        return out

    @property
    def connections(self) -> int:
        return int(self.degrees.sum())

    @cached_property
    def self_loops(self) -> np.ndarray:
        """``k ∈ A_k`` for every ``k``."""
        k = np.arange(self.n)
        return unwritable(np.asarray(self.contains(k, k)))

    # ---- structure that closed forms use ----------------------------------------------------------------------

    def interval_core(self, k: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray] | None:
        """Ends of the union of the interval parts, when that union is one interval in every row (of ``k``)."""
        k = np.arange(self.n) if k is None else k
        ends = [p.interval(self.n, k) for p in self.parts if isinstance(p, IntervalPart)]
        if not ends:
            return None
        lo, hi = ends[0]
        for other_lo, other_hi in ends[1:]:
            if ((np.maximum(lo, other_lo) > np.minimum(hi, other_hi) + 1) | (lo > hi) | (other_lo > other_hi)).any():
                return None
            lo, hi = np.minimum(lo, other_lo), np.maximum(hi, other_hi)
        return lo, (np.minimum(hi, k) if self.causal else hi)

    def ends(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """First and last token of the rows ``k``, where each is one interval; work for these rows only."""
        if self._has_everything():
            return np.zeros_like(k), (k if self.causal else np.full_like(k, self.n - 1))
        return self.interval_core(k) if all(isinstance(p, IntervalPart) for p in self.parts) else None

    def row_ends(self, k: int) -> tuple[int, int] | None:
        """``ends`` of one row, in plain numbers."""
        if self._has_everything():
            return 0, (k if self.causal else self.n - 1)
        found: tuple[int, int] | None = None
        for part in self.parts:
            if not isinstance(part, IntervalPart):
                return None
            lo, hi = part.row(self.n, k)
            if found is None:
                found = lo, hi
            elif max(lo, found[0]) > min(hi, found[1]) + 1 or lo > hi or found[0] > found[1]:
                return None
            else:
                found = min(lo, found[0]), max(hi, found[1])
        return None if found is None else (found[0], min(found[1], k) if self.causal else found[1])

    def _has_everything(self) -> bool:
        return any(isinstance(p, Rect) and len(p.rows) == len(p.cols) == self.n for p in self.parts)

    def interval_around(self) -> tuple[np.ndarray, np.ndarray] | None:
        """``interval_core`` when it contains the row's own token in every row."""
        core, k = self.interval_core(), np.arange(self.n)
        return core if core is not None and ((core[0] <= k) & (k <= core[1])).all() else None

    def interval_rows(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Ends of every row, when every row is exactly one interval: interval parts only, or everything."""
        if self._has_everything():
            return self.ends(np.arange(self.n))
        if self.rectangles is not None and all(isinstance(p, Rect) for p in self.parts):
            ends = self.rectangles.interval_rows()
            return ends if ends is None or not self.causal else (ends[0], np.minimum(ends[1], np.arange(self.n)))
        return self.interval_core() if all(isinstance(p, IntervalPart) for p in self.parts) else None

    def common_columns(self) -> np.ndarray:
        """Tokens that every token attends to, as far as the rectangles show it (up to causality)."""
        out = np.zeros(self.n, bool)
        for part in self.parts:
            if isinstance(part, Rect) and len(part.rows) == self.n:
                out |= as_mask(part.cols, self.n)
        return out

    # ---- materialised, on request -----------------------------------------------------------------------------

    def to_csr(self) -> csr_array:
        """The step as a scipy CSR array of Booleans; row ``k`` = what token ``k`` attends to."""
        from scipy.sparse import csr_array

        if self.connections * 9 > 8 * _MASK_BYTES:
            raise CannotBuild(
                f"A CSR array of this step would hold {self.connections:,} connections, more than "
                f"{8 * _MASK_BYTES // 9:,}; use rows(k), image() or contains(), which need no such array."
            )
        index = np.int32 if max(self.n, self.connections) < 2**31 else np.int64
        columns = np.concatenate([self.entries(rows)[1].astype(index) for rows in _chunks(self.degrees)])
        indptr = np.concatenate(([0], np.cumsum(self.degrees))).astype(index)
        return csr_array((np.ones(len(columns), bool), columns, indptr), shape=(self.n, self.n))

    def mask(self) -> np.ndarray:
        """The step as a Boolean n × n array; row ``k`` = what token ``k`` attends to."""
        if self.n**2 > _MASK_BYTES:
            raise CannotBuild(
                f"A dense mask for n = {self.n} needs {self.n**2 / 2**30:.1f} GiB, more than 2 GiB; "
                "use to_csr(), rows(k) or mask_mod()."
            )
        out = np.zeros((self.n, self.n), bool)
        for rows in _chunks(self.degrees):
            counts, columns = self.entries(rows)
            out[np.repeat(rows, counts), columns] = True
        return out


def _chunks(counts: np.ndarray) -> list[np.ndarray]:
    """Consecutive rows in chunks of at most about ``_CHUNK`` entries."""
    edges = np.searchsorted(np.cumsum(counts), np.arange(_CHUNK, int(counts.sum()) + _CHUNK, _CHUNK), "left")
    stops = np.unique(np.concatenate((np.minimum(edges + 1, len(counts)), [len(counts)])))
    starts = np.concatenate(([0], stops[:-1]))
    return [np.arange(a, b) for a, b in zip(starts, stops, strict=True) if a < b]
