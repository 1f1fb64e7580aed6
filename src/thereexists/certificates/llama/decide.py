"""A table as gates: a decision tree over rows, of which every path from the top is one AND.

An axis of the table is a *digit*, a group of rows of which at most one is 1, or the *position*, cut into runs, whose
question is "before the token t, or not", two rows that exclude each other. At a node a tree asks one axis; so the next
rows of two paths that begin alike are rows of one group, and two paths are never 1 together, whatever stands in the
rows: that is what ``CircuitLayer.exclusive`` looks at. A digit may be right in some runs of positions only, ``where``;
it is asked after the position then, in those runs. So where the digits are right exactly one path is 1. ∎
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.core.errors import NotProved
from thereexists.functions.target import Array

Path = tuple[int, ...]


@dataclass(frozen=True)
class Digit:
    """Index k along the axis is row ``rows[k]``; ``where``: in which runs of the axis ``position`` that is right."""

    rows: tuple[int, ...]
    where: tuple[bool, ...] = ()
    position: int = 0

    def known(self, indices: list[Array]) -> bool:
        return not self.where or all(self.where[run] for run in indices[self.position].tolist())

    def asked(self, indices: Array) -> list[tuple[int, Array]]:
        return [(self.rows[k], indices[place : place + 1]) for place, k in enumerate(indices.tolist())]


@dataclass(frozen=True)
class Runs:
    """Index k along the axis is the k-th run of positions; ``edges[k]`` are the rows "before run k + 1" and "not"."""

    edges: tuple[tuple[int, int], ...]

    def known(self, indices: list[Array]) -> bool:
        return True

    def asked(self, indices: Array) -> list[tuple[int, Array]]:
        half = len(indices) // 2
        before, after = self.edges[int(indices[half]) - 1]
        return [(before, indices[:half]), (after, indices[half:])]


def paths(table: Array, axes: list[Digit | Runs]) -> list[tuple[Path, int]]:
    """Every path with the entry that it leads to; entries below 0 do not matter."""
    found: list[tuple[Path, int]] = []
    waiting: list[tuple[Path, list[Array]]] = [((), [np.arange(size) for size in table.shape])]
    while waiting:
        path, indices = waiting.pop()
        here = table[np.ix_(*indices)] if axes else table
        entry = _only(here)
        if entry is not None:
            found += [(path, entry)] if entry >= 0 else []
            continue
        open_ones = [a for a in range(len(axes)) if len(indices[a]) > 1 and axes[a].known(indices)]
        if not open_ones:
            raise NotProved("a table asks for a token that was not fetched.")
        axis = min(open_ones, key=lambda a: _cost(here, axes[a], a, indices))
        for row, part in axes[axis].asked(indices[axis]):
            waiting.append(((*path, row), [*indices[:axis], part, *indices[axis + 1 :]]))
    return found


def _only(part: Array) -> int | None:
    """The one entry that matters, −1 if none does, None if there are several."""
    entries = part[part >= 0]
    if not entries.size:
        return -1
    return int(entries.flat[0]) if (entries == entries.flat[0]).all() else None


def _cost(here: Array, axis: Digit | Runs, a: int, indices: list[Array]) -> tuple[int, int]:
    """What would be left open by asking an axis, and by how many ways."""
    start, left, ways = 0, 0, axis.asked(indices[a])
    for _, part in ways:
        rest = here.take(range(start, start + len(part)), axis=a)
        start += len(part)
        left += 0 if _only(rest) is not None else rest.size
    return left, len(ways)
