"""Sums and products in a dtype, bounded: rules 1 to 3 and 7 of ``rounding.py``, for whole arrays of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from thereexists.arithmetic.outward import enlarged, own_error, product_up, sum_down, sum_up, two_sum
from thereexists.core.dtypes import SIGNIFICAND, as_dtype
from thereexists.core.errors import CannotBuild, NotProved
from thereexists.functions.target import Array

NO_QUANTUM = 2.0**-1074


@dataclass(frozen=True)
class State:
    """Arrays (n, rows)."""

    low: Array
    high: Array
    error: Array
    quantum: Array

    @property
    def largest(self) -> Array:
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def width(self) -> Array:
        return sum_up(self.high, -self.low)


class Arithmetic:
    """One dtype: its unit roundoff, and sums in it."""

    def __init__(self, name: str):
        self.dtype = as_dtype(name)
        self.name, self.p = name, SIGNIFICAND[name]
        self.u = 2.0**-self.p
        self.accumulate = min(self.u, 2.0**-24)
        self.tiny = float(torch.finfo(self.dtype).tiny)
        self.flush = 0.0 if name == "float16" else self.tiny
        self.max = float(torch.finfo(self.dtype).max)

    def rounded(self, weights: Array) -> tuple[Array, Array]:
        """The weights in the dtype, and how far they may be from the ones that were meant."""
        stored = torch.from_numpy(np.ascontiguousarray(weights)).to(self.dtype).to(torch.float64).numpy()
        if not np.isfinite(stored).all():  # times an exact 0 it would be NaN
            raise CannotBuild(f"A weight of this network overflows in {self.name}: {np.abs(weights).max():.6g}.")
        is_long = quantum(weights) < np.abs(weights) * 2.0**-26
        long = np.abs(weights) * 2.0**-52 * is_long
        flushed = np.abs(stored) * (np.abs(stored) < self.flush)  # rule 7
        off = np.abs(stored - weights)  # exact: a multiple of the last place of the weight, and not larger than it
        return stored, enlarged(off + long + flushed, touched=is_long)

    def matmul(self, state: State, W: Array, b: Array) -> tuple[State, Array]:
        """``W`` (k, rows), ``b`` (k,): the sums, and for each what rounding (of weights too) adds to its error."""
        (W, slack_W), (b, slack_b) = self.rounded(W), self.rounded(b)
        plus, minus = np.maximum(W, 0.0).T, np.maximum(-W, 0.0).T
        low = state.low @ plus - state.high @ minus + b
        high = state.high @ plus - state.low @ minus + b
        up, down = np.maximum(state.high, 0.0), np.maximum(-state.low, 0.0)
        positive = up @ plus + down @ minus + np.maximum(b, 0.0)
        negative = down @ plus + up @ minus + np.maximum(-b, 0.0)
        q = self._sum_quantum(state.quantum, W, b)
        alive = ((state.low != 0) | (state.high != 0)).astype(np.float64)  # adding an exact 0 rounds nothing
        terms = alive @ (W != 0).astype(np.float64).T + (b != 0)
        one_product = np.array([_grows_by_power_of_two(w) for w in W]) & (terms == 1) & (b == 0)
        most, total = np.maximum(positive, negative), positive + negative
        if not float(total.max(initial=0.0)) <= self.max / 4:
            raise CannotBuild(f"A sum of this network may overflow in {self.name}.")
        ends = self._sum_quantum(np.minimum(quantum(state.low), quantum(state.high)), W, b)
        margin = np.where(one_product, 0.0, np.where(terms == 0, 0.0, own_error(2 * terms, total, ends)))
        low, high = sum_down(low, -margin), sum_up(high, margin)
        most, total = sum_up(most, margin), sum_up(total, margin)
        exact = ((most <= 2.0**self.p * q) & (q >= self.tiny)) | one_product
        rounding = enlarged((3 * self.u + (terms + 2) * self.accumulate) * total + (terms + 1) * self.tiny)
        of_weights = enlarged(product_up(state.largest, slack_W.T) + slack_b)
        rounding = enlarged(np.where(exact, 0.0, rounding) + of_weights)
        flushed = self.flushed(product_up((state.quantum < self.tiny).astype(np.float64), np.abs(W).T))
        inherited = enlarged(product_up(state.error, np.abs(W).T) + flushed)
        return self._widened(low, high, inherited, rounding, np.where(exact, q, 0.0)), enlarged(rounding + flushed)

    def flushed(self, factors: Array) -> Array:
        """Rule 7: what operands that are taken for 0 may change, if they are multiplied by ``factors``."""
        return enlarged(self.flush * factors, touched=(factors > 0) & (self.flush > 0))

    def _sum_quantum(self, quanta: Array, W: Array, b: Array) -> Array:
        """(n, k): what every product of a sum is a multiple of."""
        q = np.broadcast_to(quantum(b), (len(quanta), len(W))).copy()
        weight_quantum = quantum(W)
        for k in range(len(W)):
            read = np.flatnonzero(W[k])
            if len(read):
                q[:, k] = np.minimum(q[:, k], (quanta[:, read] * weight_quantum[k, read]).min(axis=1))
        return q

    def add(self, a: State, b: State) -> tuple[State, Array]:
        """a + b, rounded once, and that rounding. Rounding is monotone: an end that is a number of the dtype stays."""
        low, high = sum_down(a.low, b.low), sum_up(a.high, b.high)
        largest = np.maximum(np.abs(low), np.abs(high))
        if not float(largest.max(initial=0.0)) <= self.max / 4:  # even of a row that is never read: 0 times it is NaN
            raise CannotBuild(f"A row of this network may overflow in {self.name}.")
        q = np.minimum(a.quantum, b.quantum)
        zero = ((a.low == 0) & (a.high == 0)) | ((b.low == 0) & (b.high == 0))
        exact = ((largest <= 2.0**self.p * q) & (q >= self.tiny)) | zero
        mantissa, exponent = np.frexp(np.maximum(largest, self.tiny))
        half_ulp = np.ldexp(self.u, exponent - 1 - (mantissa == 0.5))  # of the binade below the largest magnitude
        below = (a.quantum < self.tiny).astype(np.float64) + (b.quantum < self.tiny)  # rule 7: operands, or the sum
        rounding, flushed = np.where(exact, 0.0, half_ulp), self.flush * below
        inherited = enlarged(a.error + b.error + flushed)
        state = self._widened(low, high, inherited, rounding, np.where(exact, q, 0.0))
        low = np.where(self._represents(low) & exact_sum(a.low, b.low), low, state.low)
        high = np.where(self._represents(high) & exact_sum(a.high, b.high), high, state.high)
        return self.with_quantum(State(low, high, state.error, state.quantum)), enlarged(rounding + flushed)

    def _widened(self, low: Array, high: Array, error: Array, rounding: Array, q: Array) -> State:
        """An interval that holds both numbers bounds their difference, too."""
        low, high = sum_down(low, -rounding), sum_up(high, rounding)
        return self.with_quantum(State(low, high, np.minimum(sum_up(error, rounding), sum_up(high, -low)), q))

    def with_quantum(self, state: State) -> State:
        """Rule 3, where it says more; and 0 for intervals that hold what may be flushed, rule 7."""
        if not ((state.low <= state.high) & (state.error >= 0)).all():  # NaN included
            raise NotProved(f"An interval of this network came out empty in {self.name}.")
        low = np.where((state.low > 0) & (state.low < self.flush), 0.0, state.low)
        high = np.where((state.high < 0) & (state.high > -self.flush), 0.0, state.high)
        state = State(low, high, state.error, state.quantum)
        least = np.maximum(np.maximum(state.low, -state.high), 0.0)
        ulp = np.where(least > 0, 2.0 ** (np.frexp(np.maximum(least, self.tiny))[1] - self.p), NO_QUANTUM)
        zero = (state.low == 0) & (state.high == 0)
        q = np.where(zero, np.inf, np.maximum(np.maximum(state.quantum, ulp), NO_QUANTUM))
        return State(state.low, state.high, state.error, q)

    def _represents(self, values: Array) -> Array:
        tensor = torch.from_numpy(np.ascontiguousarray(values))
        return (tensor.to(self.dtype).to(torch.float64) == tensor).numpy()


def exact_sum(a: Array, b: Array) -> Array:
    """Where float64 adds two numbers without rounding."""
    return two_sum(a, b)[1] == 0


def quantum(values: Array) -> Array:
    """The largest power of two that divides a float64; infinite for 0."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    return np.where(values == 0, np.inf, np.ldexp(lowest, exponent - 53))


def _grows_by_power_of_two(weights: Array) -> bool:
    used = np.abs(weights[weights != 0])
    return bool(((np.frexp(used)[0] == 0.5) & (used >= 1)).all())
