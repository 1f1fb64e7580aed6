"""Tile tables for the Triton kernels: which rows a program takes, and which keys it must look at. Pure arithmetic.

A *row tile* is ten int32: first row, number of rows, base of the class, then four positions along the class (start,
whole, part, stop: keys in [whole, part) belong to every row of the tile and need no mask), two bounds into the column
list, and the bound up to which the columns need no mask. A *key tile* is five: first key, number of keys, base, and the
range of rows (positions) that may see it. Both use that the ends of a strip never decrease within a class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thereexists.attention.lower import Columns, Lowered, Strip


@dataclass(frozen=True, eq=False)
class Launch:
    """One launch over row tiles: a strip, or listed columns, or both; and what the columns must leave out."""

    strip: Strip | None
    columns: Columns | None
    outside: Strip  # columns exclude what this strip holds
    skip: int

    @cached_property
    def own(self) -> bool:
        """The strip is {k} for every row k, and columns ride along: it then leaves out what is listed there."""
        k = np.arange(len(self.outside.lo))
        s = self.strip
        return (
            s is not None and self.columns is not None and not s.skip and bool((s.lo == k).all() and (s.hi == k).all())
        )

    @cached_property
    def step(self) -> int:
        """The common difference of the listed columns, where all rows share one arithmetic progression; else 0."""
        if self.columns is None or len(self.columns.starts) > 2 or len(self.columns.cols) < 2:
            return 0
        gaps = np.diff(self.columns.cols)
        return int(gaps[0]) if (gaps == gaps[0]).all() else 0

    @property
    def modulus(self) -> int:
        return self.strip.modulus if self.strip is not None else 1


def launches(lowered: Lowered) -> list[Launch]:
    """Columns ride along with the window's launch, where there is one: their rows are tiled the same way."""
    n = lowered.n
    nothing = Strip(1, np.ones(n, np.int64), np.zeros(n, np.int64))
    whole = [s for s in lowered.strips if _is_class(s, lowered)]
    others = [s for s in lowered.strips if s not in whole]
    out = [Launch(s, None, nothing, 0) for s in whole]
    skip = whole[0].modulus if whole else 0
    for strip in others:
        rides = lowered.columns if strip.modulus == 1 else None
        out.append(Launch(strip, rides, strip, strip.skip))
    if lowered.columns is not None and not any(launch.columns for launch in out):
        outside = next(iter(others), nothing)
        out.append(Launch(None, lowered.columns, outside, skip))
    return out


def _is_class(strip: Strip, lowered: Lowered) -> bool:
    """A whole residue class with m > 1: columns exclude it by ``skip``, every other strip by its ends."""
    k = np.arange(lowered.n)
    last = k if lowered.causal else np.full(lowered.n, lowered.n - 1)
    return strip.modulus > 1 and bool((strip.lo == k % strip.modulus).all() and (strip.hi == last).all())


