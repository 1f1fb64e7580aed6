"""The SwiGLU half of a layer: it composes the fetched map with the own one and removes both, with every error bounded.

Unit k gives silu(g·x̂)(h·x̂), x̂ the normalised rows. Two kinds of unit are understood.

*Clearing.* The gate reads the constant only and is at least 128: silu is the identity there, and the unit is linear. It
reads one map row, gives it back with weight −1, and all its weights are powers of two: in bfloat16 not a bit is lost.

*And.* The other factor reads the constant only. The gate reads one fetched row x, one own row y and the constant, and
with the rows' errors it is at most −128 in the three cases that x AND y is false: the unit is exactly 0. Where both
are 1 it is at least 128 (or at most −128) and the unit is linear. The units of a pair (x, y) together must give 1 to
the row that is their product, and their slopes in x and in y must cancel: then errors of x and y are forgotten, and all
that is left is rounding. (2x + 2y − 5/2 and 2x + 2y − 7/2 do that.)

At most one pair of a product's pairs is true at once: its fetched rows exclude each other, and those of its own rows
that stand with the same fetched row do. So the new row is 0 or 1 with the errors of one pair of units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.certificates.automaton_maps import Maps
from thereexists.certificates.llama.rounding import SATURATED, SLACK, Rounding, sums
from thereexists.core.errors import NotProved
from thereexists.functions.target import Array


@dataclass(frozen=True)
class Rows:
    """Where everything stands in the residual stream; what is behind ``fetched`` is 0 and free."""

    own: slice
    fetched: slice
    constant: int = 0
    first: int = 1
    done: int = 2

    @classmethod
    def of(cls, maps: Maps) -> Rows:
        return cls(slice(3, 3 + maps.own), slice(3 + maps.own, 3 + maps.own + maps.fetched))


@dataclass(frozen=True)
class Errors:
    """By how much a row may differ from its bit: where that is 1, and where it is 0."""

    own_on: float
    own_off: float
    fetched_on: float
    fetched_off: float

    def normalised(self, slip: float) -> Errors:
        """The same of normalised rows, in units of what a bit is then."""
        on, off = self.own_on, self.fetched_on
        return Errors(
            on + slip * (1 + on), self.own_off * (1 + slip), off + slip * (1 + off), self.fetched_off * (1 + slip)
        )


@dataclass(frozen=True)
class Scale:
    """What a normalised row is: the constant gives ``top`` = √d, a bit ``bit`` = √d/C, each within ``slip``."""

    top: float
    bit: float
    slip: float


@dataclass(frozen=True)
class Gates:
    """The three matrices of a layer, in float64: (r, d), (r, d), (d, r)."""

    gate: Array
    up: Array
    down: Array


def is_power(x: Array) -> Array:
    """Whether numbers are powers of two, up to the sign."""
    return np.abs(np.frexp(x)[0]) == 0.5


def composed(gates: Gates, maps: Maps, scale: Scale, errors: Errors, rounding: Rounding) -> Errors:
    """The errors of the rows after the layer, or ``NotProved`` with what is wrong with a unit."""
    rows = Rows.of(maps)
    data = np.r_[rows.own, rows.fetched]
    outside = np.setdiff1d(np.arange(len(gates.down)), data)
    if gates.down[outside].any():
        raise NotProved(f"row {outside[gates.down[outside].any(axis=1)][0]} is written, which holds no map.")
    marks = [rows.first, rows.done]
    if gates.gate[:, marks].any() or gates.up[:, marks].any():
        raise NotProved("a unit reads the first token's mark or the answer's.")
    used = gates.down.any(axis=0) & gates.up.any(axis=1)
    reads_gate, reads_up = (W[:, data].any(axis=1) for W in (gates.gate, gates.up))
    clearing, ands = used & ~reads_gate & reads_up, used & reads_gate & ~reads_up
    if (strange := used & ~clearing & ~ands).any():
        raise NotProved(f"unit {int(strange.argmax())} is neither a gate of two rows nor a cleared row.")
    lost = _cleared(gates, np.flatnonzero(clearing), data, scale, rounding)
    made = _products(gates, np.flatnonzero(ands), maps, scale, errors, rounding)
    u, x = rounding.u, 1 + max(errors.own_on, errors.own_off)
    # old + round(−old + new): where nothing is lost and the new bit is 0, the two are each other's negative.
    gone = 0.0 if lost == 0 else (lost + u) * (1 + u) + sums(2)
    terms = sums(made.units + 1) * (made.sizes + x)
    on = made.error + lost * x + terms + u * (1 + made.error + x) + u * (1 + made.error + lost * x + u)
    fetched = 1 + max(errors.fetched_on, errors.fetched_off)
    return Errors(on * SLACK, x * gone * SLACK, np.inf, fetched * gone * SLACK)


def _cleared(gates: Gates, unit: Array, data: Array, scale: Scale, rounding: Rounding) -> float:
    """By which part of itself a row survives; every map row has one unit of its own, which gives it weight −1."""
    gate, up, down = gates.gate[unit], gates.up[unit], gates.down[:, unit]
    single = ((up != 0).sum(axis=1) == 1).all() and ((down != 0).sum(axis=0) == 1).all()
    row = (up != 0).argmax(axis=1)
    if not single or sorted(row.tolist()) != data.tolist():
        raise NotProved("a map row is not cleared by one unit of its own.")
    if (down[row, np.arange(len(unit))] == 0).any():
        raise NotProved("a unit that clears a row writes into another.")
    if ((gate != 0).sum(axis=1) != 1).any() or (gate[:, 0] * scale.top * (1 - scale.slip) < SATURATED).any():
        raise NotProved("the gate of a unit that clears a row is not open.")
    numbers = (gate[:, 0], up[np.arange(len(unit)), row], down[row, np.arange(len(unit))])
    if not all(is_power(x).all() for x in numbers):
        raise NotProved("the weights of a unit that clears a row are not powers of two.")
    if (numbers[0] * scale.top * numbers[1] * scale.bit * numbers[2] != -1).any():
        raise NotProved("a unit does not clear its row exactly.")
    slip = scale.slip
    return 0.0 if slip == 0 else (1 + slip) ** 2 * (1 + rounding.u) - 1


@dataclass(frozen=True)
class _Made:
    """Of the units of a pair whose rows are 1: the error of their sum, the sum of their sizes, how many they are."""

    error: float
    sizes: float
    units: int


def _products(gates: Gates, unit: Array, maps: Maps, scale: Scale, errors: Errors, rounding: Rounding) -> _Made:
    rows, u = Rows.of(maps), rounding.u
    gate, up, down = gates.gate[unit], gates.up[unit], gates.down[:, unit]
    reads_own, reads_fetched = (gate[:, part] != 0 for part in (rows.own, rows.fetched))
    if (reads_own.sum(axis=1) != 1).any() or (reads_fetched.sum(axis=1) != 1).any():
        raise NotProved("a gate does not read one own row and one fetched row.")
    a, b = reads_fetched.argmax(axis=1), reads_own.argmax(axis=1)
    wanted = {(x, y): z for x, y, z in zip(*(part.tolist() for part in maps.products()), strict=True)}
    made = np.array([wanted.get(pair, -1) for pair in zip(a.tolist(), b.tolist(), strict=True)], dtype=np.int64)
    if (made < 0).any() or len(set(zip(a.tolist(), b.tolist(), strict=True))) != len(wanted):
        raise NotProved("the gates are not those of the products of the rows, each of them.")
    _exclude(maps)
    each = np.arange(len(unit))
    if ((down != 0).sum(axis=0) != 1).any() or (down[rows.own.start + made, each] == 0).any():
        raise NotProved("a gate writes elsewhere than into its product.")
    if not is_power(up[:, 0]).all() or (np.delete(up, 0, axis=1) != 0).any():
        raise NotProved("the other factor of a gate is not a power of two of the constant.")
    x, y, c = gate[each, rows.fetched.start + a], gate[each, rows.own.start + b], gate[:, 0]
    x, y, c = x * scale.bit, y * scale.bit, c * scale.top
    seen = errors.normalised(scale.slip)
    e_x, e_y = max(seen.fetched_on, seen.fetched_off), max(seen.own_on, seen.own_off)
    sizes = np.abs(x) * (1 + e_x) + np.abs(y) * (1 + e_y) + np.abs(c) * (1 + scale.slip)
    slip = np.abs(x) * e_x + np.abs(y) * e_y + np.abs(c) * scale.slip + sums(3) * sizes
    slip = (slip + u * sizes) * SLACK
    for case in (c, c + x, c + y):
        if (case + slip > -SATURATED).any():
            raise NotProved("a gate is not shut where one of its rows is 0.")
    on = c + x + y
    open_, shut = on - slip >= SATURATED, on + slip <= -SATURATED
    if not (open_ | shut).all():
        raise NotProved("a gate is neither open nor shut where both of its rows are 1.")
    weight = np.where(open_, down[rows.own.start + made, each] * up[:, 0] * scale.top, 0.0)
    pair = np.unique(a * maps.own + b, return_inverse=True)[1].reshape(-1)

    def per_pair(terms: Array) -> Array:
        return np.bincount(pair, terms, minlength=len(wanted))

    if (per_pair(weight * on) != 1).any():
        raise NotProved("the gates of two rows that are 1 do not add up to 1.")
    if per_pair(weight * x).any() or per_pair(weight * y).any():
        raise NotProved("the gates of two rows pass their errors on.")
    largest = np.abs(on) + slip
    roundings = (1 + u) ** 3 * (1 + scale.slip) * (1 + sums(1)) - 1  # of the gate, the factor and their product
    error = np.abs(weight) * (np.abs(c) * scale.slip + sums(3) * sizes + largest * roundings)
    total, terms = per_pair(error), per_pair(np.abs(weight) * largest * (1 + roundings))
    return _Made(float(total.max()) * SLACK, float(terms.max()) * SLACK, int(np.bincount(pair).max()))


def _exclude(maps: Maps) -> None:
    """Of the pairs that make a row, at most one is true."""
    a, b, c = maps.products()
    own, fetched = (np.unique(group, return_inverse=True)[1].reshape(-1) for group in maps.groups())
    rows = np.unique(np.column_stack([c, fetched[a]]), axis=0)
    pairs = np.unique(np.column_stack([c, a, own[b]]), axis=0)
    if len(rows) != len(np.unique(c)) or len(pairs) != len(np.unique(c * maps.fetched + a)):
        raise NotProved("two pairs that make the same row may be true at once.")
