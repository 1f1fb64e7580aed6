"""Numba kernels: one half-layer after the other past a tile of tokens, and sweeps that jump by bisection.

Every kernel computes a half-layer in one stated order, no product contracted into a sum (Numba does not, without
fastmath): t_i = (Σ_k W_1[i,k] z_k) + b_1[i], then z_k + ((Σ_i W_2[k,i] φ(t_i)) + b_2[k]), sums from left to right; in
attention the keys from left to right, then the heads. So a sweep has the bits of the plain run on every network.

Kernels leave out what adds 0 to columns of at most LARGEST_COLUMN. Each returns how many columns it left that are not.
"""

from __future__ import annotations

import math
from typing import no_type_check

import numpy as np

from thereexists.core.compiled import njit
from thereexists.evaluate._parts import LARGEST_COLUMN, LEAST_TAU

TILE = 512
HARDMAX, SOFTMAX, SPARSEMAX, ENTMAX15 = 0, 1, 2, 3
RHO = {"hardmax": HARDMAX, "softmax": SOFTMAX, "sparsemax": SPARSEMAX, "entmax15": ENTMAX15}


@njit(inline="always", error_model="numpy")
@no_type_check
def relu(t):
    return 0.0 if t <= 0.0 else t  # NaN stays NaN


@njit(inline="always", error_model="numpy")
@no_type_check
def large(z):
    return 0 if abs(z) <= LARGEST_COLUMN else 1  # NaN is large


@njit(cache=True, error_model="numpy")
@no_type_check
def feed_forward(Z, W_1, b_1, W_2, b_2):
    """All layers, in place, on tokens Z (tokens, d)."""
    beyond = 0
    tokens, d = Z.shape
    r = W_1.shape[1]
    tile = np.empty((d, TILE))
    total = np.empty((d, TILE))
    hidden = np.empty(TILE)
    unit = np.empty(r, dtype=np.int64)
    for base in range(0, tokens, TILE):
        size = min(TILE, tokens - base)
        for k in range(d):
            for j in range(size):
                tile[k, j] = Z[base + j, k]
        for l in range(len(W_1)):
            alive = np.int64(0)  # a literal 0 would have the layer compiled for it too
            for i in range(r):
                for k in range(d):
                    if W_2[l, k, i] != 0.0:
                        unit[alive] = i
                        alive += 1
                        break
            if d == 1 and 0 < alive <= 4:
                _narrow(tile[0], size, W_1[l], b_1[l], W_2[l, 0], b_2[l, 0], unit, alive)
            else:
                _layer_on_tile(tile, size, W_1[l], b_1[l], W_2[l], b_2[l], unit, alive, hidden, total)
            for k in range(d):
                for j in range(size):
                    beyond += large(tile[k, j])
        for k in range(d):
            for j in range(size):
                Z[base + j, k] = tile[k, j]
    return beyond


@njit(cache=True, error_model="numpy")
@no_type_check
def _narrow(z, size, W_1, b_1, W_2, b_2, unit, alive):
    """One layer of at most four living units on one feature, a whole tile in one loop."""
    w0, c0, v0 = W_1[unit[0], 0], b_1[unit[0]], W_2[unit[0]]
    if alive == 1:
        for j in range(size):
            z[j] += v0 * relu(w0 * z[j] + c0) + b_2
        return
    w1, c1, v1 = W_1[unit[1], 0], b_1[unit[1]], W_2[unit[1]]
    if alive == 2:
        for j in range(size):
            z[j] += (v0 * relu(w0 * z[j] + c0) + v1 * relu(w1 * z[j] + c1)) + b_2
        return
    w2, c2, v2 = W_1[unit[2], 0], b_1[unit[2]], W_2[unit[2]]
    if alive == 3:
        for j in range(size):
            t = v0 * relu(w0 * z[j] + c0) + v1 * relu(w1 * z[j] + c1)
            z[j] += (t + v2 * relu(w2 * z[j] + c2)) + b_2
        return
    w3, c3, v3 = W_1[unit[3], 0], b_1[unit[3]], W_2[unit[3]]
    for j in range(size):
        t = v0 * relu(w0 * z[j] + c0) + v1 * relu(w1 * z[j] + c1)
        z[j] += ((t + v2 * relu(w2 * z[j] + c2)) + v3 * relu(w3 * z[j] + c3)) + b_2


