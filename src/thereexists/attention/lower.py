"""From the symbolic form of a step to pieces that a fast kernel can run, every connection in exactly one piece.

A step is a union of parts that overlap (a window and a column of the same stride share three keys per row; a hub lies
in every window). Softmax over a union needs every key once, so the pieces are cut apart here, by formulas:

1. ``rows``: tokens that see everything. Their rows are computed on their own; the other pieces do not count there.
2. ``strips``: row k sees the j ≡ k (mod m) in an interval [lo_k, hi_k]. A residue class is a strip (the whole
   sequence), a window is one (m = 1), a dilated window too. A second strip skips what a first, whole residue class has.
3. ``columns``: runs of rows that share a list of keys (hubs, summaries, random blocks), minus what the strips have.
4. ``entries``: whatever is left, listed row by row, with what the other pieces have taken out.

``members(k)`` lists row k piece by piece; the tests check that its concatenation is row k of the step, without
repetition, for every pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thereexists.patterns.numbers import inside
from thereexists.patterns.parts import Explicit, IntervalPart, Offsets, Part, Rect, Residue, as_mask
from thereexists.patterns.rectangles import unite
from thereexists.patterns.step import Step, _chunks

_RUN = 16  # rows that share their keys are worth a dense piece from this average run on
_DILATED = 8  # so are offsets in arithmetic progression


@dataclass(frozen=True, eq=False)
class Strip:
    """Row k sees the ``j ≡ k (mod modulus)`` with ``lo[k] ≤ j ≤ hi[k]`` but not ``j ≡ k (mod skip)``.

    Both ends never decrease with k (within a class), so that a tile of rows has one range of keys.
    """

    modulus: int
    lo: np.ndarray
    hi: np.ndarray
    skip: int = 0  # 0: skip nothing

    def contains(self, k, j):
        found = (j >= self.lo[k]) & (j <= self.hi[k]) & ((j - k) % self.modulus == 0)
        return found & ((j - k) % self.skip != 0) if self.skip else found

    def members(self, k: int) -> np.ndarray:
        j = np.arange(max(int(self.lo[k]), 0), int(self.hi[k]) + 1)
        return j[self.contains(k, j)] if len(j) else j

    @property
    def pairs(self) -> int:
        """Pairs that a kernel looks at, skipped ones included."""
        return int(np.maximum((self.hi - self.lo) // self.modulus + 1, 0).sum())


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows ``starts[g] … starts[g+1]−1`` see ``cols[pointer[g]:pointer[g+1]]``, minus what the strips contain."""

    starts: np.ndarray
    pointer: np.ndarray
    cols: np.ndarray

    @property
    def pairs(self) -> int:
        return int((np.diff(self.starts) * np.diff(self.pointer)).sum())

    @property
    def most(self) -> int:
        return int(np.diff(self.pointer).max())

    def members(self, k: int) -> np.ndarray:
        g = int(np.searchsorted(self.starts, k, "right")) - 1
        return self.cols[self.pointer[g] : self.pointer[g + 1]]


@dataclass(frozen=True, eq=False)
class Entries:
    """Row ``rows[i]`` sees ``indices[indptr[i]:indptr[i+1]]``; rows without entries are not listed."""

    rows: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray

    def members(self, k: int) -> np.ndarray:
        i = int(np.searchsorted(self.rows, k))
        if i == len(self.rows) or self.rows[i] != k:
            return self.indices[:0]
        return self.indices[self.indptr[i] : self.indptr[i + 1]]

    def transposed(self) -> Entries:
        """Which rows see key j, for every key that some row sees."""
        row = np.repeat(self.rows, np.diff(self.indptr))
        order = np.argsort(self.indices, kind="stable")
        keys, counts = np.unique(self.indices, return_counts=True)
        return Entries(keys, np.concatenate(([0], np.cumsum(counts))), row[order])


