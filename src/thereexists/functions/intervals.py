"""Interval extensions of the built-in targets: from boxes [low, high] of sequences to boxes that contain f of them.

Each function takes and returns arrays (batch, n, d). Rounding is covered by ``_widen``: it moves both ends outward by a
stated number of ulps of the largest number that occurs. For exp and sin that includes the assumption that NumPy's are
within 4 ulps, which the tests check against Arb.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from thereexists.functions import targets as f
from thereexists.functions.target import Array

Box = tuple[Array, Array]
EPS = 2.0**-52


def extension_of(name: str) -> Callable[[Array, Array], Box]:
    """The interval extension of a built-in target."""
    return _EXTENSIONS[name]


def _widen(low: Array, high: Array, scale: Array | float, ulps: int) -> Box:
    slack = ulps * EPS * np.abs(scale) + 1e-300
    return low - slack, high + slack


def _size(low: Array, high: Array) -> float:
    return float(max(np.abs(low).max(), np.abs(high).max()))


def _monotone(function: Callable[[Array], Array], low: Array, high: Array) -> Box:
    """f increases in every entry: its values at the two corners; averages and sums round n times at most."""
    return _widen(function(low), function(high), _size(low, high), 2 * low.shape[1])


def _exact(function: Callable[[Array], Array], low: Array, high: Array) -> Box:
    """f increases and only selects entries: no rounding at all."""
    return function(low), function(high)


def _distance_to_mean(low: Array, high: Array) -> Box:
    n = low.shape[1]
    others_low, others_high = low.sum(1, keepdims=True) - low, high.sum(1, keepdims=True) - high
    own = (n - 1) / n
    return _widen(own * low - others_high / n, own * high - others_low / n, _size(low, high), 8 * n)


def _distance_to_max(low: Array, high: Array) -> Box:
    others_low, others_high = _max_of_others(low), _max_of_others(high)
    return _widen(np.maximum(others_low - high, 0.0), np.maximum(others_high - low, 0.0), _size(low, high), 2)


def _max_of_others(X: Array) -> Array:
    n = X.shape[1]
    others = np.repeat(X[:, None], n, axis=1)  # (batch, i, j, d)
    others[:, np.arange(n), np.arange(n)] = -np.inf
    return others.max(axis=2) if n > 1 else X  # alone, a token is the maximum: x − x is within [low − high, …]


def _product(a: Box, b: Box) -> Box:
    corners = [x * y for x in a for y in b]
    low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    return _widen(low, high, np.maximum(np.abs(low), np.abs(high)), 1)


def _softmax_attention(low: Array, high: Array) -> Box:
    pair_low, pair_high = _product((low[:, :, None], high[:, :, None]), (low[:, None], high[:, None]))
    size = _size(low, high) ** 2 * low.shape[2]
    logit_low, logit_high = _widen(pair_low.sum(-1), pair_high.sum(-1), size, 2 * low.shape[2])  # (batch, i, j)
    shift = logit_high.max(-1, keepdims=True)
    e_low, e_high = np.exp(logit_low - shift), np.exp(logit_high - shift)
    # Logits that are far apart: every exponential of one side may be 0, and then nothing is known but 0 ≤ p ≤ 1.
    p_low = np.divide(e_low, below := e_low + _others(e_high, +1), out=np.zeros_like(e_low), where=below > 0)
    p_high = np.divide(e_high, below := e_high + _others(e_low, -1), out=np.ones_like(e_high), where=below > 0)
    # exp rounds its argument (relative size of the logits) and itself; the sums and the quotient round n + 2 times.
    p_low, p_high = _widen(p_low, np.minimum(p_high, 1.0), 1.0, 64 * (low.shape[1] + 2) * (1 + int(size)))
    parts = _product((p_low[..., None].clip(0), p_high[..., None]), (low[:, None], high[:, None]))
    total = _widen(parts[0].sum(2), parts[1].sum(2), low.shape[1] * _size(low, high), 2 * low.shape[1])
    return np.maximum(total[0], low.min(1, keepdims=True)), np.minimum(total[1], high.max(1, keepdims=True))


def _others(e: Array, side: int) -> Array:
    """Σ over j ≠ own of e_j, rounded up (side = +1) or down (−1): the subtraction cancels, the slack does not."""
    total = e.sum(-1, keepdims=True)
    return np.maximum(total - e + side * 2 * e.shape[-1] * EPS * total, 0.0)


def _deep_sets(low: Array, high: Array) -> Box:
    mean = _monotone(lambda X: X.mean(axis=1, keepdims=True), low, high)
    return _product((low, high), mean)


def _token_sine(low: Array, high: Array) -> Box:
    at_low, at_high = np.sin(np.pi * low), np.sin(np.pi * high)
    bottom, top = np.minimum(at_low, at_high), np.maximum(at_low, at_high)
    # π·x rounds in the size of π·x; then sin's own 4 ulps of 1.
    bottom, top = _widen(bottom, top, 1.0 + np.pi * _size(low, high), 8)
    crest = np.ceil(low / 2 - 0.25) <= high / 2 - 0.25  # an odd number of quarter turns: 1/2 + 2k inside
    trough = np.ceil(low / 2 + 0.25) <= high / 2 + 0.25
    return np.where(trough, -1.0, np.maximum(bottom, -1.0)), np.where(crest, 1.0, np.minimum(top, 1.0))


def _soft_rank(low: Array, high: Array) -> Box:
    n = low.shape[1]
    if n == 1:
        return np.zeros_like(low), np.zeros_like(low)

    def above(own: Array, others: Array) -> Array:  # Σ over j ≠ i of the ramp, increasing in own, decreasing in others
        ramp = np.clip((own[:, :, None] - others[:, None]) / f.RANK_WIDTH + 0.5, 0.0, 1.0)
        ramp[:, np.arange(n), np.arange(n)] = 0.0
        return ramp.sum(axis=2) / (n - 1)

    return _widen(above(low, high), above(high, low), 1 + 2 * _size(low, high) / f.RANK_WIDTH, 4 * n)


def _nearest_neighbour(low: Array, high: Array) -> Box:
    n = low.shape[1]
    if n == 1:
        return np.zeros_like(low), np.zeros_like(low)
    gap_low = np.maximum(np.maximum(low[:, :, None] - high[:, None], low[:, None] - high[:, :, None]), 0.0)
    gap_high = np.maximum(high[:, :, None] - low[:, None], high[:, None] - low[:, :, None])
    gap_low[:, np.arange(n), np.arange(n)] = gap_high[:, np.arange(n), np.arange(n)] = np.inf
    return _widen(gap_low.min(axis=2), gap_high.min(axis=2), _size(low, high), 2)


def _convolution(low: Array, high: Array) -> Box:
    def signed(plus: Array, minus: Array) -> Array:  # KERNEL = (−1, 2, −1): the outer weights are negative
        outer = np.pad(minus, ((0, 0), (1, 1), (0, 0)))
        return f.KERNEL[1] * plus + f.KERNEL[0] * outer[:, :-2] + f.KERNEL[2] * outer[:, 2:]

    return _widen(signed(low, high), signed(high, low), _size(low, high), 8)


_EXTENSIONS: dict[str, Callable[[Array, Array], Box]] = {
    "distance-to-mean": _distance_to_mean,
    "distance-to-max": _distance_to_max,
    "softmax-attention": _softmax_attention,
    "deep-sets": _deep_sets,
    "token-sine": _token_sine,
    "soft-rank": _soft_rank,
    "nearest-neighbour": _nearest_neighbour,
    "sort": partial(_exact, f.sort),
    "reverse": partial(_exact, f.reverse),
    "cumulative-mean": partial(_monotone, f.cumulative_mean),
    "moving-average": partial(_monotone, f.moving_average),
    "shift": partial(_exact, f.shift),
    "copy-first": partial(_exact, f.copy_first),
    "convolution": _convolution,
    "running-max": partial(_exact, f.running_max),
}
