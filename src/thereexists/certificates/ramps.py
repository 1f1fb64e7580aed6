"""What of the domain lies off the cores of the cubes, and what d_p therefore says of a single input: little.

d_p is an integral over the domain. A network may be far from f on the ramps between the cells and keep a small d_p:
they are a small share of all inputs, stated here, and every bound on d_p that is printed says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from thereexists.arithmetic.balls import Array
from thereexists.certificates.units import ROUNDED_UP, Units
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_up, share_rounded_up
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target

MARGIN_SHARE = 2.0**-10


def core_margins(grid: Grid) -> tuple[Array, Array]:
    """How far the core stays from the lower and the upper end of a cell at most: (d,) each."""
    spare = grid.ramp * MARGIN_SHARE
    return spare, grid.ramp + spare


def core_ends(grid: Grid, digits: Array) -> tuple[Array, Array]:
    """Where the cores of cells begin and end, entry by entry; the cells by their numbers on each axis (…, d)."""
    lower, upper = core_margins(grid)
    edge = np.array(grid.origin) + digits * np.array(grid.step)
    low = edge + lower
    end = np.minimum(edge + np.array(grid.step), np.array(grid.high))
    high = np.where(digits == grid.N - 1, end - lower, edge + np.array(grid.step) - upper)  # the last cell has no ramp
    if grid.low:  # but where the box is guarded: both ends of it have one, inside
        low = np.where(digits == 0, np.array(grid.low) + upper, low)
        high = np.where(digits == grid.N - 1, np.array(grid.high) - upper, high)
    return low, high


def off_core_share(widths: Array, grid: Grid) -> float:
    """At most, of the volume of a domain of these widths (d,): the two margins of every cell, entry by entry."""
    lower, upper = core_margins(grid)
    margins = grid.N * (lower + upper)
    if grid.low:  # the last cell has a ramp too, the first has two; the ends of the box are rounded by less than that
        margins = margins + upper + 2 * lower
    share = grid.n * (margins / widths).sum()
    return float(min(share, 1.0)) * ROUNDED_UP


def equal_column_share(widths: Array, grid: Grid) -> float:
    """At most, of the domain's volume: the cubes in which two tokens lie in one cell; each may overhang the domain."""
    if grid.positional:
        return 0.0
    share = 1 - Fraction(math.prod(grid.K - i for i in range(grid.n)), grid.K**grid.n)
    overhang = (grid.N * np.array(grid.step) / widths).prod() ** grid.n
    return float(min(float(share) * overhang * ROUNDED_UP, 1.0))


@dataclass(frozen=True)
class Extent:
    """The measure of the domain, ``whole`` at least; of its part off the cores; of its largest cube; and the shares of
    the domain that the parts off the cores, and with two tokens in one cell, are at most. ``least``: at most the
    domain's measure."""

    whole: float
    off_core: float
    cube: float
    off_core_share: float
    equal_share: float
    least: float

    def share(self, measure: float) -> float:
        """Of the domain, at most."""
        return measure / self.least * ROUNDED_UP if self.least > 0 else (1.0 if measure else 0.0)


def extent(target: Target, grid: Grid, units: Units) -> Extent:
    """In the given units; on a domain that is not a box they are plain."""
    if grid.domain is not None:
        return _extent(grid)
    widths = target.high - target.low
    whole, share = units.volume(widths, grid.n), off_core_share(widths, grid)
    cube = units.volume(np.array(grid.step), grid.n)
    return Extent(whole, share * whole, cube, share, equal_column_share(widths, grid), whole)


def _extent(grid: Grid) -> Extent:
    """Of a domain that is not a box: what lies off the cores lies, in some entry, in a slab between the end of one
    core and the beginning of the next, before the first or after the last.

    The slabs of one token (or of the sequence) reach over its whole box; the other tokens are anywhere in the domain.
    """
    part, count, low, high = grid.covered()
    each = part.measure(low, high)
    entries = low.shape[1]
    low_core, high_core = core_ends(grid, np.repeat(np.arange(grid.N)[:, None], grid.d, axis=1))  # (N, d)
    ends = [np.tile(end, ((grid.N + 1) * entries, 1)) for end in part.ends]
    rows, entry = np.arange(len(ends[0])), np.repeat(np.arange(entries), grid.N + 1)
    of_entry = np.tile(np.arange(grid.d), entries // grid.d)
    begins = np.vstack([part.ends[0], high_core[:, of_entry]]).T.ravel()  # N + 1 of every entry
    ends[0][rows, entry] = begins
    ends[1][rows, entry] = np.maximum(np.vstack([low_core[:, of_entry], part.ends[1]]).T.ravel(), begins)
    slabs = math.fsum(part.measure(*ends).tolist())
    whole = min(math.fsum(each.tolist()) + slabs, part.mass) * ROUNDED_UP  # cells met on ramps alone are not covered
    off_core = min(count * slabs * whole ** (count - 1), whole**count) * ROUNDED_UP
    equal = 0.0 if grid.positional else math.comb(count, 2) * float((each**2).sum()) * whole ** max(count - 2, 0)
    least = part.least(low, high) ** count / ROUNDED_UP
    found = Extent(whole**count * ROUNDED_UP, off_core, float(each.max()) ** count * ROUNDED_UP, 1.0, 1.0, least)
    return replace(found, off_core_share=min(found.share(off_core), 1.0), equal_share=min(found.share(equal), 1.0))


def d_p_in_words(p: float, share: float | None = None, everywhere: bool = False) -> str:
    """What d_p is, and what it is not; ``share`` of the domain lies on ramps; ``everywhere``: f and g are 0 outside."""
    over = "all of R^{d×n}, where both are 0 outside the domain" if everywhere else "the domain"
    if p == 1:
        what = f"d_1 is the integral of ‖f − g‖ over {over}, its average times the volume"
    else:
        p_ = in_full(float(p))
        what = f"d_{p_} is (∫ ‖f − g‖^{p_})^(1/{p_}) over {over}, a mean times volume^(1/{p_})"
    where = "" if share is None else f", at most {share_rounded_up(share)} of the domain,"
    return f"{what}: single inputs on ramps between cells{where} can be far off"


def uniform_in_words(most: float, share: float) -> str:
    """A bound at every single input but some."""
    if share >= 1:
        return "no bound for single inputs: the cubes whose error is known may cover none of the domain"
    return (
        f"at most {rounded_up(float(most), 6)} at every entry in exact arithmetic, for all inputs but a share of "
        f"{share_rounded_up(share)}"
    )
