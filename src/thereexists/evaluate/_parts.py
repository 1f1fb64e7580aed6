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
with the largest key (or the smallest), evenly: every other token gets an exact 0. The heads then carry the same number,
and W_O x − W_O x = 0. The layers left for token j have lower_l < τ − s_j and upper_l > −τ − s_j: consecutive ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from thereexists.model import Attention, FeedForward, Stage, Transformer
from thereexists.model.unchanged import WhileUnchanged

Array = np.ndarray

NEEDED_GAP = {
    "hardmax": 2.0**-900,  # any gap that is not lost to underflow
    "softmax": 800.0,  # e^-800 is below half the smallest float64
    "sparsemax": 4.0,  # one-hot from 1 on in real arithmetic; the rest is for rounding
    "entmax15": 4.0,  # one-hot from 2 on
}
LEAST_TAU = 2.0**-900  # of queries that share no mass among different keys
SHORTEST_SWEEP = 4
WIDEST = 16  # features, hidden units, heads × head size: above it matrix products beat streaming
LARGEST_WEIGHT = 2.0**300
LARGEST_COLUMN = 2.0**100  # up to here no half-layer of such weights, as narrow as WIDEST, can overflow


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
    """What the engines know of a network: its parts, its width, and what keeps the kernels from it, if anything."""

    parts: tuple[Part, ...]
    width: int
    trouble: str | None


def parts_of(network: Transformer) -> tuple[Part, ...]:
    return facts_of(network).parts


def _facts(network: Transformer) -> Facts:
    shape = network.shape()
    trouble = next((said for name, weight in network.named_parameters() if (said := _trouble(name, weight))), None)
    width = max(shape["d"], shape["r"], shape["h"] * shape["m"])
    if trouble is not None or width > WIDEST:
        return Facts((), width, trouble)
    return Facts(tuple(part for name, stage in network.stages.items() for part in _cut(name, stage)), width, None)


facts_of = WhileUnchanged(_facts)


def _trouble(name: str, weight: torch.Tensor) -> str | None:
    """Left out layers and units must be ones that add 0 to everything: 0 · ∞ and 0 · NaN are not 0.

    At columns of at most LARGEST_COLUMN they are: t, q, k and v stay below 16 · 2^400 + 2^300, φ(t) below 2^706, logits
    and moves below 2^1012. Engines look at every column that they compute.
    """
    if weight.numel() == 0:
        return f"the weight {name} is empty"
    if name.endswith(".phi.knots"):  # they may be infinite; ``_feed_forward_parts`` looks at them
        return None
    if float(weight.min()) >= -LARGEST_WEIGHT and float(weight.max()) <= LARGEST_WEIGHT:  # False for NaN
        return None
    return f"the weight {name} holds NaN, infinities or numbers beyond 2^300"


def host(tensor: torch.Tensor) -> Array:
    return tensor.detach().cpu().numpy()


def _cut(name: str, stage: Stage) -> Iterator[Part]:
    """The halves of a stage that can change anything, grouped by kind, each group cut into sweeps and the rest."""
    attention, feed_forward = stage.attention, stage.feed_forward
    by_attention = _alive(None if attention is None else (attention.W_O,))
    by_feed_forward = _alive(None if feed_forward is None else (feed_forward.W_2, feed_forward.b_2))
    for kind, layers in _in_order(by_attention, by_feed_forward):
        group = Part(name, kind, layers, None)
        if kind == "attention" and attention is not None:
            yield from _attention_parts(group, attention)
        elif feed_forward is not None:
            yield from _feed_forward_parts(group, feed_forward)


def _in_order(attention: Array, feed_forward: Array) -> Iterator[tuple[str, Array]]:
    """Maximal groups of one kind, in the order of execution: in every layer attention comes first."""
    if len(attention) == 0 or len(feed_forward) == 0:
        if len(attention) or len(feed_forward):
            yield ("attention", attention) if len(attention) else ("feed_forward", feed_forward)
        return
    order = np.sort(np.concatenate([2 * attention, 2 * feed_forward + 1]))
    cuts = np.flatnonzero(order[1:] % 2 != order[:-1] % 2) + 1
    for group in np.split(order, cuts):
        yield ("feed_forward" if group[0] % 2 else "attention"), group // 2


