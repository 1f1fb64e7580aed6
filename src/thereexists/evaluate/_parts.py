"""A network as a list of parts: which half-layers run one by one, and which form a sweep that bisection may cross.

Everything here is read off the weights; who made them is never asked. A half-layer with zero output weights adds
exactly 0 to every token and is left out. The other ones, in order, are cut into maximal *sweeps*:

**Feed-forward sweep.** All units that can change anything share one direction w within and across the layers, b_2 = 0,
and the largest bias β_l of a layer never decreases with l. With s = w^T z rounded once and for all, the unit's
pre-activation is the rounded s + b; rounding keeps signs, so layer l adds exactly 0 to a token if s + β_l ≤ 0. Those
layers come first: {l : s + β_l > 0} is an upper set, found by bisection. For a three-piece φ that is 0 below its first
knot κ (the same κ in all layers, one unit a layer) read rounded(s + b) < κ, which is monotone in b.

**Attention sweep.** Two heads of size 1 with equal W_Q, W_K, W_V and opposite W_O in every layer, W_Q and W_K shared by
all layers, both thresholds b_Q never increasing with l. If for token j both queries q = s_j + b_Q lie on one side of 0
and |q|·(gap between different keys) is at least ``NEEDED_GAP[rho]``, then in both heads ρ puts all mass on the tokens
with the largest key (or the smallest), evenly: everybody else gets an exact 0. The heads then carry the same number,
and W_O x − W_O x = 0. The layers left for token j have lower_l < τ − s_j and upper_l > −τ − s_j: consecutive ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
import torch

from thereexists.model import Attention, FeedForward, Stage, Transformer

Array = np.ndarray

NEEDED_GAP = {
    "hardmax": 2.0**-900,  # any gap that is not lost to underflow
    "softmax": 800.0,  # e^-800 is below half the smallest float64
    "sparsemax": 4.0,  # one-hot from 1 on in real arithmetic; the rest is for rounding
    "entmax15": 4.0,  # one-hot from 2 on
}
SHORTEST_SWEEP = 4
WIDEST = 16  # features, hidden units, heads × head size: above it matrix products beat streaming
LARGEST_WEIGHT = 2.0**300  # products of weights and states stay finite


@dataclass(frozen=True, eq=False)
class FeedForwardSweep:
    """Layer i of the sweep touches a token only if rounded(direction·z + bias[i]) > 0, or ≥ knot with a φ."""

    direction: Array
    bias: Array
    knot: float | None


@dataclass(frozen=True, eq=False)
class AttentionSweep:
    """Layer i touches token j only if query·z_j + lower[i] < τ and query·z_j + upper[i] > −τ (see above for τ)."""

    query: Array
    key: Array
    upper: Array
    lower: Array


@dataclass(frozen=True, eq=False)
class Part:
    """Half-layers ``layers`` (indices) of one stage, one kind; ``sweep`` is None where they must run one by one."""

    stage: str
    kind: str
    layers: Array
    sweep: FeedForwardSweep | AttentionSweep | None
    known: dict = field(default_factory=dict)  # what an engine has worked out of this part's weights

    @property
    def span(self) -> slice | Array:
        """The same layers as a slice where they are consecutive: weights are then taken without copying."""
        first, last = int(self.layers[0]), int(self.layers[-1])
        return slice(first, last + 1) if last - first + 1 == len(self.layers) else self.layers

    @property
    def what(self) -> str:
        first, last = int(self.layers[0]), int(self.layers[-1])
        where = f"layer {first}" if first == last else f"layers {first} to {last}"
        return f"{self.stage}, {self.kind.replace('_', '-')}, {where}"


@dataclass(frozen=True, eq=False)
class Facts:
    """What the engines know of a network: its parts, how wide it is, and a weight that no kernel takes, if any."""

    parts: tuple[Part, ...]
    width: int
    empty: str | None


_CACHE: WeakKeyDictionary[Transformer, tuple[tuple, Facts]] = WeakKeyDictionary()


def facts_of(network: Transformer) -> Facts:
    """The facts of a network, found again whenever torch knows that a weight has changed.

    Torch counts in-place changes of a tensor, and its own autograd relies on that count. As there, a change made behind
    torch's back (through ``.data`` or a NumPy view) goes unnoticed: call :func:`forget` after one.
    """
    version = _version(network)
    known = _CACHE.get(network)
    if known is None or version is None or known[0] != version:
        known = (version or (), _facts(network))
        _CACHE[network] = known
    return known[1]


def parts_of(network: Transformer) -> tuple[Part, ...]:
    return facts_of(network).parts


def _facts(network: Transformer) -> Facts:
    shape = network.shape()
    empty = next((name for name, weight in network.named_parameters() if weight.numel() == 0), None)
    width = max(shape["d"], shape["r"], shape["h"] * shape["m"])
    if empty is not None or width > WIDEST:
        return Facts((), width, empty)
    return Facts(tuple(part for name, stage in network.stages.items() for part in _cut(name, stage)), width, empty)


def forget(network: Transformer) -> None:
    """Forget what is known of a network's weights."""
    _CACHE.pop(network, None)


def _version(network: Transformer) -> tuple | None:
    tensors = [*network.parameters(), *network.buffers()]
    if any(t.is_inference() for t in tensors):  # these do not count their changes
        return None
    return tuple((t.data_ptr(), t._version) for t in tensors)


def host(tensor: torch.Tensor) -> Array:
    return tensor.detach().cpu().numpy()


