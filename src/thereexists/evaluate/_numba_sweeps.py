"""Numba kernels of the exact skip: every token (every sequence) jumps from one layer that may touch it to the next.

The first jump of a whole tile of tokens is made in lockstep: all bisections take the same number of steps, without a
branch that a processor would have to guess. Later jumps look at the last layer first: most tokens are then done.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from thereexists.evaluate._numba import layer, layer_phi, one_hot, probabilities, project

TILE = 256


@njit(inline="always")
@no_type_check
def _along(direction, Z, j):
    total = direction[0] * Z[j, 0]
    for k in range(1, len(direction)):
        total += direction[k] * Z[j, k]
    return total


@njit(cache=True)
@no_type_check
def _first_positive_of_all(bias, s, first):
    """The first layer with s + bias > 0, for every s; bias never decreases."""
    first[:] = 0
    size = len(bias)
    while size > 1:
        half = size >> 1
        for j in range(len(s)):
            first[j] += half if s[j] + bias[first[j] + half - 1] <= 0.0 else 0
        size -= half
    for j in range(len(s)):
        first[j] += 1 if s[j] + bias[first[j]] <= 0.0 else 0


@njit(inline="always")
@no_type_check
def _next_positive(bias, s, start):
    """The same for one s, from ``start`` on."""
    low, high = start, len(bias)
    if low == high or s + bias[high - 1] <= 0.0:
        return high
    while low < high:
        middle = (low + high) >> 1
        if s + bias[middle] <= 0.0:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
@no_type_check
def sweep_feed_forward(Z, W_1, b_1, W_2, b_2, direction, bias, candidate, settled):
    """A feed-forward sweep on tokens Z (tokens, d), in place.

    ``candidate[l]``, ``settled[l]``: a token that layer l leaves exactly at the former on the sweep's one axis leaves
    the whole sweep exactly at the latter (see ``skip.py``); empty arrays where nothing is known.
    """
    hidden = np.empty(W_1.shape[1])
    s, first = np.empty(TILE), np.empty(TILE, dtype=np.int64)
    depth = len(bias)
    axis = 0
    for k in range(len(direction)):
        if direction[k] != 0.0:
            axis = k
    for base in range(0, len(Z), TILE):
        size = min(TILE, len(Z) - base)
        for i in range(size):
            s[i] = _along(direction, Z, base + i)
        _first_positive_of_all(bias, s[:size], first[:size])
        for i in range(size):
            j, at = base + i, first[i]
            while at < depth:
                layer(Z, j, W_1, b_1, W_2, b_2, at, hidden)
                if len(candidate) and Z[j, axis] == candidate[at]:
                    Z[j, axis] = settled[at]
                    break
                at = _next_positive(bias, _along(direction, Z, j), at + 1)
            for k in range(Z.shape[1]):
                Z[j, k] += 0.0  # −0 becomes 0, as in every layer that adds 0


@njit(cache=True)
@no_type_check
def sweep_feed_forward_phi(Z, W_1, b_1, W_2, b_2, knots, slopes, intercepts, direction, bias, knot):
    """The same for layers with a three-piece φ that is 0 below ``knot``."""
    hidden = np.empty(W_1.shape[1])
    depth = len(bias)
    for j in range(len(Z)):
        at = 0
        while at < depth:
            s = _along(direction, Z, j)
            low, high = at, depth
            while low < high:
                middle = (low + high) >> 1
                if s + bias[middle] < knot:
                    low = middle + 1
                else:
                    high = middle
            if low == depth:
                break
            layer_phi(Z, j, W_1, b_1, W_2, b_2, knots, slopes, intercepts, low, hidden)
            at = low + 1
        for k in range(Z.shape[1]):
            Z[j, k] += 0.0


@njit(inline="always")
@no_type_check
def _margin(keys, b, needed):
    """τ: a query beyond ±τ gives every key but the largest (smallest) a logit at least ``needed`` below the top.

    Products and the difference of two logits round: q k − q k' computed is at least |q| ((k − k')(1 − ε) − 2ε max|k|)
    for a small multiple ε of 2^-53; 2^-50 covers it, and the rounding of this very formula. Equal keys: τ = 0.
    """
    gap, size = np.inf, 0.0
    for i in range(keys.shape[1]):
        size = max(size, abs(keys[b, i]))
        for j in range(i):
            difference = abs(keys[b, i] - keys[b, j])
            gap = difference if 0.0 < difference < gap else gap
    known = gap * (1 - 2.0**-50) - 2.0**-50 * size
    return 0.0 if gap == np.inf else needed / known * (1 + 2.0**-50) if known > 0.0 else np.inf


@njit(cache=True)
@no_type_check
def _first_below_of_all(lower, s, tau, first):
    """The first layer with s + lower < τ, for all s (sequences, n) and τ (sequences,); lower never increases."""
    first[:] = 0
    size = len(lower)
    while size > 1:
        half = size >> 1
        for b in range(s.shape[0]):
            for j in range(s.shape[1]):
                first[b, j] += half if s[b, j] + lower[first[b, j] + half - 1] >= tau[b] else 0
        size -= half
    for b in range(s.shape[0]):
        for j in range(s.shape[1]):
            first[b, j] += 1 if s[b, j] + lower[first[b, j]] >= tau[b] else 0


@njit(inline="always")
@no_type_check
def _next_below(s, upper, lower, tau, start):
    """The first layer from ``start`` on that may touch a token with s = W_Q z, or the depth."""
    low, high = start, len(lower)
    if low < high and s + lower[high - 1] >= tau:  # both queries stay above τ to the end
        return high
    while low < high:
        middle = (low + high) >> 1
        if s + lower[middle] >= tau:
            low = middle + 1
        else:
            high = middle
    # upper never increases either: if its query is at most −τ here, both are from here on
    return low if low < len(lower) and s + upper[low] > -tau else len(lower)


@njit(cache=True)
@no_type_check
def sweep_attention(Z, W_Q, b_Q, W_K, W_V, W_O, masks, layers, rho, upper, lower, needed):
    """An attention sweep (two heads of size 1) on sequences Z (batch, n, d), in place."""
    batch, n, d = Z.shape
    depth = len(lower)
    s, keys, tau = np.empty((TILE, n)), np.empty((TILE, n)), np.empty(TILE)
    following = np.empty((TILE, n), dtype=np.int64)
    V, moved = np.empty(n), np.empty((n, d))
    logits, p, scratch = np.empty(n), np.empty(n), np.empty(n)
    for base in range(0, batch, TILE):
        size = min(TILE, batch - base)
        for i in range(size):
            for j in range(n):
                s[i, j] = project(W_Q, 0, 0, 0, Z, base + i, j)
                keys[i, j] = project(W_K, 0, 0, 0, Z, base + i, j)
            tau[i] = _margin(keys, i, needed)
        _first_below_of_all(lower, s[:size], tau[:size], following[:size])
        for i in range(size):
            b, at = base + i, depth
            for j in range(n):
                if following[i, j] < depth and not s[i, j] + upper[following[i, j]] > -tau[i]:
                    following[i, j] = depth
                at = min(at, following[i, j])
            while at < depth:
                for t in range(n):
                    V[t] = project(W_V, at, 0, 0, Z, b, t)
                for j in range(n):  # all from the same state, then all at once
                    if following[i, j] == at:
                        _pull(i, j, at, s, keys, V, b_Q, W_O, masks, layers, rho, needed, logits, p, scratch, moved)
                for j in range(n):
                    if following[i, j] == at:
                        for k in range(d):
                            Z[b, j, k] += moved[j, k]
                        s[i, j], keys[i, j] = project(W_Q, 0, 0, 0, Z, b, j), project(W_K, 0, 0, 0, Z, b, j)
                        following[i, j] = -1
                before = tau[i]
                tau[i] = max(before, _margin(keys, i, needed))  # a larger τ only adds layers that are looked at
                start, at = at + 1, depth
                for j in range(n):
                    if following[i, j] == -1 or tau[i] > before:
                        following[i, j] = _next_below(s[i, j], upper, lower, tau[i], start)
                    at = min(at, following[i, j])
            for j in range(n):
                for k in range(d):
                    Z[b, j, k] += 0.0


@njit(inline="always")
@no_type_check
def _pull(i, j, l, s, keys, V, b_Q, W_O, masks, layers, rho, needed, logits, p, scratch, moved):
    """What layer l adds to token j, into moved[j]."""
    n = keys.shape[1]
    first = 0.0
    for head in range(2):
        q = s[i, j] + b_Q[l, head, 0]
        for t in range(n):
            logits[t] = q * keys[i, t]
        if len(masks):
            for t in range(n):
                if not masks[layers[l] % len(masks), j, t]:
                    logits[t] = -np.inf
        chosen = one_hot(logits, needed)
        if chosen >= 0:
            total = V[chosen]
        else:
            probabilities(rho, logits, p, scratch)
            total = p[0] * V[0]
            for t in range(1, n):
                total += p[t] * V[t]
        if head == 0:
            first = total
        else:
            for k in range(moved.shape[1]):
                moved[j, k] = W_O[l, 0, k, 0] * first + W_O[l, 1, k, 0] * total