def _alive(outputs: tuple[torch.Tensor, ...] | None) -> Array:
    """Layers with an output weight that is not 0."""
    if outputs is None:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.logical_or.reduce([_any(host(w) != 0) for w in outputs]))


# Reductions over a short last axis are slow in NumPy and stacks are millions of layers deep: column after column.
def _any(flags: Array) -> Array:
    return np.logical_or.reduce(flags.reshape(len(flags), math.prod(flags.shape[1:])).T)


def _all(flags: Array) -> Array:
    return np.logical_and.reduce(flags.reshape(len(flags), math.prod(flags.shape[1:])).T)


def _sane(*stacks: Array) -> Array:
    """Layers whose weights are numbers of at most LARGEST_WEIGHT."""
    if all(-LARGEST_WEIGHT <= w.min() and w.max() <= LARGEST_WEIGHT for w in stacks):  # False for NaN
        return np.ones(len(stacks[0]), dtype=bool)
    return np.logical_and.reduce([_all(np.abs(w) <= LARGEST_WEIGHT) for w in stacks])


def _feed_forward_parts(group: Part, stack: FeedForward) -> Iterator[Part]:
    W_1, b_1, W_2, b_2 = (host(w)[group.span] for w in stack.parameters_list())
    depth, r, _ = W_1.shape
    alive = [_any(W_2[:, :, i] != 0) for i in range(r)]  # units that can change anything: (depth,) each
    direction, bias = W_1[:, 0].copy(), np.full(depth, -np.inf)
    for i in reversed(range(r)):
        direction[alive[i]] = W_1[alive[i], i] if not alive[i].all() else W_1[:, i]
        np.maximum(bias, np.where(alive[i], b_1[:, i], -np.inf), out=bias)
    shared = np.logical_and.reduce([_all(W_1[:, i] == direction) | ~alive[i] for i in range(r)])
    silent = _all((b_2 == 0) & ~np.signbit(b_2))  # −0 + −0 would be −0: then z + 0 is not what happens
    qualifies = shared & silent & _sane(W_1, b_1, W_2) & np.logical_or.reduce(alive)
    linked = _all(direction[1:] == direction[:-1]) & (bias[1:] >= bias[:-1])
    knot = None
    if stack.phi is not None:
        knots, slopes, intercepts = (host(w)[group.span] for w in stack.phi.parameters_list())
        knot = knots[:, 0].min(axis=1)  # below both is the first piece, in whatever order somebody put them
        zero_below = _all(slopes[:, :, 0] == 0) & _all(intercepts[:, :, 0] == 0)
        qualifies &= zero_below & np.isfinite(knot) & (r == 1)
        linked &= knot[1:] == knot[:-1]
    for start, stop, sweeps in _runs(qualifies, linked):
        sweep = FeedForwardSweep(
            direction[start].copy(), bias[start:stop].copy(), None if knot is None else float(knot[start])
        )
        yield Part(group.stage, group.kind, group.layers[start:stop], sweep if sweeps else None)


def _attention_parts(group: Part, stack: Attention) -> Iterator[Part]:
    W_Q, b_Q, W_K, W_V, W_O = (host(w)[group.span] for w in stack.parameters_list())
    _, h, m, _ = W_Q.shape
    if (h, m) != (2, 1):
        yield group
        return
    twins = [_all(w[:, 0] == w[:, 1]) for w in (W_Q, W_K, W_V)]
    qualifies = _sane(W_Q, b_Q, W_K, W_V, W_O) & _all(W_O[:, 0] == -W_O[:, 1]) & np.logical_and.reduce(twins)
    query, key = W_Q[:, 0, 0], W_K[:, 0, 0]
    upper, lower = b_Q[:, :, 0].max(axis=1), b_Q[:, :, 0].min(axis=1)
    linked = _all(query[1:] == query[:-1]) & _all(key[1:] == key[:-1])
    linked &= (upper[1:] <= upper[:-1]) & (lower[1:] <= lower[:-1])
    for start, stop, sweeps in _runs(qualifies, linked):
        sweep = AttentionSweep(
            query[start].copy(), key[start].copy(), upper[start:stop].copy(), lower[start:stop].copy()
        )
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
