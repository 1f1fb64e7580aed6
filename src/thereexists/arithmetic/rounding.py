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

Rules 1 to 3 and 7 are in ``dtype_sums.py``, rule 4 in ``rounding_hinges.py``, rules 5 and 6 here.

Inputs are numbers of the dtype, anywhere in the box; of symbols, which are numbered, whole numbers: that is their
quantum, and most of what follows is then exact. Weights of more than 26 bits count as off by 2^-52, relatively
(``program/weights.py``). Products in TF32 are not covered.

Everything here is itself computed in float64, and rounded outward (``outward.py``): an end of an interval moves away
from it wherever float64 rounds, and a bound on an error never shrinks. So every interval holds what it claims to hold;
one that came out empty, or an error below 0, would be a fault of these files, and is refused as *not proved*.
"""

from __future__ import annotations

import numpy as np
import torch

from thereexists.arithmetic.dtype_sums import NO_QUANTUM, Arithmetic, State, quantum
from thereexists.arithmetic.outward import enlarged, own_error, product_up, sum_down, sum_up
from thereexists.arithmetic.rounding_hinges import feed_forward
from thereexists.core.errors import CannotBuild
from thereexists.functions.target import Array
from thereexists.model import EmbeddedTransformer

ONE_HOT = 800.0


def rounding_bound(network: EmbeddedTransformer, low: Array, high: Array, name: str, whole: bool = False) -> Array:
    """Largest |computed − exact| of every output, (n, outputs), for all inputs of the box ``low``, ``high`` (d,).

    ``whole``: for those only whose numbers are whole.
    """
    arithmetic = Arithmetic(name)
    weights = {key: tensor.detach().to(torch.float64).numpy() for key, tensor in network.state_dict().items()}
    n, d_model = weights["E"].shape
    box = [np.broadcast_to(end, (n, len(low))) for end in (_outward(low, -1.0), _outward(high, 1.0))]
    if not float(np.abs(box).max(initial=0.0)) <= arithmetic.max / 4:  # though it is never read: 0 times it is NaN
        raise CannotBuild(f"An input of this network may overflow in {name}.")
    nothing = np.zeros((n, len(low)))
    given = arithmetic.with_quantum(
        State(box[0], box[1], nothing, np.full(nothing.shape, 1.0 if whole else NO_QUANTUM))
    )
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
            state = feed_forward(
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
    flushed = arithmetic.flushed(product_up(below_Q, K.largest.T) + product_up(Q.largest, below_K.T))
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