@njit(cache=True, error_model="numpy")
@no_type_check
def _layer_on_tile(tile, size, W_1, b_1, W_2, b_2, unit, alive, hidden, total):
    d = len(tile)
    for k in range(d):
        total[k, :size] = 0.0
    for a in range(alive):
        i = unit[a]
        w, b = W_1[i, 0], b_1[i]
        for j in range(size):
            hidden[j] = w * tile[0, j]
        for k in range(1, d):
            w = W_1[i, k]
            for j in range(size):
                hidden[j] += w * tile[k, j]
        for j in range(size):
            hidden[j] = relu(hidden[j] + b)
        for k in range(d):
            v = W_2[k, i]
            for j in range(size):
                total[k, j] += v * hidden[j]
    for k in range(d):
        b = b_2[k]
        for j in range(size):
            tile[k, j] += total[k, j] + b


@njit(cache=True, error_model="numpy")
@no_type_check
def feed_forward_phi(Z, W_1, b_1, W_2, b_2, knots, slopes, intercepts):
    """All layers with a three-piece φ, in place, on tokens Z (tokens, d)."""
    hidden = np.empty(W_1.shape[1])
    beyond = 0
    for j in range(len(Z)):
        for l in range(len(W_1)):
            beyond += layer_phi(Z, j, W_1, b_1, W_2, b_2, knots, slopes, intercepts, l, hidden)
    return beyond


@njit(inline="always", error_model="numpy")
@no_type_check
def layer_phi(Z, j, W_1, b_1, W_2, b_2, knots, slopes, intercepts, l, hidden):
    """Layer l with its three-piece φ on token j, in place."""
    for i in range(W_1.shape[1]):
        t = W_1[l, i, 0] * Z[j, 0]
        for k in range(1, Z.shape[1]):
            t += W_1[l, i, k] * Z[j, k]
        t += b_1[l, i]
        piece = (1 if t >= knots[l, i, 0] else 0) + (1 if t >= knots[l, i, 1] else 0)
        hidden[i] = slopes[l, i, piece] * t + intercepts[l, i, piece]
    beyond = 0
    for k in range(Z.shape[1]):
        total = W_2[l, k, 0] * hidden[0]
        for i in range(1, W_2.shape[2]):
            total += W_2[l, k, i] * hidden[i]
        Z[j, k] += total + b_2[l, k]
        beyond += large(Z[j, k])
    return beyond


@njit(inline="always", error_model="numpy")
@no_type_check
def one_hot(v, needed):
    """The entry that gets all the mass because every other one is at least ``needed`` below it, or −1.

    ``needed`` is NEEDED_GAP of the probability map: the mass is then exactly 1 there, exactly 0 elsewhere.
    """
    where = 0
    top = v[0]
    for t in range(1, len(v)):
        where = t if v[t] > top else where
        top = v[where]
    for t in range(len(v)):
        if t != where and not v[t] - top <= -needed:
            return -1
    return where


@njit(inline="always", error_model="numpy")
@no_type_check
def extremes(keys, needed):
    """τ, and the tokens with the largest and with the smallest key (−1 where several share it).

    A query beyond ±τ gives every key but the largest (smallest) a logit at least ``needed`` below the top. Products and
    the difference of two logits round: q k − q k' computed is at least |q| ((k − k')(1 − ε) − 2ε max|k|) for a small
    multiple ε of 2^-53; 2^-50 covers it, and the rounding of this very formula. Equal keys: τ = 0, no token is alone.
    """
    top, bottom, size = 0, 0, abs(keys[0])
    gap = np.inf
    for i in range(1, len(keys)):
        size = max(size, abs(keys[i]))
        top = i if keys[i] > keys[top] else top
        bottom = i if keys[i] < keys[bottom] else bottom
        for j in range(i):
            difference = abs(keys[i] - keys[j])
            gap = difference if 0.0 < difference < gap else gap
    for i in range(len(keys)):
        if top >= 0 and i != top and keys[i] == keys[top]:
            top = -1
        if bottom >= 0 and i != bottom and keys[i] == keys[bottom]:
            bottom = -1
    if gap == np.inf:
        return 0.0, -1, -1
    known = gap * (1 - 2.0**-50) - 2.0**-50 * size
    if not known > 0.0:
        return np.inf, top, bottom
    least = needed / known * (1 + 2.0**-50)
    return max(least, LEAST_TAU), top, bottom  # 0 is for equal keys


@njit(cache=True, error_model="numpy")
@no_type_check
def probabilities(rho, v, p, scratch):
    """ρ(v) into p, as model/probability.py defines it; −∞ gets 0."""
    n = len(v)
    top = v[0]
    for t in range(1, n):
        top = max(top, v[t])
    if rho == SPARSEMAX:
        _sparsemax(v, top, p, scratch)
        return
    if rho == ENTMAX15:
        _entmax15(v, p)
        return
    total = 0.0
    for t in range(n):
        gap = v[t] - top
        if gap == 0.0:
            p[t] = 1.0
        elif rho == HARDMAX or gap < -800.0:
            p[t] = 0.0
        else:
            p[t] = math.exp(gap)
        total += p[t]
    if total != 1.0:
        for t in range(n):
            p[t] /= total


