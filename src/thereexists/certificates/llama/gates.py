"""The SwiGLU half of a layer: it adds the ANDs of pairs of rows and removes rows, with every error bounded.

Unit k gives silu(g·x̂)(h·x̂), x̂ the normalised rows. Two kinds of unit are understood.

*Clearing.* The gate reads the constant only and is at least 128: silu is the identity there, and the unit is linear. It
reads one row, gives it back with weight −1, and all its weights are powers of two: in bfloat16 not a bit is lost.

*And.* The other factor reads the constant only. The gate reads some rows, all with the same positive weight, and the
constant. With the rows' errors it is at most −128 where one of them is 0, and still less where more are: the unit is
exactly 0. Where all are 1 it is at least 128 (or at most −128) and the unit is linear. (128 is a number of every dtype,
so no rounding to the nearest leads across it.) The units of the same rows together must give 1 to each row that these
make, and their slopes must cancel: then errors of what is read are forgotten, and all that is left is rounding.
(2x + 2y − 5/2 and 2x + 2y − 7/2 do that.)

At most one of the sets of rows that make a row is true at once (``Circuit.exclusive``). So a row gets 0 or 1, with the
errors of the units of one set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.certificates.llama.circuit import BITS, CONSTANT, CircuitLayer
from thereexists.certificates.llama.rounding import SATURATED, SLACK, STEP, Rounding, sums
from thereexists.core.errors import NotProved
from thereexists.functions.target import Array


@dataclass(frozen=True)
class Errors:
    """By how much every row of the circuit may differ from its bit: where that is 1, and where it is 0."""

    on: Array
    off: Array

    @property
    def most(self) -> Array:
        return np.maximum(self.on, self.off)

    def normalised(self, slip: float) -> Errors:
        """The same of normalised rows, in units of what a bit is then."""
        return Errors(self.on + slip * (1 + self.on), self.off * (1 + slip))


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


def gated(gates: Gates, layer: CircuitLayer, scale: Scale, errors: Errors, rounding: Rounding) -> Errors:
    """The errors of the rows after the layer, or ``NotProved`` with what is wrong with a unit."""
    bits = slice(BITS, BITS + len(errors.on))
    outside = np.ones(len(gates.down), dtype=bool)
    outside[bits] = False
    if gates.down[outside].any():
        raise NotProved(f"row {int((outside & gates.down.any(axis=1)).argmax())} is written, which holds no bit.")
    marks = slice(CONSTANT + 1, BITS)
    if gates.gate[:, marks].any() or gates.up[:, marks].any():
        raise NotProved("a unit reads the first token's mark or the answer's.")
    used = gates.down.any(axis=0) & gates.up.any(axis=1)
    reads_gate, reads_up = (W[:, bits].any(axis=1) for W in (gates.gate, gates.up))
    clearing, ands = used & ~reads_gate & reads_up, used & reads_gate & ~reads_up
    if (strange := used & ~clearing & ~ands).any():
        raise NotProved(f"unit {int(strange.argmax())} is neither a gate of two rows nor a cleared row.")
    lost = _cleared(gates, np.flatnonzero(clearing), layer, scale, rounding)
    made = _products(gates, np.flatnonzero(ands), layer, scale, errors, rounding)
    u, x = rounding.u, 1 + errors.most
    cleared, written = np.zeros(len(x), dtype=bool), made.error >= 0
    cleared[layer.cleared] = True
    error = np.maximum(made.error, 0.0)
    # Cleared: old + round(−old + new). Where nothing is lost and the new bit is 0, the two are each other's negative.
    gone = 0.0 if lost == 0 else (lost + u) * (1 + u) + sums(2)
    terms = sums(made.units + 1) * (made.sizes + x)
    fresh = error + lost * x + terms + u * (1 + error + x) + u * (1 + error + lost * x + u)
    # Kept: old + round(new), the old bit being 0 where the new one is 1; and old + 0 is old.
    beside = errors.off + error + sums(made.units) * made.sizes + 2 * u * (1 + error + errors.off + u)
    on = np.where(cleared, fresh, np.where(written, np.maximum(errors.on, beside), errors.on))
    off = np.where(cleared, x * gone, errors.off)
    return Errors(np.where(cleared & ~written, off, on) * SLACK, off * SLACK)


def _cleared(gates: Gates, unit: Array, layer: CircuitLayer, scale: Scale, rounding: Rounding) -> float:
    """By which part of itself a row survives; every cleared row has one unit of its own, which gives it weight −1."""
    gate, up, down = gates.gate[unit], gates.up[unit], gates.down[:, unit]
    single = ((up != 0).sum(axis=1) == 1).all() and ((down != 0).sum(axis=0) == 1).all()
    row, each = (up != 0).argmax(axis=1), np.arange(len(unit))
    if not single or sorted(row.tolist()) != sorted((BITS + layer.cleared).tolist()):
        raise NotProved("a row is not cleared by one unit of its own, or one is that must not be.")
    if (down[row, each] == 0).any():
        raise NotProved("a unit that clears a row writes into another.")
    if ((gate != 0).sum(axis=1) != 1).any() or (gate[:, 0] * scale.top * (1 - scale.slip) < SATURATED).any():
        raise NotProved("the gate of a unit that clears a row is not open.")
    numbers = (gate[:, CONSTANT], up[each, row], down[row, each])
    if not all(is_power(x).all() for x in numbers):
        raise NotProved("the weights of a unit that clears a row are not powers of two.")
    if (numbers[0] * scale.top * numbers[1] * scale.bit * numbers[2] != -1).any():
        raise NotProved("a unit does not clear its row exactly.")
    slip = scale.slip
    return 0.0 if slip == 0 else (1 + slip) ** 2 * (1 + rounding.u) - 1


@dataclass(frozen=True)
class _Made:
    """Of every row (−1 where no pair makes it): the error of a pair's units, their sizes; how many a pair has."""

    error: Array
    sizes: Array
    units: int


