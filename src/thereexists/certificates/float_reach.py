"""How large can a deep network's float64 output be, on any float64 input of the box, on ramps too? On any machine.

A clamp bounds the output in exact arithmetic (``output_bound.py``). In float64 it is rounded by γ_m times the numbers
that reach it. So it is enough to bound these, crudely: r ≥ |Z_i| for all rows i, all tokens, all layers.

**Feed-forward layers.** A layer adds Σ_k w_k ReLU(a_k·z + b_k). Units with one direction a make a piecewise linear
function of t = a·z that is 0 on the far left: |h(t)| is at most its largest value at a knot plus |Σ w|·(|t| + |b|).
Quantising and value layers have Σ w = 0. Every layer is r → (1 + α) r + β, rounding included, and a chain of maps with
α, β ≥ 0 ends at most at Π(1 + α) · (r + Σ β).

**Attention.** A head gives a mean of values, so in general |Z_i| grows by Σ_h |W_O| max|v|. Along the many shifts of a
contextual mapping that would be hopeless. But there a token is shifted far only once:

*Lemma.* Let the layers of a run have two heads with the same u = W_K = W_V, W_Q = A u, opposite outputs ±κ in one row,
and edges |b/A| ≤ w for all b_Q. Put s = u·z, and call a token *gone* once |s| > 3w. While |s| ≥ 2w, both queries of the
token have the sign of s and are at least Aw/2 in size, and each head gives the largest (smallest) s that it sees but
for n/(e·Aw/2): softmax weights are at most e^(−q g) at a distance g from the largest, and g·e^(−q g) ≤ 1/(e q). The
heads cancel up to a small number a per layer, plus rounding b·S, S the size of the columns. If all layers together move
a gone token by at most w, it stays gone. So each of the n tokens is moved far at most once, by 2κ'S at most, where
κ' = κ u_i, and from |s| ≤ 3w: of L layers at most n take P = max|s| to (1 + 2κ' + b) P + 3w + …, the others to
(1 + b) P + a + ….

The proof assumes of the machine what ``float_proof.py`` does. Numbers below are rounded up by generous factors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thereexists.arithmetic.balls import Array
from thereexists.certificates.float_proof import FINITE, U, exact_sums, gamma, is_power_of_two, qualifies
from thereexists.certificates.output_bound import clamped_rows
from thereexists.core import shards
from thereexists.functions.target import Target
from thereexists.model import Attention, FeedForward, Transformer

_UP = 1 + 2.0**-20
_TINY = 2.0**-900  # more than all products that underflow add up to
_MOST_AT_ONCE = 1 << 20  # numbers of an array
_AT_ONCE = 1 << 12  # layers of attention
_MOST = 2.0**200  # so that no unit overflows, whose weights are at most 1e150


def float_output_bound(network: Transformer, target: Target) -> list[float]:
    """An upper bound of the float64 run's |output_i| over all inputs of the box, for every row i; infinity: unknown."""
    d = target.d
    if not qualifies(network):
        return [math.inf] * d
    with np.errstate(all="ignore"):
        r = _largest_number(network, target)
        last = list(network.stages.values())[-1].feed_forward
        rows = clamped_rows(network)
        if last is None or not r <= _MOST or not _heads_are_finite(network, r):
            return [math.inf] * d
        return [float((bound + _rounding(last, row, layers, r)) * _UP) for row, (bound, layers) in enumerate(rows)]


def _largest_number(network: Transformer, target: Target) -> float:
    """At least |Z_i| for every row, token and layer of the run; infinity where that is not known."""
    r = float(np.maximum(np.abs(target.low), np.abs(target.high)).max())
    r += 0.0 if network.E is None else float(np.abs(network.E.detach().numpy()).max())
    r *= _UP
    for stage in network.stages.values():
        if stage.attention is not None:
            r = _through_attention(stage.attention, stage.depth, r, target.n)
        if stage.feed_forward is not None:
            r = _through_layers(stage.feed_forward, stage.depth, r)
        shards.release(network)
    return r