@dataclass(frozen=True, eq=False)
class Lowered:
    """A step, cut into pieces without overlap; ``rows`` (tokens that see all) override the other pieces."""

    n: int
    causal: bool
    strips: tuple[Strip, ...] = ()
    columns: Columns | None = None
    entries: Entries | None = None
    rows: np.ndarray | None = None
    dense: bool = False  # every token sees every token (up to causality)

    def __post_init__(self) -> None:
        """What kernels take for addresses lies in the sequence, whatever the pieces were made from."""
        for strip in self.strips:
            some = strip.lo <= strip.hi
            for end in (strip.lo, strip.hi):
                inside(end[some], self.n, "A strip")
        for piece in (self.columns and self.columns.cols, self.entries and self.entries.indices, self.rows):
            if piece is not None:
                inside(piece, self.n, "A piece")

    @cached_property
    def window(self) -> tuple[int, int] | None:
        """(left, right) where row k sees k − left … k + right, as far as there are tokens, and nothing else."""
        if self.columns is not None or self.entries is not None or self.rows is not None or len(self.strips) != 1:
            return None
        (strip,) = self.strips
        k = np.arange(self.n)
        left, right = int((k - strip.lo).max(initial=-1)), int((strip.hi - k).max(initial=-1))
        plain = strip.modulus == 1 and not strip.skip and left >= 0 and right >= 0
        same = plain and (strip.lo == np.maximum(k - left, 0)).all()
        return (left, right) if same and (strip.hi == np.minimum(k + right, self.n - 1)).all() else None

    def members(self, k: int) -> list[np.ndarray]:
        """Row k, piece by piece."""
        last = k if self.causal else self.n - 1
        if self.rows is not None and k in self.rows:
            return [np.arange(last + 1)]
        out = [strip.members(k) for strip in self.strips]
        if self.columns is not None:
            c = self.columns.members(k)
            c = c[c <= last]
            for strip in self.strips:
                c = c[~_held(strip, k, c)]
            out.append(c)
        if self.entries is not None:
            out.append(self.entries.members(k))
        return out


def _held(strip: Strip, k, j):
    """In the strip, or in what the strip skips because another strip has it: never counted again."""
    return (j >= strip.lo[k]) & (j <= strip.hi[k]) & ((j - k) % strip.modulus == 0)


def lower(step: Step, listed_below: int = 0) -> Lowered:
    """Cut ``step`` into pieces. Windows and column lists of at most ``listed_below`` keys become listed entries."""
    n, causal, parts = step.n, step.causal, list(step.parts)
    k = np.arange(n)
    last = k if causal else np.full(n, n - 1)
    if any(_is_everything(part, n) for part in parts):
        return Lowered(n, causal, (Strip(1, np.zeros(n, np.int64), last),), dense=True)

    full_rows, full_cols = np.zeros(n, bool), np.zeros(n, bool)
    loose: list[Part] = []
    residue: Residue | None = None
    dilated: Offsets | None = None
    intervals: list[tuple[np.ndarray, np.ndarray]] = []
    runs: list[Explicit] = []
    for part in _residues_first(parts):
        if isinstance(part, Rect) and len(part.cols) == n:
            full_rows |= as_mask(part.rows, n)
        elif isinstance(part, Rect) and len(part.rows) == n:
            full_cols |= as_mask(part.cols, n)
        elif isinstance(part, Residue) and residue is None and part.modulus <= n:
            residue = part
        elif isinstance(part, Residue) and residue is not None and part.modulus % residue.modulus == 0:
            pass  # a subset of the class that is there already
        elif isinstance(part, IntervalPart) and _joins(intervals, part.interval(n, k)):
            intervals = [_joined(intervals, part.interval(n, k))]
        elif isinstance(part, Offsets) and _progression(part) == 1 and _joins(intervals, _span(part, n)):
            intervals = [_joined(intervals, _span(part, n))]
        elif isinstance(part, Offsets) and _progression(part) > 1 and len(part.offsets) >= _DILATED and not dilated:
            dilated = part
        elif isinstance(part, Explicit) and (rows := _interval_rows(part)) is not None and _joins(intervals, rows):
            intervals = [_joined(intervals, rows)]
        elif isinstance(part, Explicit) and len(_run_starts(part)) * _RUN <= n:
            runs.append(part)
        else:
            loose.append(part)

    documents = [part for part in loose if isinstance(part, Rect)]
    if len(documents) > 1 and (rows := unite(documents, n).interval_rows()) is not None and _joins(intervals, rows):
        intervals = [_joined(intervals, rows)]  # packed documents: rectangles that follow one another
        loose = [part for part in loose if not isinstance(part, Rect)]

    strips: list[Strip] = []
    if residue is not None:
        strips.append(Strip(residue.modulus, k % residue.modulus, last))
    skip = residue.modulus if residue is not None else 0
    if intervals:
        lo, hi = intervals[0][0], np.minimum(intervals[0][1], last)
        if int((hi - lo).max()) < listed_below:
            loose.append(_Interval(lo, hi))
        elif dilated is not None:
            loose.append(dilated)
            dilated = None
        if int((hi - lo).max()) >= listed_below:
            strips.append(Strip(1, lo, hi, skip))
    if dilated is not None:
        lo, hi = _span(dilated, n)
        strips.append(Strip(_progression(dilated), lo, np.minimum(hi, last), skip))
    strips = [s for s in strips if not s.skip or _skips_less(s)]

    columns = _columns(n, np.flatnonzero(full_cols), runs)
    if columns is not None and columns.most <= listed_below:
        loose += [Rect(range(n), np.flatnonzero(full_cols)), *runs] if full_cols.any() else list(runs)
        columns = None
    rows = np.flatnonzero(full_rows) if full_rows.any() else None
    entries = _entries(Step(n, tuple(loose), causal), strips, columns, full_rows) if loose else None
    return Lowered(n, causal, tuple(strips), columns, entries, rows)


