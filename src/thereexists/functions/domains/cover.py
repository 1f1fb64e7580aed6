"""Which cells of a grid may meet a domain: all are tried, but a box of many cells that misses it is left at once.

Claim: every point of D in the grid's box that is on no ramp lies in a cell that is found. Proof: a box of cells, less
the ramp at its upper ends, is dropped only if D does not meet it, and else cut in two, down to single cells.  ∎  A cell
that is found need not meet D: ``Domain.meets`` may say yes where it does not know. Of the ramps nothing is claimed but
their measure, whatever cells they belong to; cells that D touches there alone, as a simplex does, are left out.

Of a domain of tokens the cells of one token are found; the cubes of a sequence are all combinations of these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from thereexists.core.errors import CannotBuild
from thereexists.functions.domains.domain import Array, Domain, Each

MOST = 1 << 21  # boxes looked at together
MOST_WORK = 1 << 28  # numbers that all of them are asked with: some minutes


@dataclass(frozen=True)
class Axes:
    """N cells along every entry: where they begin, their widths, the ramps at their upper ends, where the last ends."""

    N: int
    origin: tuple[float, ...]
    step: tuple[float, ...]
    ramp: tuple[float, ...]
    high: tuple[float, ...]

    def box(self, first: Array, last: Array) -> tuple[Array, Array]:
        """The cells first … last − 1, less the ramp at their upper end; the last cell of all has none."""
        origin, step, ramp, high = (np.array(side) for side in (self.origin, self.step, self.ramp, self.high))
        return origin + first * step, np.minimum(origin + last * step - np.where(last < self.N, ramp, 0.0), high)

    def whole(self) -> Axes:
        """The same cells with their ramps."""
        return replace(self, ramp=(0.0,) * len(self.ramp))


def found_cells(domain: Domain, axes: Axes) -> Array:
    """The cells (cells, size) that may meet the domain, in the order of their numbers; the last entry is fastest."""
    if axes not in domain.covers:
        domain.covers[axes] = _searched(domain, axes)
    return domain.covers[axes]


def one_of(domain: Domain) -> tuple[Domain, int]:
    """The set that is searched, and of how many tokens: a token's set and n, or that of the sequence and 1."""
    return (domain.token, domain.count) if isinstance(domain, Each) else (domain, 1)


def _searched(domain: Domain, axes: Axes) -> Array:
    size = len(axes.origin)
    first, last = np.zeros((1, size), dtype=np.int64), np.full((1, size), axes.N, dtype=np.int64)
    while True:
        keep = domain.meets(*axes.box(first, last))
        first, last = first[keep], last[keep]
        wide = last - first
        if not len(first) or (wide.max() == 1):
            break
        if len(first) * domain.amount > MOST_WORK:
            raise CannotBuild(
                f"{domain.words()} asks {domain.amount:,} numbers of every cell, and more than {len(first):,} cells of "
                "this grid may meet it. Choose a coarser grid, or a simpler set."
            )
        if len(first) > MOST:
            raise CannotBuild(
                f"More than {MOST:,} boxes of cells may meet {domain.words()} on this grid. Choose a coarser grid."
            )
        rows, axis = np.arange(len(first)), wide.argmax(axis=1)  # the longest side is cut
        single = wide[rows, axis] == 1
        middle = (first[rows, axis] + last[rows, axis]) // 2
        lower, upper = last.copy(), first.copy()
        lower[rows, axis] = np.where(single, last[rows, axis], middle)
        upper[rows, axis] = middle
        first, last = np.concatenate([first, upper[~single]]), np.concatenate([lower, last[~single]])
    if not len(first):
        raise CannotBuild(f"No cell of this grid meets {domain.words()}: the domain is empty.")
    return first[np.lexsort(first.T[::-1])]