def _heads_are_finite(network: Transformer, r: float) -> bool:
    """Whether no head overflows, also one whose output is weighed by 0: ∞ − ∞ in its softmax is not a number.

    ``r`` bounds the columns of every layer as long as no head before it has.
    """
    for stage in network.stages.values():
        weights = [] if stage.attention is None else [w.detach().numpy() for w in stage.attention.parameters_list()]
        for first in range(0, stage.depth if weights else 0, _AT_ONCE):
            W_Q, b_Q, W_K, W_V, W_O = (np.abs(w[first : first + _AT_ONCE]) for w in weights)
            logits = (W_Q.sum(axis=3) * r + b_Q) * (W_K.sum(axis=3) * r)  # (layers, heads, 1)
            values = W_V.sum(axis=3) * r
            if not max(np.max(x, initial=0.0) for x in (logits, values, values * W_O.max(axis=2))) <= FINITE:
                return False
        shards.release(network)
    return True


# --- feed-forward layers ---------------------------------------------------------------------------------------------


class _Layers(NamedTuple):
    """Some layers of a stack: W_1 (L, r, d), b_1 (L, r), W_2 (L, d, r), b_2 (L, d)."""

    W_1: Array
    b_1: Array
    W_2: Array
    b_2: Array

    @classmethod
    def of(cls, stack: FeedForward, first: int, stop: int) -> _Layers:
        return cls(*(w.detach().numpy()[first:stop] for w in stack.parameters_list()))

    def rounded(self) -> tuple[Array, Array]:
        """(L, d) each: rounding adds at most x·r + y to a row. In a unit, each term goes through one product, exact if
        by a power of two, and as many sums as there are terms beside the bias; in a row, through one product and one
        sum for each unit and the bias. With m of them in all, it is off by (1 + u)^m − 1 ≤ γ_m."""
        plain = (is_power_of_two(self.W_1) | (self.W_1 == 0)).all(axis=2)
        inner = np.count_nonzero(self.W_1, axis=2) + ~plain  # (L, r)
        outer = np.count_nonzero(self.W_2, axis=2) + (self.b_2 != 0) + 1.0  # (L, d)
        share = U * (inner[:, None, :] + outer[:, :, None])
        weight = share / (1 - share) * np.abs(self.W_2)  # (L, d, r)
        x = (weight * np.abs(self.W_1).sum(axis=2)[:, None, :]).sum(axis=2) + 2 * outer * U
        y = (weight * np.abs(self.b_1)[:, None, :]).sum(axis=2) + 2 * outer * U * np.abs(self.b_2) + _TINY
        return x * _UP, y * _UP


def _through_layers(stack: FeedForward, depth: int, r: float) -> float:
    """Chunk by chunk: r → Π(1 + α) · (r + Σ β)."""
    units, d = stack.parameters_list()[0].shape[1:]
    if units * units * d > _MOST_AT_ONCE:
        return math.inf
    chunk = _MOST_AT_ONCE // (units * units * d)
    for first in range(0, depth, chunk):
        alpha, beta = _growth(_Layers.of(stack, first, min(first + chunk, depth)))
        r = float(np.exp(np.log1p(alpha).sum() * _UP) * (r + beta.sum()) * _UP)
    return r


def _growth(layers: _Layers) -> tuple[Array, Array]:
    """(L,) each: α and β of every layer."""
    W_1, b_1, W_2, b_2 = layers
    same = (W_1[:, :, None, :] == W_1[:, None, :, :]).all(axis=3)  # (L, k, j): units of one direction
    first = ~np.tril(same, -1).any(axis=2)  # (L, k): one for each direction
    rise = np.maximum(b_1[:, None, :] - b_1[:, :, None], 0.0) * same  # what unit j gives at the knot of unit k
    rounded = 4 * (b_1.shape[1] + 4) * U * np.einsum("lij,lkj->lki", np.abs(W_2), rise)
    knots = np.abs(np.einsum("lij,lkj->lki", W_2, rise)) + rounded
    extreme = (same[:, :, :, None] * knots[:, None, :, :]).max(axis=2)  # (L, k, d): of the direction of unit k
    slope = exact_sums(same[:, :, None, :] * W_2[:, None, :, :])  # (L, k, d): on the far right
    length, shift = np.abs(W_1).sum(axis=2), np.where(same, np.abs(b_1)[:, None, :], 0.0).max(axis=2)  # (L, k)
    x, y = layers.rounded()
    alpha = (first[:, :, None] * slope * length[:, :, None]).sum(axis=1) + x
    beta = (first[:, :, None] * (extreme + slope * shift[:, :, None])).sum(axis=1) + np.abs(b_2) + y
    return alpha.max(axis=1) * _UP, beta.max(axis=1) * _UP