# ---- recognising parts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Interval(IntervalPart):
    """Intervals given by their ends."""

    lo: np.ndarray
    hi: np.ndarray

    def contains(self, k, j):
        return (j >= self.lo[k]) & (j <= self.hi[k])

    def interval(self, n, k):
        return self.lo[k], self.hi[k]


def _is_everything(part: Part, n: int) -> bool:
    if isinstance(part, Rect):
        return len(part.rows) == n and len(part.cols) == n
    if isinstance(part, IntervalPart):
        lo, hi = part.interval(n, np.arange(n))
        return bool((lo <= 0).all() and (hi >= n - 1).all())
    if isinstance(part, Explicit):
        return len(part.indices) == n * n
    return isinstance(part, Residue) and part.modulus == 1


def _residues_first(parts: list[Part]) -> list[Part]:
    """The finest residue class first, so that coarser ones are found to be inside it."""
    residues = sorted((p for p in parts if isinstance(p, Residue)), key=lambda p: p.modulus)
    return [*residues, *(p for p in parts if not isinstance(p, Residue))]


def _joins(found: list[tuple[np.ndarray, np.ndarray]], ends: tuple[np.ndarray, np.ndarray]) -> bool:
    """Whether the union with the interval found so far is an interval in every row."""
    if not found:
        return True
    (lo, hi), (a, b) = found[0], ends
    return bool(((np.maximum(lo, a) <= np.minimum(hi, b) + 1) & (lo <= hi) & (a <= b)).all())


def _joined(found, ends):
    if not found:
        return np.asarray(ends[0], np.int64), np.asarray(ends[1], np.int64)
    return np.minimum(found[0][0], ends[0]), np.maximum(found[0][1], ends[1])


def _progression(part: Offsets) -> int:
    """The common difference of the offsets; 0 when there is none."""
    gaps = np.diff(part.offsets)
    g = 1 if len(gaps) == 0 else int(gaps[0]) if (gaps == gaps[0]).all() else 0
    return g if g and part.offsets[0] % g == 0 else 0  # a strip sees j ≡ k, so the offsets must be multiples of g


