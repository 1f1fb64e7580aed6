"""Ranges of blocks: what is done, what is missing, and how the rest is cut. A block is the smallest unit of work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from thereexists.core.errors import BadWitnessFile


@dataclass(frozen=True, order=True)
class Range:
    """The blocks ``first … stop−1``."""

    first: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.first


def missing(done: Iterable[Range], total: int) -> list[Range]:
    """The gaps that the finished ranges leave in ``0 … total−1``. Ranges that overlap or lie outside are refused."""
    gaps, covered = [], 0
    for part in sorted(done):
        if not 0 <= part.first < part.stop <= total:
            raise BadWitnessFile(f"The chunk of the blocks {part.first} to {part.stop} does not lie in 0 to {total}.")
        if part.first < covered:
            raise BadWitnessFile(
                f"Two chunks hold the block {part.first} (one of them is {part.first} to {part.stop}): "
                "a block must be counted once. Remove the job's folder to start afresh."
            )
        if part.first > covered:
            gaps.append(Range(covered, part.first))
        covered = part.stop
    if covered < total:
        gaps.append(Range(covered, total))
    return gaps


def cut(gaps: Iterable[Range], size: int, total: int) -> list[Range]:
    """The gaps cut along one fixed raster: chunk 0 is block 0 alone (it is measured), then ``size`` blocks each.

    The raster is the same in every run of a job, so a chunk that another run left half done is done again whole, and
    never overlaps one that is finished.
    """
    edges = {0, 1, total, *range(1, total, size)}
    return [
        Range(first, stop)
        for gap in gaps
        for first, stop in pairwise(sorted({gap.first, gap.stop, *(e for e in edges if gap.first < e < gap.stop)}))
    ]
