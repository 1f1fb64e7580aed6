"""How far may the network, run in a dtype, be from itself in real arithmetic? Bounded from its weights alone.

For every position and row of the residual stream, block after block: an interval that holds the exact *and* the
computed number, a bound on their difference, and a quantum: a power of two of which the computed number is a multiple.

1. **Exact sums.** Numbers that are multiples of q, with all positive terms together and all negative terms together at
   most 2^p·q, add up without rounding, in any order, with or without fused products (every partial sum is a multiple
   of q of at most 2^p·q). One product with a power of two is exact too. p is the length of the significand.
2. **Other sums** of k terms are off by at most (3u + (k + 2)·u_acc)·Σ|terms|, u = 2^-p; sums are accumulated in the
   dtype or in float32 if that is more, as all matrix products we know of do.
3. A computed number that stays away from 0 is a multiple of the unit in the last place of its smallest magnitude.
4. **Feed-forward halves.** z + Σ c_u·ReLU(f_u): two units with f and −f are c·f plus one unit, a unit with f ≤ 0 is
   closed, and for one other unit z + c·ReLU(f) = max(z, z + c·f), or min if c < 0. The error of a maximum is at most
   the larger of the two errors: this is why 55 rounds of compare-exchange do not amplify anything.
5. **Attention.** A logit that is 800 or more below another one of its row has the weight 0. If that leaves one token,
   the computed softmax is exactly one-hot; if it leaves equal logits that are computed exactly, it is a mean.
6. **Soft attention**, otherwise. Let every computed logit be within δ of the exact one; subtracting the largest adds at
   most u·(spread of the logits), or nothing if that subtraction is exact. Σ_j p_j v_j then moves by at most
   δ·(spread of v)/2 (the covariance of logit errors and values). Exponentials, their sum and the quotient are off by at
   most 4u + (n + 72)·u_acc relatively (softmax is computed in the dtype or in float32 if that is more, the exponential
   to within 32 ulps: fast ones on processors claim 20), and what underflows by the smallest normal number each.

7. **Flushed to zero.** A processor or a library may take numbers below the smallest normal one for 0, as operands and
   as results (torch.set_flush_denormal; bfloat16 products of large batches). Every operand, product and sum that is not
   known to be a multiple of a normal number is charged for that; an interval that holds such numbers holds 0. float16
   is not flushed by the machines we know (its subnormal numbers are normal ones of float32, in which it is computed);
   that is an assumption.

Inputs are numbers of the dtype, anywhere in the box. Weights of more than 26 bits count as off by 2^-52, relatively
(``program/weights.py``). Products in TF32 are not covered.

Everything here is itself computed in float64, and rounded outward (``outward.py``): an end of an interval moves away
from it wherever float64 rounds, and a bound on an error never shrinks. So every interval holds what it claims to hold;
one that came out empty, or an error below 0, would be a fault of this file, and is refused as *not proved*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from thereexists.arithmetic.outward import added, enlarged, own_error, product_up, sum_down, sum_up, two_sum
from thereexists.core.dtypes import SIGNIFICAND, as_dtype
from thereexists.core.errors import CannotBuild, NotProved
from thereexists.functions.target import Array
from thereexists.model import EmbeddedTransformer

ONE_HOT = 800.0
_NO_QUANTUM = 2.0**-1074


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
        flushed = self._flushed(product_up((state.quantum < self.tiny).astype(np.float64), np.abs(W).T))
        inherited = enlarged(product_up(state.error, np.abs(W).T) + flushed)
        return self._widened(low, high, inherited, rounding, np.where(exact, q, 0.0)), enlarged(rounding + flushed)

    def _flushed(self, factors: Array) -> Array:
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
        if not float(largest.max(initial=0.0)) <= self.max / 4:  # even of a row that nobody reads: 0 times it is NaN
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
        low = np.where(self._represents(low) & _exact_sum(a.low, b.low), low, state.low)
        high = np.where(self._represents(high) & _exact_sum(a.high, b.high), high, state.high)
        return self._with_quantum(State(low, high, state.error, state.quantum)), enlarged(rounding + flushed)

    def _widened(self, low: Array, high: Array, error: Array, rounding: Array, q: Array) -> State:
        """An interval that holds both numbers bounds their difference, too."""
        low, high = sum_down(low, -rounding), sum_up(high, rounding)
        return self._with_quantum(State(low, high, np.minimum(sum_up(error, rounding), sum_up(high, -low)), q))

    def _with_quantum(self, state: State) -> State:
        """Rule 3, where it says more; and 0 for intervals that hold what may be flushed, rule 7."""
        if not ((state.low <= state.high) & (state.error >= 0)).all():  # NaN included
            raise NotProved(f"An interval of this network came out empty in {self.name}.")
        low = np.where((state.low > 0) & (state.low < self.flush), 0.0, state.low)
        high = np.where((state.high < 0) & (state.high > -self.flush), 0.0, state.high)
        state = State(low, high, state.error, state.quantum)
        least = np.maximum(np.maximum(state.low, -state.high), 0.0)
        ulp = np.where(least > 0, 2.0 ** (np.frexp(np.maximum(least, self.tiny))[1] - self.p), _NO_QUANTUM)
        zero = (state.low == 0) & (state.high == 0)
        q = np.where(zero, np.inf, np.maximum(np.maximum(state.quantum, ulp), _NO_QUANTUM))
        return State(state.low, state.high, state.error, q)

    def _represents(self, values: Array) -> Array:
        tensor = torch.from_numpy(np.ascontiguousarray(values))
        return (tensor.to(self.dtype).to(torch.float64) == tensor).numpy()


def _exact_sum(a: Array, b: Array) -> Array:
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


def rounding_bound(network: EmbeddedTransformer, low: Array, high: Array, name: str) -> Array:
    """Largest |computed − exact| of every output, (n, outputs), for all inputs of the box ``low``, ``high`` (d,)."""
    arithmetic = Arithmetic(name)
    weights = {key: tensor.detach().to(torch.float64).numpy() for key, tensor in network.state_dict().items()}
    n, d_model = weights["E"].shape
    box = [np.broadcast_to(end, (n, len(low))) for end in (_outward(low, -1.0), _outward(high, 1.0))]
    if not float(np.abs(box).max(initial=0.0)) <= arithmetic.max / 4:  # though nobody reads it: 0 times it is NaN
        raise CannotBuild(f"An input of this network may overflow in {name}.")
    nothing = np.zeros((n, len(low)))
    given = arithmetic._with_quantum(State(box[0], box[1], nothing, np.full(nothing.shape, _NO_QUANTUM)))
    state, _ = arithmetic.matmul(given, weights["W_in"], np.zeros(d_model))
    E, slack = arithmetic.rounded(weights["E"])
    state, _ = arithmetic.add(state, State(sum_down(E, -slack), sum_up(E, slack), slack, quantum(E)))
    for stage, block in network.stages.items():
        here = {
            key.removeprefix(f"stages.{stage}."): w for key, w in weights.items() if key.startswith(f"stages.{stage}.")
        }
        if block.attention is not None:
            pattern = block.attention.pattern
            mask = None if pattern is None else pattern[0].numpy()
            parts = {k.split(".")[1]: w[0] for k, w in here.items() if "attention" in k and "pattern" not in k}
            state = _attention(arithmetic, state, parts, mask)
        if block.feed_forward is not None:
            state = _feed_forward(
                arithmetic, state, {k.split(".")[1]: w[0] for k, w in here.items() if "feed_forward" in k}
            )
    outputs, _ = arithmetic.matmul(state, weights["W_out"], np.zeros(len(weights["W_out"])))
    return outputs.error


def _outward(ends: Array, sign: float) -> Array:
    """A box that is a little larger, with short ends: intervals of short numbers are computed exactly."""
    return sign * np.ceil(sign * np.asarray(ends, dtype=np.float64) * 2.0**20) * 2.0**-20


def _attention(arithmetic: Arithmetic, state: State, weights: dict[str, Array], mask: Array | None) -> State:
    h, m, _ = weights["W_V"].shape
    parts = []
    for head in range(h):
        V, _ = arithmetic.matmul(state, weights["W_V"][head], np.zeros(m))
        Q, _ = arithmetic.matmul(state, weights["W_Q"][head], weights["b_Q"][head])
        K, _ = arithmetic.matmul(state, weights["W_K"][head], np.zeros(m))
        low, high, delta = _logits(arithmetic, Q, K)
        if mask is not None:
            low, high, delta = (np.where(mask, a, b) for a, b in ((low, -np.inf), (high, -np.inf), (delta, 0.0)))
        counts = high > sum_down(low.max(axis=1, keepdims=True), -ONE_HOT)  # always true of the largest one
        parts.append(_weighted(arithmetic, V, counts, low, high, delta, _subtract_exactly(arithmetic, Q, K)))
    joined = State(*(np.concatenate([getattr(p, k) for p in parts], axis=1) for k in State.__dataclass_fields__))
    W_O = weights["W_O"].transpose(1, 0, 2).reshape(-1, h * m)
    written, _ = arithmetic.matmul(joined, W_O, np.zeros(len(W_O)))
    return arithmetic.add(state, written)[0]


def _logits(arithmetic: Arithmetic, Q: State, K: State) -> tuple[Array, Array, Array]:
    """(n, n) each: ends of an interval that holds the exact and the computed logit, and how far apart they may be."""
    most, m = Q.largest @ K.largest.T, Q.low.shape[1]
    if not float(most.max()) <= arithmetic.max / 4:
        raise CannotBuild(f"A logit of this network may overflow in {arithmetic.name}.")
    q = _logit_quantum(Q.quantum, K.quantum)
    ends = _logit_quantum(*(np.minimum(quantum(part.low), quantum(part.high)) for part in (Q, K)))
    all_exact = float(most.max()) < 2.0**53 * ends and float(most.max()) <= 2.0**arithmetic.p * q
    if all_exact and q >= arithmetic.tiny and all(_is_point(part) for part in (Q, K)):
        logits = Q.low @ K.low.T
        return logits, logits, np.zeros(logits.shape)
    margin = own_error(float(m), most, ends)
    most = sum_up(most, margin)
    exact = (most <= 2.0**arithmetic.p * q) & (q >= arithmetic.tiny)
    rounding = enlarged((3 * arithmetic.u + (m + 2) * arithmetic.accumulate) * most + (m + 1) * arithmetic.tiny)
    below_Q, below_K = ((part.quantum < arithmetic.tiny).astype(np.float64) for part in (Q, K))
    flushed = arithmetic._flushed(product_up(below_Q, K.largest.T) + product_up(Q.largest, below_K.T))
    rounding = enlarged(np.where(exact, 0.0, rounding) + flushed)
    pairs = ((Q.largest, K.error), (Q.error, K.largest), (Q.error, K.error))
    inherited = sum(product_up(a, b.T) for a, b in pairs)
    low, high = np.zeros(most.shape), np.zeros(most.shape)
    for d in range(m):
        products = [np.outer(a[:, d], b[:, d]) for a in (Q.low, Q.high) for b in (K.low, K.high)]
        low, high = low + np.minimum.reduce(products), high + np.maximum.reduce(products)
    wider = sum_up(rounding, margin)
    return sum_down(low, -wider), sum_up(high, wider), enlarged(inherited + rounding)


def _is_point(part: State) -> bool:
    return bool((part.low == part.high).all()) and not part.error.any()


def _logit_quantum(Q: Array, K: Array) -> float:
    """What every product of every logit is a multiple of, if queries and keys are multiples of these."""
    return float((Q.min(axis=0) * K.min(axis=0)).min(initial=np.inf))


def _subtract_exactly(arithmetic: Arithmetic, Q: State, K: State) -> float:
    """Logits that differ by no more than this are subtracted without rounding."""
    q = _logit_quantum(Q.quantum, K.quantum)
    return 2.0**arithmetic.p * q if q >= arithmetic.tiny else 0.0


def _weighted(
    arithmetic: Arithmetic, V: State, counts: Array, low: Array, high: Array, delta: Array, exactly: float
) -> State:
    """Rules 5 and 6: what a head with these logits makes of the values (n, m), for every row of ``counts``."""
    best = counts.argmax(axis=1)
    flushed = arithmetic.flush * (V.quantum[best] < arithmetic.tiny)  # rule 7: one product with 1
    picked = State(V.low[best], V.high[best], enlarged(V.error[best] + flushed), V.quantum[best])
    several = np.flatnonzero(counts.sum(axis=1) > 1)
    if not len(several):
        return picked
    parts = [np.array(getattr(picked, k)) for k in State.__dataclass_fields__]
    rows, which = np.unique(counts[several], axis=0, return_inverse=True)
    for number, row in enumerate(rows):
        here = several[which.reshape(-1) == number]
        n, some = int(row.sum()), State(*(getattr(V, k)[row] for k in State.__dataclass_fields__))
        lows, highs, off = low[np.ix_(here, row)], high[np.ix_(here, row)], delta[np.ix_(here, row)].max(axis=1)
        equal = (highs == lows[:, :1]).all(axis=1) & (lows == lows[:, :1]).all(axis=1) & (off == 0)
        for group, mean in ((here[equal], True), (here[~equal], False)):
            if not len(group):
                continue
            if mean:
                found = _mean(arithmetic, some)
            else:
                spread = sum_up(highs.max(axis=1), -lows.min(axis=1))[~equal]
                shift = enlarged(off[~equal] + np.where(spread <= exactly, 0.0, arithmetic.u * spread))
                found = _soft(arithmetic, some, n, shift)
            for part, key in zip(parts, State.__dataclass_fields__, strict=True):
                part[group] = getattr(found, key)
    return State(*parts)


def _mean(arithmetic: Arithmetic, V: State) -> State:
    """Every weight is 1/n, rounded; n products, their sum, and its rounding. One row (1, m)."""
    n = len(V.low)
    low, high, error, largest = (a.mean(axis=0, keepdims=True) for a in (V.low, V.high, V.error, V.largest))
    own = np.where(V.largest.any(axis=0), own_error(n, largest, 0.0), 0.0)  # of our own means
    low, high, largest = sum_down(low, -own), sum_up(high, own), sum_up(largest, own)
    rounding = (4 * arithmetic.u + (n + 4) * arithmetic.accumulate) * largest + (n + 2) * arithmetic.tiny
    rounding = np.where(largest == 0, 0.0, enlarged(rounding))
    error = enlarged(error, n, np.asarray(V.error.any(axis=0, keepdims=True)))
    return arithmetic._widened(low, high, error, rounding, np.zeros(low.shape))


def _soft(arithmetic: Arithmetic, V: State, n: int, shift: Array) -> State:
    """Rule 6 for rows with logits off by at most ``shift`` (rows,): (rows, m)."""
    bottom, top = V.low.min(axis=0), V.high.max(axis=0)
    largest, error = V.largest.max(axis=0), V.error.max(axis=0)
    weights = 4 * arithmetic.u + (n + 72) * arithmetic.accumulate  # relative, of every weight
    sums = 3 * arithmetic.u + (n + 2) * arithmetic.accumulate
    relative = (weights + sums) * (1.0 + weights)
    spread = sum_up(top, -bottom)
    moved = np.minimum(enlarged(shift[:, None] * spread / 2, touched=shift[:, None] * np.sign(spread) > 0), spread)
    outside = enlarged(relative * largest + 2 * n * arithmetic.tiny * np.maximum(largest, 1.0))
    outside = np.broadcast_to(np.where(largest == 0, 0.0, outside), moved.shape)
    low, high, error = (np.broadcast_to(a, moved.shape) for a in (bottom, top, error))
    state = arithmetic._widened(low, high, error, outside, np.zeros(moved.shape))
    error = np.minimum(enlarged(error + moved + outside), state.width)
    return State(state.low, state.high, error, state.quantum)


def _feed_forward(arithmetic: Arithmetic, state: State, weights: dict[str, Array]) -> State:
    W_1, b_1, W_2, b_2 = (weights[k] for k in ("W_1", "b_1", "W_2", "b_2"))
    f, f_rounding = arithmetic.matmul(state, W_1, b_1)
    closed = f.high <= 0
    high = np.maximum(f.high, 0.0)
    hidden = State(np.maximum(f.low, 0.0), high, np.minimum(f.error, high), np.where(closed, np.inf, f.quantum))
    f_rounding = np.where(closed, 0.0, f_rounding)
    written, rounding = arithmetic.matmul(hidden, W_2, b_2)
    plain, last = arithmetic.add(state, written)
    rounding = enlarged(rounding + last + product_up(f_rounding, np.abs(arithmetic.rounded(W_2)[0]).T))
    low, high, error = plain.low.copy(), plain.high.copy(), plain.error.copy()
    for row in np.flatnonzero(W_2.any(axis=1)).tolist():
        line, units = _folded(W_1, b_1, W_2[row], float(b_2[row]), row)
        tight = _hinge(state, hidden, line, units, W_1, b_1)
        r = rounding[:, row]
        low[:, row] = np.maximum(low[:, row], sum_down(tight[0], -r))
        high[:, row] = np.minimum(high[:, row], sum_up(tight[1], r))
        error[:, row] = np.minimum(error[:, row], sum_up(tight[2], r))
    return arithmetic._with_quantum(State(low, high, np.minimum(error, sum_up(high, -low)), plain.quantum))


@dataclass(frozen=True)
class Line:
    """Coefficients of the rows, the last one of 1, as float64; each is off by at most ``off`` from what is meant."""

    coefficients: Array
    off: Array

    @classmethod
    def of(cls, w: Array, b: float) -> Line:
        return cls(np.append(w, b), np.zeros(len(w) + 1))

    def plus(self, c: float, other: Line) -> Line:
        """One more multiple of a line that is not off."""
        return Line(*added(self.coefficients, self.off, c, other.coefficients))


def _folded(W_1: Array, b_1: Array, c: Array, b_2: float, row: int) -> tuple[Line, list[tuple[int, float]]]:
    """z_row + Σ c_u ReLU(f_u) + b_2 as a line and units: c·ReLU(f) + e·ReLU(−f) = c·f + (c + e)·ReLU(−f).

    Two units whose c + e is no float64 stay two units.
    """
    line = Line.of(np.eye(1, W_1.shape[1], row)[0], b_2)
    seen: dict[bytes, int] = {}
    units: dict[int, float] = {}
    for u in np.flatnonzero(c):
        key = (-W_1[u] + 0.0).tobytes() + np.float64(-b_1[u] + 0.0).tobytes()
        opposite = seen.pop(key, None)
        if opposite is None or not _exact_sum(np.array([units[opposite]]), c[[u]]).all():
            seen[(W_1[u] + 0.0).tobytes() + np.float64(b_1[u] + 0.0).tobytes()] = int(u)
            units[int(u)] = float(c[u])
            continue
        first = units.pop(opposite)
        line = line.plus(first, Line.of(W_1[opposite], float(b_1[opposite])))
        if first + c[u] != 0.0:
            units[int(u)] = first + float(c[u])
    return line, list(units.items())


def _hinge(
    state: State, hidden: State, line: Line, units: list[tuple[int, float]], W_1: Array, b_1: Array
) -> tuple[Array, Array, Array]:
    """Interval and inherited error of line + Σ c·ReLU(f), rule 4 applied to each unit in turn, the best of all."""
    low, high, error = _form(state, line)
    if not units:
        return low, high, error
    which, c_all = [u for u, _ in units], np.array([c for _, c in units])
    below, above = (f(c_all * hidden.low[:, which], c_all * hidden.high[:, which]) for f in (np.minimum, np.maximum))
    wrong = enlarged(np.abs(c_all) * hidden.error[:, which], touched=hidden.error[:, which] != 0)
    all_below, all_above, all_wrong = (part.sum(axis=1) for part in (below, above, wrong))
    size = np.maximum(np.abs(below), np.abs(above)).sum(axis=1)
    short = np.minimum(quantum(hidden.low[:, which]), quantum(hidden.high[:, which])) * quantum(c_all)
    own = own_error(float(len(units)), size, short.min(axis=1)) * (len(units) > 1)  # x − x is 0 in any arithmetic
    own = np.where(size + hidden.high[:, which].sum(axis=1) == 0, 0.0, own)
    own_wrong = np.where(all_wrong != 0, own_error(float(len(units)), all_wrong, 0.0), 0.0) * (len(units) > 1)
    lows, highs, errors = [], [], []
    for k, (u, c) in enumerate(units):
        other = _form(state, line.plus(c, Line.of(W_1[u], float(b_1[u]))))
        larger = np.maximum if c > 0 else np.minimum
        shut, open_ = hidden.high[:, u] <= 0, hidden.low[:, u] > 0
        one_low = np.where(shut, low, np.where(open_, other[0], larger(low, other[0])))
        one_high = np.where(shut, high, np.where(open_, other[1], larger(high, other[1])))
        one_error = np.where(shut, error, np.where(open_, other[2], np.maximum(error, other[2])))
        lows.append(sum_down(one_low, sum_down(all_below - below[:, k], -own)))
        highs.append(sum_up(one_high, sum_up(all_above - above[:, k], own)))
        rest = np.maximum(all_wrong - wrong[:, k], 0.0)
        errors.append(enlarged(one_error + rest + own_wrong))
    found = _along_one_line(state, line, units, W_1, b_1)
    for bounds, one in zip((lows, highs, errors), found or ((), (), ()), strict=True):
        bounds += [one] if found else []
    return np.max(lows, axis=0), np.min(highs, axis=0), np.min(errors, axis=0)


def _along_one_line(
    state: State, line: Line, units: list[tuple[int, float]], W_1: Array, b_1: Array
) -> tuple[Array, Array, Array] | None:
    """If all units read the same s, or −s: rest + h(s), h piecewise linear; its ends, and its largest slope × error.

    h is a sum of k + 1 products of at most 2·(|c| + |α|)·(|s| + |b|), three roundings each: ``own_error`` of 8·k terms.
    """
    w = W_1[units[0][0]]
    signs = [1.0 if np.array_equal(W_1[u], w) else -1.0 if np.array_equal(W_1[u], -w) else 0.0 for u, _ in units]
    if 0.0 in signs or not w.any():
        return None
    pivot = int(np.abs(w).argmax())
    alpha = float(line.coefficients[pivot] / w[pivot])
    if not np.isfinite(alpha):
        return None
    rest = line.plus(-alpha, Line.of(w, 0.0))  # whatever α is, this is what remains
    c, sign, b = np.array([c for _, c in units]), np.array(signs), np.array([b_1[u] for u, _ in units])
    s_low, s_high, s_error = _form(state, Line.of(w, 0.0))
    ends, position = np.unique(np.stack([s_low, s_high], axis=1), axis=0, return_inverse=True)
    points = np.clip(-b / sign, ends[:, :1], ends[:, 1:])  # (ranges, units): the breakpoints
    points = np.concatenate([points, ends], axis=1)
    h = alpha * points
    for c_u, sign_u, b_u in zip(c, sign, b, strict=True):
        h += c_u * np.maximum(sign_u * points + b_u, 0.0)
    steep = np.abs(c).sum() + abs(alpha)
    margin = own_error(8.0 * len(c), 2 * steep * (np.abs(points).max() + np.abs(b).max()), 0.0)
    left = alpha - c[sign < 0].sum()  # far on the left; at its break every unit, open or closing, adds c
    slopes = np.concatenate([[left], left + np.cumsum(c[np.argsort(-b / sign, kind="stable")])])
    low, high, error = _form(state, rest)
    where = position.reshape(-1)
    steepest = np.abs(slopes).max() + own_error(8.0 * len(c), 2 * steep, 0.0)
    low = sum_down(low, sum_down(h.min(axis=1)[where], -margin))
    high = sum_up(high, sum_up(h.max(axis=1)[where], margin))
    return low, high, enlarged(error + steepest * s_error, touched=s_error != 0)


def _form(state: State, line: Line) -> tuple[Array, Array, Array]:
    """Interval and inherited error of a line over the rows."""
    linear, constant = line.coefficients[:-1], line.coefficients[-1]
    plus, minus = np.maximum(linear, 0.0), np.maximum(-linear, 0.0)
    low = state.low @ plus - state.high @ minus + constant
    high = state.high @ plus - state.low @ minus + constant
    total = state.largest @ (plus + minus) + abs(constant)
    used = linear != 0
    ends = np.minimum(quantum(state.low[:, used]), quantum(state.high[:, used])) * quantum(linear[used])
    shortest = np.minimum(ends.min(axis=1, initial=np.inf), quantum(np.array(constant)))
    margin = own_error(2.0 * used.sum() + 2, total, shortest)
    size = plus + minus
    if line.off.any():
        margin = sum_up(margin, enlarged(product_up(state.largest, line.off[:-1]) + line.off[-1]))
        size = sum_up(size, line.off[:-1])
    return sum_down(low, -margin), sum_up(high, margin), product_up(state.error, size)