def row_tiles(launch: Launch, n: int, causal: bool, block_m: int, block_n: int) -> np.ndarray:
    m = launch.modulus
    cuts = launch.columns.starts if launch.columns is not None else np.array([0, n])
    row0, rows, base, length = _class_tiles(n, m, block_m) if m > 1 else _cut_tiles(cuts, block_m, n)
    out = np.zeros((len(row0), 10), np.int64)
    out[:, 0], out[:, 1], out[:, 2] = row0, rows, base
    last_row = row0 + (rows - 1) * m
    if launch.strip is not None:
        lo, hi = launch.strip.lo, launch.strip.hi
        start = np.clip(-((base - lo[row0]) // m), 0, length)
        stop = np.clip((hi[last_row] - base) // m + 1, start, length)
        latest = np.clip(-((base - lo[last_row]) // m), 0, length)
        earliest = (hi[row0] - base) // m + 1
        whole = start + -(-(latest - start) // block_n) * block_n
        part = start + np.maximum(np.minimum(earliest, stop) - start, 0) // block_n * block_n
        none = part <= whole
        out[:, 3], out[:, 6] = start, stop
        out[:, 4], out[:, 5] = np.where(none, stop, whole), np.where(none, stop, part)
    if launch.columns is not None:
        columns = launch.columns
        group = np.searchsorted(columns.starts, row0, "right") - 1
        key = np.repeat(np.arange(len(columns.starts) - 1), np.diff(columns.pointer)) * n + columns.cols
        out[:, 7], out[:, 8] = columns.pointer[group], columns.pointer[group + 1]
        free = np.full(len(row0), n)  # columns before this one belong to every row of the tile
        if causal:
            out[:, 8] = np.searchsorted(key, group * n + last_row, "right")  # later columns belong to no row
            free = row0 + 1
        if not launch.own:
            lowest = np.minimum.reduceat(np.where(launch.outside.lo > launch.outside.hi, n, launch.outside.lo), row0)
            free = np.minimum(free, lowest)
        if launch.skip:
            free = np.zeros_like(free)
        whole = np.searchsorted(key, group * n + np.minimum(free, n - 1) + (free >= n), "left")
        out[:, 9] = out[:, 7] + np.maximum(np.minimum(whole, out[:, 8]) - out[:, 7], 0) // block_n * block_n
    return out.astype(np.int32)


def key_tiles(strip: Strip, n: int, block_n: int) -> np.ndarray:
    m = strip.modulus
    key0, keys, base, _ = _class_tiles(n, m, block_n)
    out = np.zeros((len(key0), 5), np.int64)
    out[:, 0], out[:, 1], out[:, 2] = key0, keys, base
    last = key0 + (keys - 1) * m
    bounds = np.searchsorted(base, np.arange(min(m, n) + 1))
    for r in range(min(m, n)):
        here = slice(bounds[r], bounds[r + 1])
        out[here, 3] = np.searchsorted(strip.hi[r::m], key0[here], "left")
        out[here, 4] = np.searchsorted(strip.lo[r::m], last[here], "right")
    return out.astype(np.int32)


def column_runs(columns: Columns, n: int, causal: bool, block_n: int, rows: int = 2048) -> np.ndarray:
    """(first row, last row + 1, first column, last column + 1): blocks of columns against runs of rows."""
    out = []
    for g in range(len(columns.starts) - 1):
        r = np.arange(columns.starts[g], columns.starts[g + 1], rows)
        c = np.arange(columns.pointer[g], columns.pointer[g + 1], block_n)
        r0, c0 = (x.ravel() for x in np.meshgrid(r, c, indexing="ij"))
        r1, c1 = np.minimum(r0 + rows, columns.starts[g + 1]), np.minimum(c0 + block_n, columns.pointer[g + 1])
        if causal:
            r0 = np.maximum(r0, columns.cols[c0])
        out.append(np.stack([r0, r1, c0, c1], axis=1)[r0 < r1])
    return np.concatenate(out).astype(np.int32)


def _class_tiles(n: int, m: int, block: int) -> tuple[np.ndarray, ...]:
    """First member, size, class and class length of every tile; tiles of one class are neighbours."""
    r = np.arange(min(m, n))
    length = (n - 1 - r) // m + 1
    tiles = -(-length // block)
    cls = np.repeat(r, tiles)
    first = (np.arange(len(cls)) - np.repeat(np.cumsum(tiles) - tiles, tiles)) * block
    length = np.repeat(length, tiles)
    return cls + first * m, np.minimum(block, length - first), cls, length


def _cut_tiles(cuts: np.ndarray, block: int, n: int) -> tuple[np.ndarray, ...]:
    """Tiles of consecutive rows that never cross a cut."""
    tiles = -(-np.diff(cuts) // block)
    start = np.repeat(cuts[:-1], tiles)
    first = start + (np.arange(len(start)) - np.repeat(np.cumsum(tiles) - tiles, tiles)) * block
    size = np.minimum(block, np.repeat(cuts[1:], tiles) - first)
    return first, size, np.zeros_like(first), np.full_like(first, n)
