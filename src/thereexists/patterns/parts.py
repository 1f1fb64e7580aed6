"""The parts a sparsity pattern is made of: each is a relation "token k attends to token j", stored as a formula.

A part answers five questions, always for whole arrays of tokens and never through an n × n object:

- ``contains(k, j)``: the definition itself, arithmetic only, so that it also runs on torch tensors (``mask_mod``);
- ``entries(n, k)``: the members of the rows ``k``, one after the other (for CSR);
- ``count(n, k, lo, hi)``: how many members of row ``k`` lie in ``[lo, hi]``;
- ``image(x, causal)``: the tokens that some token of the set ``x`` attends to, in O(n);
- ``preimage(x, causal)``: the tokens that attend to some token of the set ``x``, in O(n).

Sets of tokens are Boolean arrays of length n. ``causal`` keeps the pairs with ``j ≤ k``. The five answers are written
independently of each other; the tests compare each with ``contains``.

A part may come from a stranger's file, and its columns become addresses in kernels. So every constructor checks every
number (``numbers``), and ``check(n)`` what depends on the number of tokens: no part that exists leaves ``[0, n)``.

Longer than 400 lines because seven parts answer the same five questions, and are checked and read side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.patterns.numbers import FARTHEST, near, shown, vector, whole

Tokens = range | np.ndarray  # a set of tokens: an arithmetic progression, or a sorted array without repetitions


class Part(ABC):
    """A relation between tokens, stored as a formula."""

    def check(self, n: int) -> None:
        """Refuse a part that names tokens which a sequence of ``n`` does not have; most formulas suit every n."""
        return

    def holds_itself(self, n: int) -> bool:
        """Whether the formula alone shows that every token sees itself; False where it does not show."""
        return False

    @abstractmethod
    def contains(self, k: Any, j: Any) -> Any: ...

    @abstractmethod
    def entries(self, n: int, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``(counts, columns)`` of the rows ``k``; columns ascend within a row."""

    @abstractmethod
    def count(self, n: int, k: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def image(self, x: np.ndarray, causal: bool) -> np.ndarray: ...

    @abstractmethod
    def preimage(self, x: np.ndarray, causal: bool) -> np.ndarray: ...


class IntervalPart(Part):
    """Row ``k`` is an interval ``[lo(k), hi(k)]`` whose two ends never decrease with ``k``."""

    @abstractmethod
    def interval(self, n: int, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both ends, clipped to ``[0, n)``; an empty row has ``lo > hi``."""

    def row(self, n: int, k: int) -> tuple[int, int]:
        """Both ends of one row, as plain numbers: a decoding step asks for nothing else."""
        lo, hi = self.interval(n, np.array([k]))
        return int(lo[0]), int(hi[0])

    def entries(self, n, k):
        lo, hi = self.interval(n, k)
        return ranges(lo, np.maximum(hi - lo + 1, 0))

    def count(self, n, k, lo, hi):
        start, stop = self.interval(n, k)
        return np.maximum(np.minimum(stop, hi) - np.maximum(start, lo) + 1, 0)

    def _rows(self, n: int, causal: bool) -> tuple[np.ndarray, np.ndarray]:
        k = np.arange(n)
        lo, hi = self.interval(n, k)
        return lo, (np.minimum(hi, k) if causal else hi)

    def image(self, x, causal):
        lo, hi = self._rows(len(x), causal)
        touched = x & (lo <= hi)
        # A difference array: +1 where an interval opens, -1 after it closes; positive partial sums are covered.
        n = len(x)
        delta = np.bincount(lo[touched], minlength=n + 1) - np.bincount(hi[touched] + 1, minlength=n + 1)
        return np.cumsum(delta[:n]) > 0

    def preimage(self, x, causal):
        lo, hi = self._rows(len(x), causal)
        before = np.concatenate(([0], np.cumsum(x)))
        return (lo <= hi) & (before[np.maximum(hi, -1) + 1] > before[np.minimum(lo, len(x))])


@dataclass(frozen=True)
class Band(IntervalPart):
    """``lo ≤ j − k ≤ hi``: a sliding window."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        for name in ("lo", "hi"):
            object.__setattr__(self, name, near(getattr(self, name), f"'{name}' of a window"))

    def holds_itself(self, n):
        return self.lo <= 0 <= self.hi

    def contains(self, k, j):
        return (j - k >= self.lo) & (j - k <= self.hi)

    def interval(self, n, k):
        # ends beyond ±n change nothing, and k + sys.maxsize would wrap around
        lo, hi = max(min(self.lo, n), -n), max(min(self.hi, n), -n)
        return np.maximum(k + lo, 0), np.minimum(k + hi, n - 1)

    def row(self, n, k):
        return max(k + self.lo, 0), min(k + self.hi, n - 1)


@dataclass(frozen=True)
class BlockBand(IntervalPart):
    """``lo ≤ block(j) − block(k) ≤ hi`` with ``block(k) = (k + shift) // size``: a window of whole blocks."""

    size: int
    lo: int = 0
    hi: int = 0
    shift: int = 0

    def __post_init__(self) -> None:
        """Small numbers for the same blocks: ``0 ≤ shift < size ≤ FARTHEST``.

        Moving by a whole block renames the blocks. Where ``size > FARTHEST``, at most one block ends inside any
        sequence, before token ``size − shift``; blocks of FARTHEST tokens that end there are the same.
        """
        size, shift = whole(self.size, "'size' of a block", least=1), whole(self.shift, "'shift' of the blocks")
        shift %= size
        if size > FARTHEST:
            size, shift = FARTHEST, max(FARTHEST - (size - shift), 0)
        numbers = {"size": size, "shift": shift}
        for name in ("lo", "hi"):
            numbers[name] = near(getattr(self, name), f"'{name}' of a window of blocks")
        for name, value in numbers.items():
            object.__setattr__(self, name, value)

    def holds_itself(self, n):
        return self.lo <= 0 <= self.hi

    def contains(self, k, j):
        gap = (j + self.shift) // self.size - (k + self.shift) // self.size
        return (gap >= self.lo) & (gap <= self.hi)

    def interval(self, n, k):
        lo, hi = max(min(self.lo, n), -n), max(min(self.hi, n), -n)  # block and lo are ≤ 2n, so products are < 2^63
        block = (k + self.shift) // self.size
        first = (block + lo) * self.size - self.shift
        last = (block + hi + 1) * self.size - self.shift - 1
        return np.maximum(first, 0), np.minimum(last, n - 1)


@dataclass(frozen=True, eq=False)
class CausalPart(Part):
    """The pairs of ``part`` with ``j ≤ k``: how a causal step joins a union with steps that are not."""

    part: Part

    def check(self, n):
        self.part.check(n)

    def holds_itself(self, n):
        return self.part.holds_itself(n)

    def contains(self, k, j):
        return self.part.contains(k, j) & (j <= k)

    def entries(self, n, k):
        counts, columns = self.part.entries(n, k)
        row = np.repeat(np.arange(len(k)), counts)
        keep = columns <= k[row]
        return np.bincount(row[keep], minlength=len(k)), columns[keep]

    def count(self, n, k, lo, hi):
        hi = np.minimum(hi, k)
        return np.where(lo <= hi, self.part.count(n, k, lo, np.maximum(hi, lo)), 0)

    def image(self, x, causal):
        return self.part.image(x, True)

    def preimage(self, x, causal):
        return self.part.preimage(x, True)


@dataclass(frozen=True, eq=False)
class CausalInterval(CausalPart, IntervalPart):
    """The same for intervals: ``min(hi(k), k)`` never decreases either."""

    part: IntervalPart

    def interval(self, n, k):
        lo, hi = self.part.interval(n, k)
        return lo, np.minimum(hi, k)


def as_causal_part(part: Part, n: int) -> Part:
    """``part`` restricted to ``j ≤ k``, as a part of its own."""
    if isinstance(part, Rect) and len(part.rows) == len(part.cols) == n:
        return Band(-n, 0)
    if isinstance(part, CausalPart):
        return part
    return CausalInterval(part) if isinstance(part, IntervalPart) else CausalPart(part)


@dataclass(frozen=True)
class Residue(Part):
    """``j ≡ k (mod modulus)``: the columns of a strided pattern."""

    modulus: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "modulus", near(self.modulus, "The modulus of a residue class", least=1))

    def holds_itself(self, n):
        return True

    def contains(self, k, j):
        return (j - k) % self.modulus == 0

    def entries(self, n, k):
        first = k % self.modulus
        return ranges(first, (n - 1 - first) // self.modulus + 1, self.modulus)

    def count(self, n, k, lo, hi):
        r = k % self.modulus
        lo, hi = np.maximum(lo, 0), np.minimum(hi, n - 1)
        return np.where(lo <= hi, (hi - r) // self.modulus - (lo - 1 - r) // self.modulus, 0)

    def image(self, x, causal):
        grid = self._grid(x)
        if causal:  # j is seen when j or a later member of its class is in x
            out = np.logical_or.accumulate(grid[::-1], axis=0)[::-1]
        else:
            out = np.broadcast_to(grid.any(axis=0), grid.shape)
        return out.ravel()[: len(x)].copy()

    def preimage(self, x, causal):
        if not causal:
            return self.image(x, False)
        return np.logical_or.accumulate(self._grid(x), axis=0).ravel()[: len(x)].copy()

    def _grid(self, x: np.ndarray) -> np.ndarray:
        modulus = min(self.modulus, len(x))  # beyond n every class is one token
        rows = -(-len(x) // modulus)
        return np.pad(x, (0, rows * modulus - len(x))).reshape(rows, modulus)


@dataclass(frozen=True)
class Offsets(Part):
    """``j − k`` is one of a few given offsets, ascending: dilated windows, LogSparse."""

    offsets: tuple[int, ...]

    def __post_init__(self) -> None:
        offsets = vector(self.offsets, "Offsets", -FARTHEST, FARTHEST)
        if not len(offsets) or (np.diff(offsets) <= 0).any():
            raise InvalidInput(
                f"There must be at least one offset, and offsets must ascend; got {shown(self.offsets)}."
            )
        object.__setattr__(self, "offsets", tuple(offsets.tolist()))

    def holds_itself(self, n):
        return 0 in self.offsets

    def contains(self, k, j):
        found = j - k == self.offsets[0]
        for offset in self.offsets[1:]:
            found = found | (j - k == offset)
        return found

    def reaching(self, n: int) -> np.ndarray:
        """The offsets that lead somewhere among ``n`` tokens: at most 2n − 1, however many are given."""
        offsets = np.asarray(self.offsets)
        return offsets[(offsets > -n) & (offsets < n)]

    def entries(self, n, k):
        columns = k[:, None] + self.reaching(n)
        inside = (columns >= 0) & (columns < n)
        return inside.sum(axis=1), columns[inside]

    def count(self, n, k, lo, hi):
        lo, hi = np.maximum(lo, 0), np.minimum(hi, n - 1)
        return sum(
            (((k + o >= lo) & (k + o <= hi)).astype(np.int64) for o in self.reaching(n)), np.zeros(len(k), np.int64)
        )

    def image(self, x, causal):
        return _shifted(x, [o for o in self.offsets if o <= 0 or not causal])

    def preimage(self, x, causal):
        return _shifted(x, [-o for o in self.offsets if o <= 0 or not causal])


@dataclass(frozen=True)
class Xor(Part):
    """``j = k`` or ``j = k XOR mask``: one level of a butterfly.

    With ``mask ≥ 1`` the two differ and ``k XOR mask ≥ 0``, so that ``< n`` is all there is to ask.
    """

    mask: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "mask", whole(self.mask, "The mask of a butterfly", least=1, most=FARTHEST))

    def holds_itself(self, n):
        return True

    def contains(self, k, j):
        return (j == k) | (j == k ^ self.mask)

    def entries(self, n, k):
        pair = np.sort(np.stack([k, k ^ self.mask], axis=1), axis=1)
        inside = pair < n
        return inside.sum(axis=1), pair[inside]

    def count(self, n, k, lo, hi):
        other = k ^ self.mask
        lo, hi = np.maximum(lo, 0), np.minimum(hi, n - 1)
        return ((k >= lo) & (k <= hi)).astype(np.int64) + ((other >= lo) & (other <= hi))

    def image(self, x, causal):
        k = np.flatnonzero(x)
        out = x.copy()
        other = k ^ self.mask
        out[other[(other < len(x)) & ((other <= k) | (not causal))]] = True
        return out

    def preimage(self, x, causal):
        j = np.flatnonzero(x)
        out = x.copy()
        other = j ^ self.mask
        out[other[(other < len(x)) & ((other >= j) | (not causal))]] = True
        return out


@dataclass(frozen=True, eq=False)
class Rect(Part):
    """Every token of ``rows`` attends to every token of ``cols``: hubs, global tokens, summaries."""

    rows: Tokens
    cols: Tokens

    def __post_init__(self) -> None:
        """Sorted, without repetitions, steps forwards: what every answer below relies on."""
        for name in ("rows", "cols"):
            object.__setattr__(self, name, _ascending(getattr(self, name)))

    def check(self, n):
        for tokens in (self.rows, self.cols):
            if len(tokens) and tokens[-1] >= n:
                raise InvalidInput(f"A rectangle names token {int(tokens[-1])}; the step has tokens 0..{n - 1}.")

    def holds_itself(self, n):
        return len(self.rows) == len(self.cols) == n

    def contains(self, k, j):
        return member(self.rows, k) & member(self.cols, j)

    def entries(self, n, k):
        here = member(self.rows, k)
        cols = as_array(self.cols if here.any() else range(0))
        return np.where(here, len(cols), 0), np.tile(cols, int(here.sum()))

    def count(self, n, k, lo, hi):
        cols = as_array(self.cols)
        inside = np.searchsorted(cols, hi, "right") - np.searchsorted(cols, lo, "left")
        return np.where(member(self.rows, k), np.maximum(inside, 0), 0)

    def image(self, x, causal):
        n = len(x)
        seers = np.flatnonzero(x & as_mask(self.rows, n))
        out = np.zeros(n, bool)
        if len(seers):
            out |= as_mask(self.cols, n)
            if causal:
                out[seers[-1] + 1 :] = False
        return out

    def preimage(self, x, causal):
        n = len(x)
        seen = np.flatnonzero(x & as_mask(self.cols, n))
        out = np.zeros(n, bool)
        if len(seen):
            out |= as_mask(self.rows, n)
            if causal:
                out[: seen[0]] = False
        return out


@dataclass(frozen=True, eq=False)
class Explicit(Part):
    """Rows written out: ``indices[indptr[k]:indptr[k+1]]``, ascending, without repetitions."""

    indptr: np.ndarray
    indices: np.ndarray

    def __post_init__(self) -> None:
        indptr = vector(self.indptr, "Row starts", 0, np.iinfo(np.int64).max)
        n = len(indptr) - 1
        indices = vector(self.indices, f"The entries of {max(n, 0)} rows", 0, n - 1)
        if n < 1 or indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
            raise InvalidInput(
                f"Row starts must rise from 0 to the number of entries, {len(indices)}; got {shown(indptr[:9])}."
            )
        falls = np.flatnonzero(np.diff(indices) <= 0) + 1  # allowed only where a new row starts
        if not np.isin(falls, indptr).all():
            raise InvalidInput("The entries of every row must ascend; sort each row and list every entry once.")
        object.__setattr__(self, "indptr", indptr)
        object.__setattr__(self, "indices", indices)

    def check(self, n):
        if len(self.indptr) - 1 != n:
            raise InvalidInput(f"Listed rows are for {len(self.indptr) - 1} tokens; the step has {n}.")

    def contains(self, k, j):
        if not isinstance(k, np.ndarray):
            from thereexists.patterns.tables import bisected_rows

            return bisected_rows(self, k.device)(k, j)
        k, j = np.broadcast_arrays(np.asarray(k), np.asarray(j))
        if not len(self.indices):
            return np.zeros(k.shape, bool)
        n = len(self.indptr) - 1
        # Row-major keys k·n + j ascend through the whole array, so one bisection answers for every pair.
        position = np.searchsorted(self._keys(), k.astype(np.int64) * n + j)
        clipped = np.minimum(position, len(self.indices) - 1)
        return (position < self.indptr[k + 1]) & (self.indices[clipped] == j) & (position >= self.indptr[k])

    def entries(self, n, k):
        counts = self.indptr[k + 1] - self.indptr[k]
        _, where = ranges(self.indptr[k], counts)
        return counts, self.indices[where].astype(np.int64)

    def count(self, n, k, lo, hi):
        counts, columns = self.entries(n, k)
        row = np.repeat(np.arange(len(k)), counts)
        inside = (columns >= lo[row]) & (columns <= hi[row])
        return np.bincount(row[inside], minlength=len(k))

    def image(self, x, causal):
        out = np.zeros(len(x), bool)
        keep = np.repeat(x, np.diff(self.indptr))
        if causal:
            keep &= self.indices <= self._row_of()
        out[self.indices[keep]] = True
        return out

    def preimage(self, x, causal):
        hit = x[self.indices]
        if causal:
            hit = hit & (self.indices <= self._row_of())
        before = np.concatenate(([0], np.cumsum(hit)))
        return before[self.indptr[1:]] > before[self.indptr[:-1]]

    def _row_of(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    def _keys(self) -> np.ndarray:
        if not hasattr(self, "_key_cache"):
            n = len(self.indptr) - 1
            object.__setattr__(self, "_key_cache", self._row_of().astype(np.int64) * n + self.indices)
        return self._key_cache  # type: ignore[attr-defined]


def ranges(start: np.ndarray, counts: np.ndarray, step: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """``(counts, start[0] + step·[0..counts[0]), start[1] + …)``, concatenated."""
    counts = np.asarray(counts, np.int64)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    within = np.arange(total) - np.repeat(ends - counts, counts)
    return counts, np.repeat(start, counts) + step * within


def member(tokens: Tokens, x: Any) -> Any:
    """Elementwise ``x ∈ tokens``, for numpy arrays and torch tensors."""
    if not isinstance(x, np.ndarray | np.integer | int):
        from thereexists.patterns.tables import membership

        return membership(tokens, x.device)(x)
    if isinstance(tokens, range):
        inside = (x >= tokens.start) & (x < tokens.stop)
        return inside if tokens.step == 1 else inside & ((x - tokens.start) % tokens.step == 0)
    position = np.minimum(np.searchsorted(tokens, x), max(len(tokens) - 1, 0))
    return tokens[position] == x if len(tokens) else np.zeros(np.shape(x), bool)


def _ascending(tokens: Any) -> Tokens:
    if isinstance(tokens, range):
        tokens = tokens if tokens.step > 0 else tokens[::-1]
        # One way to write each set, within [0, n]: it stops behind its last token, and one token needs no step.
        tokens = range(tokens[0], tokens[-1] + 1, tokens.step if len(tokens) > 1 else 1) if tokens else range(0)
    else:
        tokens = np.unique(vector(tokens, "The tokens of a rectangle"))
    ends = (tokens[0], tokens[-1]) if len(tokens) else ()
    if any(not 0 <= end < FARTHEST for end in ends):
        far = next(end for end in ends if not 0 <= end < FARTHEST)
        raise InvalidInput(f"A rectangle names token {int(far)}; tokens are numbered 0..{FARTHEST - 1} at most.")
    return tokens


def as_array(tokens: Tokens) -> np.ndarray:
    return np.arange(tokens.start, tokens.stop, tokens.step) if isinstance(tokens, range) else tokens


def as_mask(tokens: Tokens, n: int) -> np.ndarray:
    mask = np.zeros(n, bool)
    if isinstance(tokens, range):
        mask[tokens.start : tokens.stop : tokens.step] = True
    else:
        mask[tokens] = True
    return mask


def _shifted(x: np.ndarray, offsets: list[int]) -> np.ndarray:
    """The union of ``x + o`` over the offsets, clipped to ``[0, n)``."""
    n, out = len(x), np.zeros(len(x), bool)
    for o in offsets:
        if 0 <= o < n:
            out[o:] |= x[: n - o]
        elif -n < o < 0:
            out[:o] |= x[-o:]
    return out
