"""Theorem 1 on all of R^{d×n}: layers that make the network exactly 0 as soon as one entry leaves the box.

Statement (Yun et al. 2020, Theorem 1, for an equivariant f that is 0 outside the box [low, high]). With 2d + 1 layers
before the quantiser and 1 + ⌈d/4⌉ before the value layers, all of T^{2,1,4}, g(X) = 0 for *every* X with an entry of a
token at or beyond an end of the box, and nothing changes for the entries that keep a ramp's width η from both ends.

    shift    Z += S, S_i = c_i/2 with c_i a power of two, at least 4·max(|low_i|, |high_i|): the box lies in [c/4, 3c/4]
    cap      Z_i += ReLU(−Z_i) − ReLU(Z_i − c_i)       for every i: entries outside [0, c] go to its ends
    jump     Z_i += (J_i/η)(ReLU(Z_i − H + η) − ReLU(Z_i − H) + ReLU(L + η − Z_i) − ReLU(L − Z_i)) − S_i
             with H = high + S and L = low + S: entries beyond an end of the box rise by J_i, those inside keep their
             place; in between, on the inner side of each end, lies a ramp of width η
    …        quantise and context as ever
    outside  Z −= s·ReLU(u^T Z − θ), then Z_i += ReLU(−Z_i): a column with an id above θ becomes exactly 0

Proof. All entries are at least the box's origin after the jumps, and stay so through the quantiser; a column with an
entry outside has an id of at least M' = 2A + 2K units, A = K^n l_max being the largest id that the selective shifts
give inside the box. A selective shift never lowers an id, whatever the ids are: the mean of the ids under the softmax
of t·ids grows with t, and its two heads differ by a constant in t. So before the global shift the largest id is at
least M'. The global shift gives C times that, less C·n/t, to every token: all ids are above θ = 3/2·A(C + 1), which no
id of the box reaches, by a fifth of themselves and more. So s = 8 makes every row negative, and the next layers make it
0. The column 0 carries the id 0, that of a sequence whose tokens all lie in the first cell: n ≥ 2 equal columns, whose
value is 0.  ∎  ``certificates/support.py`` proves it again from the weights alone.

Why so many layers. In float64 a residual layer sends x = 1e300 to a·x, a its slope there: constants are lost beside x.
With slope 0 it is x − ReLU(x − c), which is c, or 0 or 2c when c is lost in x, as c is a power of two; from below it is
exactly 0. That is why the box is first moved into [c/4, 3c/4], away from all three. The shift rounds x to c·2^-53, far
below a ramp, and is undone exactly. One layer for cap and jump would multiply 1e300 by J/η and overflow.

Deviations: the paper's d guard layers send entries outside to −δ^{-nd}; here they go up, because the largest id reaches
all tokens by the global shift that is there anyway.

Positions. With an encoding E this is impossible: g(X) = h(X + E) with an equivariant h, so g(P(X + E) − E) = P g(X),
and for a permutation P that moves E this is an input outside the box with the value P g(X) ≠ 0.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import torch

from thereexists.constructions.faithful.selective_shift import global_factor
from thereexists.core.errors import CannotBuild
from thereexists.core.plain_text import in_full
from thereexists.functions.grid import Grid
from thereexists.model import FeedForward, Stage

WIDTH = 4
_PUSH = 8.0  # more than 5: ids above θ are so by a fifth of themselves
_SPARE = 2.0**-10  # of a ramp: what the shift may round


def layer_counts(grid: Grid) -> dict[str, int]:
    """Layers before the quantiser and before the value layers; none where the box is not guarded."""
    return {"guard": 2 * grid.d + 1, "outside": 1 + -(-grid.d // WIDTH)} if grid.low else {}


def refuse_unguarded(grid: Grid) -> None:
    """Refuse what cannot be 0 outside its box."""
    if not grid.low:
        return
    if grid.positional:
        raise CannotBuild(
            "No network with a positional encoding E is 0 outside a box: g(P(X + E) − E) is P times g(X), for every "
            "permutation P. State that f is equivariant, if it is (Theorem 1), or choose --construction "
            "compact, which keeps positions in rows of their own."
        )
    if grid.n == 1:
        raise CannotBuild(
            "The guard layers answer 0 by the id of equal columns, and a single token has none. Choose --construction "
            "compact, or n of at least 2."
        )
    for i in range(grid.d):
        if _cap(grid, i) * 2.0**-53 > grid.ramp[i] * _SPARE:
            raise CannotBuild(
                f"The box [{in_full(grid.low[i])}, {in_full(grid.high[i])}] lies too far from 0 for its cells of "
                f"{in_full(grid.step[i])}: "
                "float64 cannot tell its ends from the ramps beside them. Move it towards 0 or choose a coarser grid."
            )


def guard(grid: Grid) -> Stage:
    """shift, cap and jump: (2d + 1) layers, which leave the core of the box as it is."""
    d = grid.d
    W_1, b_1, W_2, b_2 = _zeros(2 * d + 1, d)
    shift = np.array([_cap(grid, i) / 2 for i in range(d)])
    b_2[0] = shift
    for i in range(d):
        cap, jump = 1 + i, 1 + d + i
        W_1[cap, :2, i], b_1[cap, 1], W_2[cap, i, :2] = (-1.0, 1.0), -_cap(grid, i), (1.0, -1.0)
        eta, slope = grid.ramp[i], _jump(grid, i) / grid.ramp[i]
        H, L = _float_below(Fraction(grid.high[i]) + Fraction(shift[i])), _float_above(grid.low[i], shift[i])
        W_1[jump, :, i], b_1[jump] = (1.0, 1.0, -1.0, -1.0), (eta - H, -H, L + eta, L)
        W_2[jump, i] = (slope, -slope, slope, -slope)
        b_2[jump, i] = -shift[i]
    return _stage(W_1, b_1, W_2, b_2)


def outside(grid: Grid) -> Stage:
    """Columns with ids above θ become exactly 0; all others stay as they are, every row of theirs being at least 0."""
    d = grid.d
    W_1, b_1, W_2, b_2 = _zeros(layer_counts(grid)["outside"], d)
    W_1[0, 0], b_1[0, 0] = grid.u, -1.5 * _largest_shifted(grid) * (global_factor(grid) + 1) * grid.unit
    W_2[0, :, 0] = [-_PUSH * _power_from(max(Fraction(1), 1 / Fraction(u))) for u in grid.u.tolist()]
    for i in range(d):
        layer, unit = 1 + i // WIDTH, i % WIDTH
        W_1[layer, unit, i], W_2[layer, i, unit] = -1.0, 1.0
    return _stage(W_1, b_1, W_2, b_2)


def _cap(grid: Grid, i: int) -> float:
    """c_i."""
    return float(_power_from(4 * max(abs(Fraction(grid.low[i])), abs(Fraction(grid.high[i])))))


def _jump(grid: Grid, i: int) -> float:
    """J_i: an entry that rose by it has an id of at least M', whatever the others are; a power of two."""
    ids = Fraction(2 * _largest_shifted(grid) + 2 * grid.K) * Fraction(grid.unit) / Fraction(float(grid.u[i]))
    return float(_power_from(ids + Fraction(_cap(grid, i)) / 2 + abs(Fraction(grid.origin[i]))))


def _largest_shifted(grid: Grid) -> int:
    """A = K^n l_max, in units."""
    return grid.K**grid.n * grid.max_column_id


def _power_from(x: Fraction) -> Fraction:
    """The smallest power of two that is at least x > 0."""
    power = Fraction(2) ** (math.ceil(x).bit_length() if x > 1 else 0)
    while power / 2 >= x:
        power /= 2
    return power


def _float_below(x: Fraction) -> float:
    value = float(x)
    return value if Fraction(value) <= x else float(np.nextafter(value, -np.inf))


def _float_above(low: float, shift: float) -> float:
    return -_float_below(-(Fraction(low) + Fraction(shift)))


def _zeros(depth: int, d: int) -> tuple[np.ndarray, ...]:
    return np.zeros((depth, WIDTH, d)), np.zeros((depth, WIDTH)), np.zeros((depth, d, WIDTH)), np.zeros((depth, d))


def _stage(*weights: np.ndarray) -> Stage:
    W_1, b_1, W_2, b_2 = (torch.from_numpy(w) for w in weights)
    return Stage(feed_forward=FeedForward(W_1, b_1, W_2, b_2))
