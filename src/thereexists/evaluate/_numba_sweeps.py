"""Numba kernels of the exact skip: every token (every sequence) jumps from one layer that may touch it to the next."""

from __future__ import annotations

import numpy as np
from numba import njit

from thereexists.evaluate._numba import dot, layer, layer_phi, probabilities


@njit(cache=True)
def _first_positive(bias, s, start):
    """The first layer from ``start`` on with s + bias > 0; bias never decreases. Branches become conditional moves."""
    low, size = start, len(bias) - start
    while size > 0:
        half = size >> 1
        step = s + bias[low + half] <= 0.0
        low = low + half + 1 if step else low
        size = size - half - 1 if step else half
    return low


@njit(cache=True)
def sweep_feed_forward(Z, W_1, b_1, W_2, b_2, direction, bias, candidate, settled):
    """A feed-forward sweep on tokens Z (tokens, d), in place.

    ``candidate[l]``, ``settled[l]``: a token that layer l leaves exactly at the former on the sweep's one axis leaves
    the whole sweep exactly at the latter (see ``skip.py``); empty arrays where nothing is known.
    """
    hidden = np.empty(W_1.shape[1])
    depth = len(bias)
    axis = 0
    for k in range(len(direction)):
        if direction[k] != 0.0:
            axis = k
    for j in range(len(Z)):
        z = Z[j]
        at = 0
        while at < depth:
            s = dot(direction, z)
            if s + bias[at] <= 0.0:
                at = _first_positive(bias, s, at + 1)
                if at == depth:
                    break
            layer(z, W_1[at], b_1[at], W_2[at], b_2[at], hidden)
            if len(candidate) and z[axis] == candidate[at]:
                z[axis] = settled[at]
                break
            at += 1
        for k in range(len(z)):
            z[k] += 0.0  # −0 becomes 0, as in every layer that adds 0


@njit(cache=True)
def sweep_feed_forward_phi(Z, W_1, b_1, W_2, b_2, knots, slopes, intercepts, direction, bias, knot):
    """The same for layers with a three-piece φ that is 0 below ``knot``."""
    hidden = np.empty(W_1.shape[1])
    depth = len(bias)
    for j in range(len(Z)):
        z = Z[j]
        at = 0
        while at < depth:
            s = dot(direction, z)
            low, high = at, depth
            while low < high:
                middle = (low + high) // 2
                if s + bias[middle] < knot:
                    low = middle + 1
                else:
                    high = middle
            if low == depth:
                break
            layer_phi(z, W_1[low], b_1[low], W_2[low], b_2[low], knots[low], slopes[low], intercepts[low], hidden)
            at = low + 1
        for k in range(len(z)):
            z[k] += 0.0


@njit(cache=True)
def _margin(keys, needed):
    """τ: a query beyond ±τ gives every key but the largest (smallest) a logit at least ``needed`` below the top.

    Products and the difference of two logits round: q k − q k' computed is at least |q| ((k − k')(1 − ε) − 2ε max|k|)
    for a small multiple ε of 2^-53; 2^-50 covers it, and the rounding of this very formula. Equal keys: τ = 0.
    """
    gap, size = np.inf, 0.0
    for a in range(len(keys)):
        size = max(size, abs(keys[a]))
        for b in range(a):
            difference = abs(keys[a] - keys[b])
            if 0.0 < difference < gap:
                gap = difference
    if gap == np.inf:
        return 0.0
    gap = gap * (1 - 2.0**-50) - 2.0**-50 * size
    return needed / gap * (1 + 2.0**-50) if gap > 0.0 else np.inf


@njit(cache=True)
def _next_for(s, upper, lower, tau, start):
    """The first layer from ``start`` on that may touch a token with s = query·z, or the depth."""
    low, high = start, len(lower)
    while low < high:  # lower never increases: before `low` both queries are at least τ
        middle = (low + high) // 2
        if s + lower[middle] >= tau:
            low = middle + 1
        else:
            high = middle
    if low < len(lower) and s + upper[low] > -tau:
        return low
    return len(lower)  # upper never increases either: from here on both queries are at most −τ


@njit(cache=True)
def sweep_attention(Z, W_Q, b_Q, W_K, W_V, W_O, masks, layers, rho, query, key, upper, lower, needed):
    """An attention sweep (two heads of size 1) on sequences Z (batch, n, d), in place."""
    batch, n, d = Z.shape
    depth = len(lower)
    s, keys, V = np.empty(n), np.empty(n), np.empty(n)
    logits, p, scratch = np.empty(n), np.empty(n), np.empty(n)
    following = np.empty(n, dtype=np.int64)
    moved = np.empty((n, d))
    for b in range(batch):
        z = Z[b]
        for j in range(n):
            s[j], keys[j] = dot(query, z[j]), dot(key, z[j])
        tau = _margin(keys, needed)
        at = depth
        for j in range(n):
            following[j] = _next_for(s[j], upper, lower, tau, 0)
            at = min(at, following[j])
        while at < depth:
            for t in range(n):
                V[t] = dot(W_V[at, 0, 0], z[t])
            for j in range(n):
                if following[j] == at:
                    _pull(j, at, s, keys, V, b_Q, W_O, masks, layers, rho, logits, p, scratch, moved)
            for j in range(n):
                if following[j] == at:
                    for k in range(d):
                        z[j, k] += moved[j, k]
                    s[j], keys[j] = dot(query, z[j]), dot(key, z[j])
                    following[j] = -1
            tau_before = tau
            tau = max(tau, _margin(keys, needed))  # a larger τ only adds layers that are looked at
            start, at = at + 1, depth
            for j in range(n):
                if following[j] == -1 or tau > tau_before:
                    following[j] = _next_for(s[j], upper, lower, tau, start)
                at = min(at, following[j])
        for j in range(n):
            for k in range(d):
                z[j, k] += 0.0


@njit(cache=True)
def _pull(j, l, s, keys, V, b_Q, W_O, masks, layers, rho, logits, p, scratch, moved):
    """What layer l adds to token j, into moved[j]."""
    n = len(keys)
    mixed0, mixed1 = 0.0, 0.0
    for head in range(2):
        q = s[j] + b_Q[l, head, 0]
        for t in range(n):
            logits[t] = q * keys[t]
            if len(masks) and not masks[layers[l] % len(masks), j, t]:
                logits[t] = -np.inf
        probabilities(rho, logits, p, scratch)
        total = p[0] * V[0]
        for t in range(1, n):
            total += p[t] * V[t]
        if head == 0:
            mixed0 = total
        else:
            mixed1 = total
    for k in range(moved.shape[1]):
        moved[j, k] = W_O[l, 0, k, 0] * mixed0 + W_O[l, 1, k, 0] * mixed1