def _cut(name: str, stage: Stage) -> Iterator[Part]:
    """The halves of a stage that can change anything, grouped by kind, each group cut into sweeps and the rest."""
    attention, feed_forward = stage.attention, stage.feed_forward
    alive_a, alive_f = _alive(None if attention is None else (attention.W_O,)), _alive(
        None if feed_forward is None else (feed_forward.W_2, feed_forward.b_2)
    )
    order = np.concatenate([2 * alive_a, 2 * alive_f + 1])
    order.sort()
    is_feed_forward, layer = order % 2 == 1, order // 2
    cuts = np.flatnonzero(is_feed_forward[1:] != is_feed_forward[:-1]) + 1
    for layers, flags in zip(np.split(layer, cuts), np.split(is_feed_forward, cuts), strict=True):
        if len(layers) == 0:
            continue
        group = Part(name, "feed_forward" if flags[0] else "attention", layers, None)
        yield from _feed_forward_parts(group, feed_forward) if flags[0] else _attention_parts(group, attention)


def _alive(outputs: tuple[torch.Tensor, ...] | None) -> Array:
    """Layers with an output weight that is not 0."""
    if outputs is None:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.logical_or.reduce([(host(w) != 0).reshape(len(w), -1).any(axis=1) for w in outputs]))


def _feed_forward_parts(group: Part, stack: FeedForward | None) -> Iterator[Part]:
    if stack is None:
        raise ValueError("A feed-forward group needs a feed-forward stack.")
    W_1, b_1, W_2, b_2 = (host(w)[group.span] for w in stack.parameters_list())
    depth, rows = len(W_1), np.arange(len(W_1))
    alive = (W_2 != 0).any(axis=1)  # (depth, r): units that can change anything
    direction = W_1[rows, alive.argmax(axis=1)]  # (depth, d)
    shared = ((W_1 == direction[:, None]).all(axis=2) | ~alive).all(axis=1)
    silent = ((b_2 == 0) & ~np.signbit(b_2)).all(axis=1)  # −0 + −0 would be −0: then z + 0 is not what happens
    sane = np.logical_and.reduce([(np.abs(w) <= LARGEST_WEIGHT).reshape(depth, -1).all(axis=1) for w in (W_1, b_1, W_2)])
    qualifies = shared & silent & sane & alive.any(axis=1)
    bias = np.where(alive, b_1, -np.inf).max(axis=1)
    knot = None
    linked = (direction[1:] == direction[:-1]).all(axis=1) & (bias[1:] >= bias[:-1])
    if stack.phi is not None:
        knots, slopes, intercepts = (host(w)[group.span] for w in stack.phi.parameters_list())
        knot = knots[:, 0, 0]
        zero_below = (slopes[:, :, 0] == 0).all(axis=1) & (intercepts[:, :, 0] == 0).all(axis=1)
        qualifies &= zero_below & np.isfinite(knot) & (knots.shape[1] == 1)
        linked &= knot[1:] == knot[:-1]
    for start, stop, sweeps in _runs(qualifies, linked):
        layers = group.layers[start:stop]
        sweep = FeedForwardSweep(
            direction[start], np.ascontiguousarray(bias[start:stop]), None if knot is None else float(knot[start])
        )
        yield Part(group.stage, group.kind, layers, sweep if sweeps else None)


def _attention_parts(group: Part, stack: Attention | None) -> Iterator[Part]:
    if stack is None:
        raise ValueError("An attention group needs an attention stack.")
    W_Q, b_Q, W_K, W_V, W_O = (host(w)[group.span] for w in stack.parameters_list())
    depth, h, m, _ = W_Q.shape
    if (h, m) != (2, 1):
        yield group
        return
    sane = np.logical_and.reduce(
        [(np.abs(w) <= LARGEST_WEIGHT).reshape(depth, -1).all(axis=1) for w in (W_Q, b_Q, W_K, W_V, W_O)]
    )
    twins = [(w[:, 0] == w[:, 1]).reshape(depth, -1).all(axis=1) for w in (W_Q, W_K, W_V)]
    opposite = (W_O[:, 0] == -W_O[:, 1]).reshape(depth, -1).all(axis=1)
    query, key = W_Q[:, 0, 0], W_K[:, 0, 0]
    upper, lower = b_Q[:, :, 0].max(axis=1), b_Q[:, :, 0].min(axis=1)
    linked = (query[1:] == query[:-1]).all(axis=1) & (key[1:] == key[:-1]).all(axis=1)
    linked &= (upper[1:] <= upper[:-1]) & (lower[1:] <= lower[:-1])
    for start, stop, sweeps in _runs(sane & opposite & np.logical_and.reduce(twins), linked):
        sweep = AttentionSweep(query[start], key[start], upper[start:stop].copy(), lower[start:stop].copy())
        yield Part(group.stage, group.kind, group.layers[start:stop], sweep if sweeps else None)


def _runs(qualifies: Array, linked: Array) -> Iterator[tuple[int, int, bool]]:
    """(start, stop, whether a sweep): maximal chains of qualifying, linked layers; what lies between them, together."""
    continues = np.concatenate([[False], linked & qualifies[1:] & qualifies[:-1]])
    starts = np.flatnonzero(~continues)
    stops = np.append(starts[1:], len(qualifies))
    long = stops - starts >= SHORTEST_SWEEP
    begun = 0
    for start, stop in zip(starts[long].tolist(), stops[long].tolist(), strict=True):
        if begun < start:
            yield begun, start, False
        yield start, stop, True
        begun = stop
    if begun < len(qualifies):
        yield begun, len(qualifies), False
