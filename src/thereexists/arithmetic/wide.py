"""Enclosures of wide layers: hundreds of rows, thousands of units, where a ball for every product is too much.

A matrix product of balls is enclosed by its midpoints' float product and the radius

    |W| rad + γ (|W| |mid| + |b|),    γ = (k + 3) 2^-52, more than the rounding of k products and sums in any order,

where γ is dropped if the float product is provably exact: if all terms are multiples of one power of two q and
|W| |mid| + |b| < 2^52 q, then every partial sum is a float, whatever the order. Integers and short dyadic numbers pass.
What a few active units write is summed with exact errors (``balls.py``), so a single stored value keeps radius 0.
"""

from __future__ import annotations

import numpy as np

from thereexists.arithmetic import balls
from thereexists.arithmetic.balls import Array, Ball
from thereexists.model import Attention

_NUMBERS = 1 << 22  # entries of one tile of hidden units
_FEW = 8  # active units of a token that are summed one by one


def linear(x: Ball, W: Array, b: Array | None = None) -> Ball:
    """W x + b for every token: (tokens, d) and (r, d) -> (tokens, r)."""
    b = np.zeros(len(W)) if b is None else b
    bad = ~(np.isfinite(x.mid) & np.isfinite(x.rad))
    mid, rad = np.where(bad, 0.0, x.mid), np.where(bad, 0.0, x.rad)
    live = W.any(axis=0)
    mid, rad, W = mid[:, live], rad[:, live], W[:, live]
    size = np.abs(mid) @ np.abs(W).T + np.abs(b)
    gamma = (W.shape[1] + 3) * 2.0**-52
    quantum = np.minimum(_smallest_product(_quantum(mid).min(axis=0, initial=np.inf), W), _quantum(b))  # (r,)
    inexact = size * (1 + gamma) >= 2.0**52 * quantum
    product = mid @ W.T + b
    if rad.any() or inexact.any():
        spread = rad @ np.abs(W).T * (1 + gamma) + np.where(inexact, gamma * size, 0.0)
        vague = inexact | ((rad > 0).astype(float) @ (W != 0).T.astype(float) > 0)  # even where the spread underflows
        radius = np.where(vague, spread * (1 + 2.0**-40) + balls.TINY, 0.0)
    else:
        radius = np.zeros_like(product)
    if bad.any():
        unknown = bad[:, live].astype(float) @ (W != 0).T.astype(float) > 0
        radius = np.where(unknown, np.inf, radius)
    return _sure(Ball(product, radius))


def _sure(x: Ball) -> Ball:
    """The same balls, those of which nothing is known around 0 with an infinite radius: an exact 0 times them is 0."""
    known = np.isfinite(x.mid) & np.isfinite(x.rad)
    return x if known.all() else Ball(np.where(known, x.mid, 0.0), np.where(known, x.rad, np.inf))


def feed_forward(Z: Ball, W_1: Array, b_1: Array, W_2: Array, b_2: Array) -> Ball:
    """z + W_2 ReLU(W_1 z + b_1) + b_2 on balls (tokens, d), a tile of tokens at a time."""
    mid, rad = Z.mid.copy(), Z.rad.copy()
    step = max(1, _NUMBERS // max(len(b_1), 1))
    for start in range(0, len(mid), step):
        part = Z[start : start + step]
        update = balls.add(_written(linear(part, W_1, b_1), W_2), balls.exact(b_2))
        untouched = (b_2 == 0) & ~W_2.any(axis=1)  # rows that no unit writes stay as they are
        total = balls.add(part, update)
        mid[start : start + step] = np.where(untouched, part.mid, total.mid)
        rad[start : start + step] = np.where(untouched, part.rad, total.rad)
    return Ball(mid, rad)


def _written(before: Ball, W_2: Array) -> Ball:
    """W_2 ReLU(before): unit by unit where few can be active, else as a matrix product."""
    known = np.isfinite(before.mid) & np.isfinite(before.rad)  # of what overflowed, not even the sign is
    possible = ~(known & (before.mid <= -before.rad))  # the others are certainly ≤ 0: this comparison does not round
    token, unit = np.nonzero(possible)
    count = np.bincount(token, minlength=len(possible))
    most = int(count.max(initial=0))
    if most > _FEW:
        return linear(balls.relu(before), W_2)
    place = np.arange(len(token)) - np.repeat(np.cumsum(count) - count, count)
    hidden = balls.exact(np.zeros((len(possible), max(most, 1))))
    hidden.mid[token, place], hidden.rad[token, place] = _sure(balls.relu(before[token, unit]))
    weights = np.zeros((len(possible), len(W_2), max(most, 1)))
    weights[token, :, place] = W_2.T[unit]
    return balls.dot(balls.exact(weights), Ball(hidden.mid[:, None], hidden.rad[:, None]))


def is_uniform(attention: Attention) -> bool:
    """Zero logits, whatever the input, and nothing masked: every token attends to all tokens alike."""
    return attention.pattern is None and not any(bool(w.any()) for w in (attention.W_Q, attention.b_Q, attention.W_K))


def attention(Z: Ball, layer: Attention, index: int) -> Ball:
    """Z + Σ_heads W_O (mean over the tokens of W_V z) on balls (cubes, n, d); nothing is known of other attention."""
    cubes, n, d = Z.mid.shape
    W_V, W_O = (w.detach().numpy()[index] for w in (layer.W_V, layer.W_O))
    if not is_uniform(layer):
        written = W_O.any(axis=(0, 2))
        return Ball(Z.mid, np.where(written, np.inf, Z.rad))
    share = 1.0 / n
    mean = Ball(np.full(1, share), np.full(1, 0.0 if n & (n - 1) == 0 else share * 2.0**-52))
    tokens = Ball(Z.mid.reshape(-1, d), Z.rad.reshape(-1, d))
    result = Z
    for head in range(len(W_V)):
        V = linear(tokens, W_V[head])
        summed = balls.total(Ball(V.mid.reshape(cubes, n, -1), V.rad.reshape(cubes, n, -1)), axis=1)
        update = linear(balls.multiply(summed, mean), W_O[head])  # (cubes, d), the same for all tokens
        result = balls.add(result, Ball(update.mid[:, None], update.rad[:, None]))
    return result


def _quantum(values: Array) -> Array:
    """The largest power of two that divides a float; infinity for 0."""
    fraction, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(values == 0, np.inf, np.ldexp(lowest, exponent - 53))


def _smallest_product(column: Array, W: Array) -> Array:
    """For every unit, the smallest quantum of a product W[r, i]·x_i: (r,)."""
    products = np.where(W == 0, np.inf, _quantum(W) * np.where(np.isinf(column), 1.0, column))
    return products.min(axis=1, initial=np.inf)
