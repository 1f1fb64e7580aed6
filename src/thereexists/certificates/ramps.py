"""What of the domain lies off the cores of the cubes, and what d_p therefore says of a single input: little.

d_p is an integral over the domain. A network may be far from f on the ramps between the cells and keep a small d_p:
they are a small share of all inputs, stated here, and every bound on d_p that is printed says so.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from thereexists.arithmetic.balls import Array
from thereexists.certificates.units import ROUNDED_UP
from thereexists.functions.grid import Grid

MARGIN_SHARE = 2.0**-10


def core_margins(grid: Grid) -> tuple[Array, Array]:
    """How far the core stays from the lower and the upper end of a cell at most: (d,) each."""
    spare = grid.ramp * MARGIN_SHARE
    return spare, grid.ramp + spare


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


def d_p_in_words(p: float, share: float | None = None, everywhere: bool = False) -> str:
    """What d_p is, and what it is not; ``share`` of the domain lies on ramps; ``everywhere``: f and g are 0 outside."""
    over = "all of R^{d×n}, where both are 0 outside the domain" if everywhere else "the domain"
    if p == 1:
        what = f"d_1 is the integral of ‖f − g‖ over {over}, its average times the volume"
    else:
        what = f"d_{p:g} is (∫ ‖f − g‖^{p:g})^(1/{p:g}) over {over}, a mean times volume^(1/{p:g})"
    where = "" if share is None else f", at most {_about(share)} of the domain,"
    return f"{what}: single inputs on ramps between cells{where} can be far off"


def uniform_in_words(most: float, share: float) -> str:
    """A bound at every single input but some."""
    if share >= 1:
        return "no bound for single inputs: the cubes whose error is known are no part of the domain worth naming"
    return (
        f"at most {float(most):.6g} at every entry in exact arithmetic, for all inputs but a share of {_about(share)}"
    )


def _about(share: float) -> str:
    return f"{float(share):.2g}" if share < 0.1 else f"{float(share):.1%}"
