"""The layers of a deep, narrow network that change anything on one sequence, found without running layer after layer.

While a sequence stays as it is, all layers see the same state: what a whole run of them *would* add is one array
operation over the depth. The first layer whose result differs is a frame; its result is the new state, and the search
goes on behind it. Runs grow from 64 layers to 8,192 while nothing happens, so a network of depth L with F frames costs
O(L) array elements and O(F) extra runs: 16,449 layers take milliseconds, and no layer is skipped by assumption.

A half-layer is computed in the order of the engine ``fused`` (``evaluate/_numba.py``), sums from left to right:
t_i = (Σ_k W_1[i,k] z_k) + b_1[i], then z_k + ((Σ_i W_2[k,i] φ(t_i)) + b_2[k]). So the last frame has the bits of that
engine where the probability map is exact, which it is on built networks; the caller compares them on every run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from thereexists.model import Attention, FeedForward, Stage, Transformer
from thereexists.model.probability import PROBABILITY_MAPS

FIRST_RUN, LONGEST_RUN = 64, 8192
MOST_NUMBERS = 1 << 22  # in one array over a run

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Frame:
    """Layer ``index`` of ``stage``, layer ``layer`` of the network, both counted from 1, left it at ``state``.

    ``attention`` (h, n, n) are the weights of its heads, row j = whom token j attends to; None without attention.
    """

    layer: int
    stage: str
    index: int
    state: Array
    attention: Array | None


@dataclass(frozen=True, eq=False)
class Changes:
    """``start`` (n, d), then every layer that changed it; ``complete`` is False if there were more than allowed."""

    start: Array
    frames: tuple[Frame, ...]
    complete: bool

    def before(self, layer: int) -> Array:
        """The state that layer number ``layer`` (from 1) sees."""
        return next((f.state for f in reversed(self.frames) if f.layer < layer), self.start)


def changes(network: Transformer, x: Any, most: int = 400, seconds: float = 10.0) -> Changes:
    """Every layer that changes the sequence x (n, d), at most ``most`` of them and about ``seconds`` of searching."""
    x = np.asarray(x, dtype=np.float64)
    start = x if network.E is None else x + network.E.detach().numpy()
    frames: list[Frame] = []
    ends = time.monotonic() + seconds
    for frame in _search(network, np.array(start), ends):
        if frame is None or len(frames) == most:
            return Changes(start, tuple(frames), False)
        frames.append(frame)
    return Changes(start, tuple(frames), True)


def attention_at(network: Transformer, seen: Changes, layer: int) -> Array | None:
    """The attention weights (h, n, n) of layer number ``layer`` (from 1) on the sequence it sees; None without any."""
    for stage in network.stages.values():
        if layer <= stage.depth:
            if stage.attention is None:
                return None
            index = np.array([layer - 1])
            return _heads(stage.attention, index, network.rho, seen.before(_global(network, stage, layer)))[1][0]
        layer -= stage.depth
    return None


def _global(network: Transformer, stage: Stage, index: int) -> int:
    before = 0
    for other in network.stages.values():
        if other is stage:
            break
        before += other.depth
    return before + index


def _search(network: Transformer, Z: Array, ends: float) -> Iterator[Frame | None]:
    """Frames in order; None when the time is over."""
    passed = 0
    for name, stage in network.stages.items():
        longest = _longest(stage, len(Z))
        at, size = 0, min(FIRST_RUN, longest)
        while at < stage.depth:
            if time.monotonic() > ends:
                yield None
                return
            layers = np.arange(at, min(at + size, stage.depth))
            after, weights = _results(stage, layers, network.rho, Z)
            differs = ((after != Z) & ~(np.isnan(after) & np.isnan(Z))).any(axis=(1, 2))
            if not differs.any():
                at, size = at + len(layers), min(2 * size, longest)
                continue
            hit = int(differs.argmax())
            Z, at, size = after[hit].copy(), int(layers[hit]) + 1, min(FIRST_RUN, longest)
            yield Frame(passed + at, name, at, Z, None if weights is None else weights[hit])
        passed += stage.depth


def _longest(stage: Stage, n: int) -> int:
    """How many layers of a stage fit into one array operation on n tokens."""
    heads = 1 if stage.attention is None else stage.attention.W_Q.shape[1]
    return max(1, min(LONGEST_RUN, MOST_NUMBERS // (heads * n * n)))


def _results(stage: Stage, layers: Array, rho: str, Z: Array) -> tuple[Array, Array | None]:
    """What each of the layers would make of Z (n, d): (layers, n, d), and the attention weights."""
    after, weights = np.broadcast_to(Z, (len(layers), *Z.shape)), None
    with np.errstate(all="ignore"):  # a forged network may overflow; its frames then say so
        if stage.attention is not None:
            added, weights = _heads(stage.attention, layers, rho, Z)
            after = after + added
        if stage.feed_forward is not None:
            after = after + _feed_forward(stage.feed_forward, layers, after)
    return after, weights


def _feed_forward(stack: FeedForward, layers: Array, Z: Array) -> Array:
    """What each layer adds to its own state Z (layers, n, d)."""
    W_1, b_1, W_2, b_2 = (_taken(w, layers) for w in stack.parameters_list())
    pieces = None if stack.phi is None else [_taken(w, layers) for w in stack.phi.parameters_list()]
    total = np.zeros(Z.shape)
    for i in range(W_1.shape[1]):
        t = _dot(W_1[:, i], Z) + b_1[:, i, None]  # (layers, n)
        if pieces is None:
            t = np.where(t <= 0, 0.0, t)
        else:
            knots, slopes, intercepts = (w[:, i] for w in pieces)  # (layers, 2 or 3)
            piece = (t >= knots[:, :1]).astype(np.int64) + (t >= knots[:, 1:])
            t = np.take_along_axis(slopes, piece, 1) * t + np.take_along_axis(intercepts, piece, 1)
        total = total + W_2[:, None, :, i] * t[:, :, None]
    return total + b_2[:, None, :]


def _heads(stack: Attention, layers: Array, rho: str, Z: Array) -> tuple[Array, Array]:
    """What each layer adds to Z (n, d), and its weights (layers, h, n, n)."""
    W_Q, b_Q, W_K, W_V, W_O = (_taken(w, layers) for w in stack.parameters_list())
    _, h, m, _ = W_Q.shape
    state = np.broadcast_to(Z, (len(layers), *Z.shape))
    logits = np.zeros((len(layers), h, len(Z), len(Z)))
    for i in range(h):
        for c in range(m):
            query = _dot(W_Q[:, i, c], state) + b_Q[:, i, c, None]
            logits[:, i] += query[:, :, None] * _dot(W_K[:, i, c], state)[:, None, :]
    if stack.pattern is not None:
        masks = stack.pattern.numpy()[layers % len(stack.pattern)]  # (layers, n, n)
        logits = np.where(masks[:, None], logits, -np.inf)
    P = PROBABILITY_MAPS[rho](torch.from_numpy(logits)).numpy()
    added = np.zeros(state.shape)
    for i in range(h):
        for c in range(m):
            value = _dot(W_V[:, i, c], state)  # (layers, n)
            carried = np.zeros(value.shape)
            for j in range(len(Z)):
                carried = carried + P[:, i, :, j] * value[:, j, None]
            added = added + W_O[:, None, i, :, c] * carried[:, :, None]
    return added, P


def _dot(w: Array, Z: Array) -> Array:
    """Σ_k w[:, k] Z[:, :, k] from left to right: (layers, d), (layers, n, d) -> (layers, n)."""
    total = w[:, 0, None] * Z[:, :, 0]
    for k in range(1, w.shape[1]):
        total = total + w[:, k, None] * Z[:, :, k]
    return total


def _taken(weight: torch.Tensor, layers: Array) -> Array:
    return weight.detach().numpy()[int(layers[0]) : int(layers[-1]) + 1]