def _products(
    gates: Gates, unit: Array, layer: CircuitLayer, scale: Scale, errors: Errors, rounding: Rounding
) -> _Made:
    B, u = len(errors.on), rounding.u
    gate, up, down = gates.gate[unit], gates.up[unit], gates.down[BITS : BITS + B, unit]
    bits = gate[:, BITS : BITS + B]
    reads, w = bits != 0, bits.max(axis=1, initial=0.0)
    if not np.array_equal(bits, reads * w[:, None]):
        raise NotProved("a gate does not read its rows with one positive weight.")
    if not is_power(up[:, CONSTANT]).all() or (np.delete(up, CONSTANT, axis=1) != 0).any():
        raise NotProved("the other factor of a gate is not a power of two of the constant.")
    count, w, c = reads.sum(axis=1), w * scale.bit, gate[:, CONSTANT] * scale.top
    seen = reads @ errors.normalised(scale.slip).most  # of all that a unit reads
    sizes = w * (count + seen) + np.abs(c) * (1 + scale.slip)
    summed = np.abs(c) * scale.slip + (count + 3) * STEP * sizes
    slip = (w * seen + summed) * SLACK
    if (c + w * (count - 1) + slip > -SATURATED).any():
        raise NotProved("a gate is not shut where one of its rows is 0.")
    on = c + w * count
    opened, shut = on - slip >= SATURATED, on + slip <= -SATURATED
    if not (opened | shut).all():
        raise NotProved("a gate is neither open nor shut where all of its rows are 1.")
    # One entry for each unit and each row that it writes; entries of the same set and row belong together.
    z, k = np.nonzero(down)
    of_unit, of_layer = _numbered(reads, layer.reads)
    keys, together = np.unique(of_unit[k] * B + z, return_inverse=True)
    if not np.array_equal(keys, np.unique(of_layer * B + layer.z)):
        raise NotProved("the gates are not those of the circuit, each of them, with the rows they make.")
    weight = np.where(opened[k], down[z, k] * up[k, CONSTANT] * scale.top, 0.0)

    def added(terms: Array) -> Array:
        return np.bincount(together, terms, minlength=len(keys))

    if (added(weight * on[k]) != 1).any():
        raise NotProved("the gates of rows that are all 1 do not add up to 1.")
    if added(weight * w[k]).any():
        raise NotProved("the gates of the same rows pass their errors on.")
    largest = np.abs(on) + slip
    roundings = (1 + u) ** 3 * (1 + scale.slip) * (1 + sums(1)) - 1  # of the gate, the factor and their product
    error = np.abs(weight) * (summed + largest * roundings)[k]
    total, size = added(error), added(np.abs(weight) * (largest * (1 + roundings))[k])
    found, most = np.full(B, -1.0), np.zeros(B)
    np.maximum.at(found, keys % B, total * SLACK)
    np.maximum.at(most, keys % B, size * SLACK)
    return _Made(found, most, int(np.bincount(together, minlength=1).max()))


def _numbered(reads: Array, rows: Array) -> tuple[Array, Array]:
    """Numbers for sets of rows, equal sets the same: of the units (units, B), and of the circuit's (k, most)."""
    wanted = np.zeros((len(rows), reads.shape[1] + 1), dtype=bool)
    wanted[np.arange(len(rows))[:, None], rows] = True  # −1 is the column behind the last
    packed = np.packbits(np.concatenate([reads, wanted[:, :-1]]), axis=1)
    number = np.unique(packed, axis=0, return_inverse=True)[1].reshape(-1)
    return number[: len(reads)], number[len(reads) :]