def _span(part: Offsets, n: int) -> tuple[np.ndarray, np.ndarray]:
    """First and last token of every row's progression, clipped to the sequence without leaving the progression."""
    k, g = np.arange(n), max(_progression(part), 1)
    lo, hi = k + part.offsets[0], k + part.offsets[-1]
    lo = np.where(lo < 0, lo + -(lo // g) * g, lo)
    hi = np.where(hi > n - 1, hi - -(-(hi - (n - 1)) // g) * g, hi)
    return lo, hi


def _interval_rows(part: Explicit) -> tuple[np.ndarray, np.ndarray] | None:
    """Ends of the rows, when every row is one interval and the ends never decrease."""
    counts = np.diff(part.indptr)
    if not len(counts) or counts.min() < 1:
        return None
    lo, hi = part.indices[part.indptr[:-1]], part.indices[part.indptr[1:] - 1]
    monotone = (np.diff(lo) >= 0).all() and (np.diff(hi) >= 0).all()
    return (lo, hi) if monotone and (hi - lo + 1 == counts).all() else None


def _run_starts(part: Explicit) -> np.ndarray:
    """The rows that differ from the row before."""
    counts = np.diff(part.indptr)
    if not len(part.indices) or counts.min() < 1:
        return np.arange(len(counts))
    own = np.repeat(counts, counts)
    before = np.maximum(np.arange(len(part.indices)) - own, 0)
    same = np.logical_and.reduceat(part.indices == part.indices[before], part.indptr[:-1])
    same[1:] &= counts[1:] == counts[:-1]
    same[0] = False
    return np.flatnonzero(~same)


def _skips_less(strip: Strip) -> bool:
    """Whether anything is left of the strip after the skipping."""
    k = np.arange(len(strip.lo))
    first, count = strip.lo, np.maximum((strip.hi - strip.lo) // strip.modulus + 1, 0)
    if strip.skip % strip.modulus:
        return True
    skipped = np.where(count > 0, (strip.hi - k) // strip.skip - (first - 1 - k) // strip.skip, 0)
    return bool((skipped < count).any())


# ---- cutting --------------------------------------------------------------------------------------------------


def _columns(n: int, shared: np.ndarray, runs: list[Explicit]) -> Columns | None:
    """Column lists per run of rows; ``shared`` belongs to every run."""
    if not runs:
        return Columns(np.array([0, n]), np.array([0, len(shared)]), shared) if len(shared) else None
    starts = np.unique(np.concatenate([_run_starts(part) for part in runs]))
    lists = []
    for row in starts:
        own = [part.indices[part.indptr[row] : part.indptr[row + 1]] for part in runs]
        lists.append(np.unique(np.concatenate([shared, *own])))
    pointer = np.concatenate(([0], np.cumsum([len(x) for x in lists])))
    return Columns(np.append(starts, n), pointer, np.concatenate(lists))


def _entries(step: Step, strips: list[Strip], columns: Columns | None, full_rows: np.ndarray) -> Entries | None:
    """The entries of ``step`` that no other piece has."""
    n = step.n
    held_columns = None
    if columns is not None:  # sorted keys group·n + column, for one bisection per entry
        held_columns = np.repeat(np.arange(len(columns.starts) - 1), np.diff(columns.pointer)) * n + columns.cols
    all_counts, all_columns = np.zeros(n, np.int64), []
    bound = np.zeros(n, np.int64)
    everything = np.full(n, n - 1)
    for part in step.parts:
        bound += part.count(n, np.arange(n), np.zeros(n, np.int64), everything)
    for rows in _chunks(np.maximum(bound, 1)):
        counts, column = step.entries(rows)
        row = np.repeat(rows, counts)
        keep = ~full_rows[row]
        for strip in strips:
            keep &= ~_held(strip, row, column)
        if columns is not None and held_columns is not None:
            key = (np.searchsorted(columns.starts, row, "right") - 1) * n + column
            at = np.minimum(np.searchsorted(held_columns, key), len(held_columns) - 1)
            keep &= held_columns[at] != key
        all_counts[rows] = np.bincount(row[keep] - rows[0], minlength=len(rows))
        all_columns.append(column[keep].astype(np.int32))
    listed = np.flatnonzero(all_counts)
    if not len(listed):
        return None
    indptr = np.concatenate(([0], np.cumsum(all_counts[listed])))
    return Entries(listed, indptr, np.concatenate(all_columns))