@njit(cache=True, error_model="numpy")
@no_type_check
def _sparsemax(v, top, p, ordered):
    n = len(v)
    for t in range(n):  # insertion sort, largest first
        x = v[t] - top
        s = t
        while s > 0 and ordered[s - 1] < x:
            ordered[s] = ordered[s - 1]
            s -= 1
        ordered[s] = x
    total, inside = 0.0, 0.0
    size = 0
    for t in range(n):
        x = ordered[t] if ordered[t] > -np.inf else -4.0
        total += x
        if ordered[t] > -np.inf and 1 + (t + 1) * x > total:
            size, inside = t + 1, total
    tau = (inside - 1) / size
    for t in range(n):
        p[t] = max((v[t] - top) - tau, 0.0)


@njit(cache=True, error_model="numpy")
@no_type_check
def _entmax15(v, p):
    n = len(v)
    top = 0.5 * v[0]
    for t in range(1, n):
        top = max(top, 0.5 * v[t])
    low, high = -1.0, 0.0
    for _ in range(64):
        middle = (low + high) / 2
        total = 0.0
        for t in range(n):
            x = max((0.5 * v[t] - top) - middle, 0.0)
            total += x * x
        if total >= 1:
            low = middle
        else:
            high = middle
    total = 0.0
    for t in range(n):
        x = max((0.5 * v[t] - top) - low, 0.0)
        p[t] = x * x
        total += p[t]
    for t in range(n):
        p[t] /= total


@njit(cache=True, error_model="numpy")
@no_type_check
def attention(Z, W_Q, b_Q, W_K, W_V, W_O, masks, layers, rho, needed):
    """All layers, in place, on sequences Z (batch, n, d); masks (p, n, n), or (0, n, n) for dense attention.

    ``layers`` numbers the layers within their stage, which the cycle of the pattern is counted by.
    """
    batch, n, d = Z.shape
    _, h, m, _ = W_Q.shape
    Q, K, V = np.empty((n, m)), np.empty((n, m)), np.empty((n, m))
    heads = np.empty((n, h, m))
    logits, p, scratch = np.empty(n), np.empty(n), np.empty(n)
    beyond = 0
    for s in range(batch):
        for l in range(len(W_Q)):
            for head in range(h):
                if not any_output(W_O, l, head):
                    heads[:, head] = 0.0
                    continue
                for j in range(n):
                    for a in range(m):
                        Q[j, a] = project(W_Q, l, head, a, Z, s, j) + b_Q[l, head, a]
                        K[j, a] = project(W_K, l, head, a, Z, s, j)
                        V[j, a] = project(W_V, l, head, a, Z, s, j)
                tau, top, bottom = np.inf, -1, -1
                if m == 1 and len(masks) == 0:
                    tau, top, bottom = extremes(K[:, 0], needed)
                for j in range(n):
                    chosen = top if Q[j, 0] >= tau else bottom if Q[j, 0] <= -tau else -1
                    if chosen >= 0:
                        heads[j, head, 0] = V[chosen, 0]
                        continue
                    for t in range(n):
                        logit = Q[j, 0] * K[t, 0]
                        for a in range(1, m):
                            logit += Q[j, a] * K[t, a]
                        visible = len(masks) == 0 or masks[layers[l] % len(masks), j, t]
                        logits[t] = logit if visible else -np.inf
                    chosen = one_hot(logits, needed)
                    if chosen >= 0:
                        for a in range(m):
                            heads[j, head, a] = V[chosen, a]
                        continue
                    probabilities(rho, logits, p, scratch)
                    for a in range(m):
                        total = p[0] * V[0, a]
                        for t in range(1, n):
                            total += p[t] * V[t, a]
                        heads[j, head, a] = total
            for j in range(n):
                for k in range(d):
                    total = W_O[l, 0, k, 0] * heads[j, 0, 0]
                    for head in range(h):
                        for a in range(m):
                            if head or a:
                                total += W_O[l, head, k, a] * heads[j, head, a]
                    Z[s, j, k] += total
                    beyond += large(Z[s, j, k])
    return beyond


@njit(inline="always", error_model="numpy")
@no_type_check
def any_output(W_O, l, head):
    for k in range(W_O.shape[2]):
        for a in range(W_O.shape[3]):
            if W_O[l, head, k, a] != 0.0:
                return True
    return False


@njit(inline="always", error_model="numpy")
@no_type_check
def project(W, l, head, a, Z, s, j):
    """Row a of a head's matrix times token j of sequence s."""
    total = W[l, head, a, 0] * Z[s, j, 0]
    for k in range(1, Z.shape[2]):
        total += W[l, head, a, k] * Z[s, j, k]
    return total