def _rounding(stack: FeedForward, row: int, layers: int, r: float) -> float:
    """What rounding adds to a row in the last layers, from its clamp on."""
    depth = len(stack.parameters_list()[0])
    x, y = _Layers.of(stack, depth - layers, depth).rounded()
    return float((x[:, row] * r + y[:, row]).sum())


# --- attention -------------------------------------------------------------------------------------------------------


class _Shift(NamedTuple):
    """A layer of the lemma's form: κ' and w, and what it must share with its neighbours."""

    factor: float
    edge: float
    A: float
    u: tuple[float, ...]
    row: int


def _through_attention(attention: Attention, depth: int, r: float, n: int) -> float:
    weights = [w.detach().numpy() for w in attention.parameters_list()]
    run: list[_Shift] = []
    for layer in range(depth):
        W_Q, b_Q, W_K, W_V, W_O = (w[layer] for w in weights)
        alive = W_O.any(axis=(1, 2))
        if not alive.any():
            continue
        shift = _as_shift(*(w[alive] for w in (W_Q, b_Q, W_K, W_V, W_O)))
        if shift is not None and (not run or (run[0].u, run[0].row) == (shift.u, shift.row)):
            run.append(shift)
            continue
        r, run = _through_shifts(run, r, n), [] if shift is None else [shift]
        if shift is None:
            r = _through_heads(W_V[alive], W_O[alive], r, n)
    return _through_shifts(run, r, n)


def _through_heads(W_V: Array, W_O: Array, r: float, n: int) -> float:
    """Means of values, whatever the weights: |Z_i| + Σ_h |W_O| |W_V|·r, and rounding."""
    values = np.abs(W_V[:, 0]).sum(axis=1) * r  # (heads,)
    m = gamma(2 * n + W_V.shape[2] + len(W_V) + 16)
    return float((r + (np.abs(W_O[:, :, 0]) * values[:, None]).sum(axis=0).max()) * (1 + 4 * m) * _UP + _TINY)


def _as_shift(W_Q: Array, b_Q: Array, W_K: Array, W_V: Array, W_O: Array) -> _Shift | None:
    if len(W_Q) != 2 or (W_O[0] != -W_O[1]).any() or np.count_nonzero(W_O[0]) != 1:
        return None
    u, row = W_V[0, 0], int(W_O[0, :, 0].argmax() if W_O[0].max() > 0 else W_O[0, :, 0].argmin())
    if u[row] == 0 or any((w[:, 0] != u).any() for w in (W_K, W_V)):
        return None
    A = float(W_Q[0, 0, row] / u[row])
    if not (A > 0 and is_power_of_two(np.array(A)) and (W_Q[:, 0] == A * u).all()):
        return None
    factor = abs(float(W_O[0, row, 0] * u[row])) * _UP
    return _Shift(factor, float(np.abs(b_Q).max()) / A, A, tuple(u.tolist()), row)


def _through_shifts(run: list[_Shift], r: float, n: int) -> float:
    """The lemma; where it does not apply, one layer after the other."""
    if not run:
        return r
    u, row, L = np.array(run[0].u), run[0].row, len(run)
    kappa, A = max(shift.factor for shift in run), min(shift.A for shift in run)
    size = float(np.abs(u).sum()) * r * _UP  # |s| at the beginning
    w = max(shift.edge for shift in run) or size
    others = (float(np.abs(u).sum()) - abs(float(u[row]))) * r * _UP  # Σ |u_i Z_i| over the rows that stay as they are
    g = 4 * gamma(2 * n + 2 * len(u) + 24)
    # A head is within n (7 g S + 0.38/η) of the extreme it looks for, η = A w/2, S = P + 2·others; two heads, twice.
    a = 1.52 * n * kappa / (A * w) * _UP
    b = g * (17 * n * kappa + 1)
    far = 2.01 * kappa + b
    most = max(size, 3 * w) + L * (a + 2 * b * others) + n * (3 * w + a + 2 * far * others)
    most = float(most * np.exp((L * b + n * np.log1p(far)) * _UP) * _UP)
    seen = g * (2 * others + 3 * w) <= w / 2  # the sign of a query, rounded, at |s| ≥ 2w
    stays = L * (a + b * (most + 2 * others)) <= w
    if seen and stays:
        return max(r, (most + others) / abs(float(u[row])) * _UP)
    for shift in run:  # both heads, whatever they look at
        others = float(np.abs(u).sum()) * r
        r = (r + 2 * shift.factor / abs(float(u[row])) * others) * (1 + g) * _UP + _TINY
    return r
