"""Numba kernels of the exact skip: every token (every sequence) jumps from one layer that may touch it to the next.

The first jump of a whole tile of tokens is made in lockstep: all bisections take the same number of steps, without a
branch that a processor would have to guess. Later jumps look at the last layer first: most tokens are then done.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from thereexists.core.compiled import njit
from thereexists.evaluate._numba import extremes, large, layer_phi, one_hot, probabilities, project, relu

TILE = 256


@njit(inline="always", error_model="numpy")
@no_type_check
def _along(direction, Z, j):
    total = direction[0] * Z[j, 0]
    for k in range(1, len(direction)):
        total += direction[k] * Z[j, k]
    return total


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
@no_type_check
def _next_positive(bias, s, start):
    """The same for one s, from ``start`` on."""
    low, high = start, len(bias)
    while low < high:
        middle = (low + high) >> 1
        if s + bias[middle] <= 0.0:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, error_model="numpy")
@no_type_check
def sweep_feed_forward(Z, W_1, b_1, W_2, b_2, direction, bias, candidate, settled):
    """A feed-forward sweep on tokens Z (tokens, d), in place.

    ``candidate[l]``, ``settled[l]``: a token that layer l leaves exactly at the former on the sweep's one axis leaves
    the whole sweep exactly at the latter (see ``skip.py``); empty arrays where nothing is known.
    """
    depth, r, d = W_1.shape
    hidden = np.empty(r)
    s, first = np.empty(TILE), np.empty(TILE, dtype=np.int64)
    known, axis, beyond = len(candidate) > 0, 0, 0
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
                for a in range(r):  # one layer, written out: a call costs more than the layer
                    t = W_1[at, a, 0] * Z[j, 0]
                    for k in range(1, d):
                        t += W_1[at, a, k] * Z[j, k]
                    hidden[a] = relu(t + b_1[at, a])
                for k in range(d):
                    t = W_2[at, k, 0] * hidden[0]
                    for a in range(1, r):
                        t += W_2[at, k, a] * hidden[a]
                    Z[j, k] += t + b_2[at, k]
                    beyond += large(Z[j, k])
                if known and Z[j, axis] == candidate[at]:
                    Z[j, axis] = settled[at]
                    break
                t = direction[0] * Z[j, 0]
                for k in range(1, d):
                    t += direction[k] * Z[j, k]
                at = depth if t + bias[depth - 1] <= 0.0 else _next_positive(bias, t, at + 1)
            for k in range(d):
                Z[j, k] += 0.0  # −0 becomes 0, as in every layer that adds 0
    return beyond


@njit(cache=True, error_model="numpy")
@no_type_check
def sweep_feed_forward_phi(Z, W_1, b_1, W_2, b_2, knots, slopes, intercepts, direction, bias, knot):
    """The same for layers with a three-piece φ that is 0 below ``knot``."""
    hidden = np.empty(W_1.shape[1])
    depth, beyond = len(bias), 0
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
            beyond += layer_phi(Z, j, W_1, b_1, W_2, b_2, knots, slopes, intercepts, low, hidden)
            at = low + 1
        for k in range(Z.shape[1]):
            Z[j, k] += 0.0
    return beyond


@njit(cache=True, error_model="numpy")
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


@njit(inline="always", error_model="numpy")
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


@njit(cache=True, error_model="numpy")
@no_type_check
def sweep_attention(Z, W_Q, b_Q, W_K, W_V, W_O, masks, layers, rho, upper, lower, needed):
    """An attention sweep (two heads of size 1) on sequences Z (batch, n, d), in place."""
    batch, n, d = Z.shape
    depth, dense, beyond = len(lower), len(masks) == 0, 0
    all_s, all_tau, all_first = np.empty((TILE, n)), np.empty(TILE), np.empty((TILE, n), dtype=np.int64)
    s, keys, following = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    moved, work = np.empty((n, d)), np.empty((3, n))
    for base in range(0, batch, TILE):
        size = min(TILE, batch - base)
        for i in range(size):
            for j in range(n):
                all_s[i, j] = project(W_Q, 0, 0, 0, Z, base + i, j)
                keys[j] = project(W_K, 0, 0, 0, Z, base + i, j)
            all_tau[i], _, _ = extremes(keys, needed)
        _first_below_of_all(lower, all_s[:size], all_tau[:size], all_first[:size])
        for i in range(size):
            b, at = base + i, depth
            for j in range(n):
                s[j], following[j] = all_s[i, j], all_first[i, j]
                keys[j] = project(W_K, 0, 0, 0, Z, b, j)
                if following[j] < depth and not s[j] + upper[following[j]] > -all_tau[i]:
                    following[j] = depth
                at = min(at, following[j])
            tau, top, bottom = extremes(keys, needed)
            looked = tau  # every `following` was found with this τ or a larger one
            while at < depth:
                for j in range(n):  # all from the same state, then all at once
                    if following[j] != at:
                        continue
                    for head in range(2):
                        q = s[j] + b_Q[at, head, 0]
                        chosen = -1
                        if dense:
                            chosen = top if q >= tau else bottom if q <= -tau else -1
                        if chosen >= 0:
                            mixed = W_V[at, head, 0, 0] * Z[b, chosen, 0]
                            for k in range(1, d):
                                mixed += W_V[at, head, 0, k] * Z[b, chosen, k]
                        else:
                            mixed = _mixed(Z, b, j, at, head, q, keys, W_V, masks, layers, rho, needed, work)
                        for k in range(d):
                            moved[j, k] = W_O[at, head, k, 0] * mixed + (moved[j, k] if head else 0.0)
                for j in range(n):
                    if following[j] == at:
                        for k in range(d):
                            Z[b, j, k] += moved[j, k]
                            beyond += large(Z[b, j, k])
                        s[j], keys[j] = W_Q[0, 0, 0, 0] * Z[b, j, 0], W_K[0, 0, 0, 0] * Z[b, j, 0]
                        for k in range(1, d):
                            s[j] += W_Q[0, 0, 0, k] * Z[b, j, k]
                            keys[j] += W_K[0, 0, 0, k] * Z[b, j, k]
                        following[j] = -1
                tau, top, bottom = extremes(keys, needed)
                again = tau > looked
                looked = max(tau, looked)  # a larger τ only adds layers that are looked at
                start, at = at + 1, depth
                for j in range(n):
                    if following[j] == -1 or again:
                        following[j] = _next_below(s[j], upper, lower, looked, start)
                    at = min(at, following[j])
            for j in range(n):
                for k in range(d):
                    Z[b, j, k] += 0.0
    return beyond


@njit(cache=True, error_model="numpy")
@no_type_check
def _mixed(Z, b, j, l, head, q, keys, W_V, masks, layers, rho, needed, work):
    """What a head of layer l gives token j of sequence b, whatever its query."""
    logits, p, scratch = work[0], work[1], work[2]
    for t in range(len(keys)):
        visible = len(masks) == 0 or masks[layers[l] % len(masks), j, t]
        logits[t] = q * keys[t] if visible else -np.inf
    chosen = one_hot(logits, needed)
    if chosen >= 0:
        return project(W_V, l, head, 0, Z, b, chosen)
    probabilities(rho, logits, p, scratch)
    total = p[0] * project(W_V, l, head, 0, Z, b, 0)
    for t in range(1, len(keys)):
        total += p[t] * project(W_V, l, head, 0, Z, b, t)
    return total
