"""Rigorous enclosures: a network of the class T^{h,m,r}, read from its weights, evaluated on balls.

Statement. For every cube of the grid, the returned ball contains g(X) for *all* X in the cube's core (each entry at
least a margin away from the ends of its cell), g being the network in exact real arithmetic.

Why a whole core and not a point: a core entry is a ball of half a cell. A feed-forward layer with known active units
is the affine map (I + Σ W_2 W_1^T) z + c; on a quantising layer its slope is exactly 0, so the ball collapses to a
point, and everything after that works on points with radii near 1e-300. Two forms of the same affine map are computed,
the affine one (right for wide balls) and the plain one (right for narrow ones), and the smaller radius is kept.

Why softmax costs nothing: with t* the token of the largest logit, head = v_* + Σ_t p_t (v_t − v_*), and the p_t of all
others lie in [0, e^{gap}]. Ties have v_t − v_* = 0: tokens with equal columns stay equal through every layer.

Speed. A run of layers that share one direction and whose largest biases never decrease can only touch a token from the
first layer on whose bias exceeds −(direction · z); bisection finds it, and layers before it add exactly 0. This is
checked on the weights for every run; layers that do not qualify are evaluated one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from thereexists.arithmetic import balls, wide
from thereexists.arithmetic.balls import Array, Ball
from thereexists.certificates.ramps import core_ends, core_margins
from thereexists.core import shards
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import in_full
from thereexists.functions.grid import Grid
from thereexists.model import Attention, FeedForward, Stage, Transformer

_WIDE = 64  # entries of W_1; the proof's own networks have r·d ≤ 4d


def enclose_cubes(network: Transformer, grid: Grid, numbers: Array) -> Ball:
    """Enclosures of g on the cores of the cubes with these numbers: (cubes, n, d)."""
    return Encloser(network, grid)(numbers)


class Encloser:
    """Enclosures of one network on one grid; what does not depend on the cubes is done once. Weights must not change.

    Tokens meet only in attention, so the stages before the first attention run once for every cell of a token.
    """

    def __init__(self, network: Transformer, grid: Grid):
        refuse_extreme_weights(network)
        stages = list(network.stages.values())
        modified = any(stage.feed_forward is not None and stage.feed_forward.phi is not None for stage in stages)
        if network.rho not in WEIGHTS or modified:
            raise ValueError(f"Enclosures are for ReLU networks with one of {sorted(WEIGHTS)}.")
        alone = next((i for i, stage in enumerate(stages) if stage.attention is not None), len(stages))
        self.network, self.grid, self.together = network, grid, stages[alone:]
        self.runs = {stage: self._released(_runs(stage)) for stage in stages}
        self.sparse = network.wide or any(s.attention is not None and s.attention.pattern is not None for s in stages)
        Z = token_cores(network, grid)  # (n, K, d)
        for stage in stages[:alone]:
            Z = self._feed_forward_stage(Z, stage)
        self.cells = Z

    def __call__(self, numbers: Array) -> Ball:
        network, grid = self.network, self.grid
        cells = grid.cube(numbers) @ (grid.N ** np.arange(grid.d))  # (cubes, n)
        Z = self.cells[np.arange(grid.n), cells]  # (cubes, n, d)
        twins = np.eye(grid.n, dtype=bool)[None].repeat(len(numbers), axis=0) if self.sparse else find_twins(Z)
        with np.errstate(over="ignore", invalid="ignore"):
            for stage in self.together:
                Z = self._released(self._stage(Z, stage, network.rho, twins))
            W_out, (cubes, n, d) = network.output_map(), Z.mid.shape
            if W_out is not None:
                Z = _reshaped(wide.linear(_reshaped(Z, (-1, d)), W_out), (cubes, n, len(W_out)))
        known = np.isfinite(Z.mid) & np.isfinite(Z.rad)
        return Ball(np.where(known, Z.mid, 0.0), np.where(known, Z.rad, np.inf))

    def _released(self, found: Any) -> Any:
        """What was found with the last stage's weights; their pages are given back if they are mapped from files."""
        shards.release(self.network)
        return found

    def _stage(self, Z: Ball, stage: Stage, rho: str, twins: Array) -> Ball:
        """One stage on whole sequences (cubes, n, d)."""
        if stage.attention is None:
            return self._feed_forward_stage(Z, stage)
        shape = Z.mid.shape
        for layer in range(stage.depth):
            if _is_wide(stage.attention.W_O):
                Z = wide.attention(Z, stage.attention, layer)
            else:
                Z = attention_layer(Z, stage.attention, layer, rho, twins)
            if stage.feed_forward is not None:
                weights = _weights(stage.feed_forward)
                feed_forward = wide.feed_forward if _is_wide(stage.feed_forward.W_1) else feed_forward_layer
                Z = _reshaped(feed_forward(_reshaped(Z, (-1, shape[-1])), *(w[layer] for w in weights)), shape)
        return Z

    def _feed_forward_stage(self, Z: Ball, stage: Stage) -> Ball:
        return enclose_stage(Z, stage, self.runs[stage])


def enclose_stage(Z: Ball, stage: Stage, runs: list[Run] | None = None) -> Ball:
    """A stage without attention, on any number of tokens (…, d)."""
    if stage.feed_forward is None:
        return Z
    shape, weights = Z.mid.shape, _weights(stage.feed_forward)
    Z = _reshaped(Z, (-1, shape[-1]))
    if _is_wide(stage.feed_forward.W_1):
        for layer in range(stage.depth):
            Z = wide.feed_forward(Z, *(w[layer] for w in weights))
    for run in _runs(stage) if runs is None else runs:
        if run.direction is None:
            Z = feed_forward_layer(Z, *(w[run.start] for w in weights))
        else:
            Z = _swept(Z, weights, run)
    return _reshaped(Z, shape)


def _runs(stage: Stage) -> list[Run]:
    """The runs of a stage that is swept; none of one that has attention, or wide layers."""
    if stage.attention is not None or stage.feed_forward is None or _is_wide(stage.feed_forward.W_1):
        return []
    return list(find_runs(*_weights(stage.feed_forward)))


def refuse_extreme_weights(network: Transformer) -> None:
    """Products of weights must neither overflow nor underflow: |w| is 0 or between 1e-150 and 1e150."""
    for name, weight in network.state_dict().items():
        shards.release(network)
        size = np.abs(weight.detach().numpy().astype(np.float64))
        if not ((size == 0) | ((size >= 1e-150) & (size <= 1e150))).all():
            raise InvalidInput(
                f"The weight {name} has entries outside ±[1e-150, 1e150]; no enclosure is made of those."
            )


def refuse_rounded_edges(grid: Grid) -> None:
    """Every cell edge and every end of a core must be a float exactly; else cells and cores are not what they say."""
    lower, upper = core_margins(grid)
    for origin, step, l, u in zip(grid.origin, grid.step, lower.tolist(), upper.tolist(), strict=True):
        edges = origin + np.arange(grid.N + 1) * step
        for k, edge in enumerate(edges.tolist()):
            exact = Fraction(origin) + k * Fraction(step)
            ends = ((edge + l, exact + Fraction(l)), (edge - l, exact - Fraction(l)), (edge - u, exact - Fraction(u)))
            if any(Fraction(found) != wanted for found, wanted in ((edge, exact), *ends)):
                raise InvalidInput(
                    f"The cells of width {in_full(step)} lie too far from 0 (at {in_full(edge)}) for float64 to hold "
                    "their edges; move the domain towards 0 or choose a coarser grid."
                )


def find_twins(Z: Ball) -> Array:
    """Tokens that hold the same exactly known column: (cubes, n, n). No dense layer ever tells them apart."""
    known = (Z.rad == 0).all(-1)
    same = (Z.mid[:, :, None] == Z.mid[:, None]).all(-1) & known[:, :, None] & known[:, None]
    return same | np.eye(Z.mid.shape[1], dtype=bool)


def token_cores(network: Transformer, grid: Grid, encoded: bool = True) -> Ball:
    """The core of every cell at every position, positional encoding added: (n, K, d)."""
    low, high = core_ends(grid, np.arange(grid.K)[:, None] // grid.N ** np.arange(grid.d) % grid.N)  # (K, d)
    mid = (low + high) / 2
    rad = np.nextafter(np.maximum(np.maximum(high - mid, mid - low), 0.0), np.inf)  # of nothing, a point
    W_in = network.input_map()
    if W_in is not None:
        mid, rad = wide.linear(Ball(mid, rad), W_in)
    tokens = Ball(np.broadcast_to(mid, (grid.n, *mid.shape)), np.broadcast_to(rad, (grid.n, *rad.shape)))
    if network.E is None or not encoded:
        return tokens
    return balls.add(tokens, balls.exact(network.E.detach().numpy()[:, None, :]))


def attention_layer(Z: Ball, attention: Attention, layer: int, rho: str, twins: Array) -> Ball:
    """Z + Σ_heads W_O (v_* + Σ_t p_t (v_t − v_*)) on balls (cubes, n, d).

    Heads that choose the same token have their matrices W_O W_V summed before they meet it: the two heads of a
    selective shift cancel exactly on the tokens that it does not select.
    """
    W_Q, b_Q, W_K, W_V, W_O = (w.detach().numpy()[layer] for w in attention.parameters_list())
    n, d = Z.mid.shape[1:]
    mask = attention.mask(layer)
    visible = np.ones((n, n), dtype=bool) if mask is None else mask.numpy()  # (j, t)
    hidden = ~visible[None, :, :, None]
    chosen_by_heads = balls.exact(np.zeros((1, 1, 1, d, d)))  # Σ of W_O W_V over the heads: (cubes, j, t, d, d)
    rest = balls.exact(np.zeros((1, 1, d)))
    for head in np.flatnonzero(W_O.any(axis=(1, 2))):
        Q = balls.add(_linear(Z, W_Q[head]), balls.exact(b_Q[head]))  # (cubes, n, m)
        K, V = _linear(Z, W_K[head]), _linear(Z, W_V[head])
        star = np.where(visible, Q.mid @ K.mid.transpose(0, 2, 1), -np.inf).argmax(-1)  # (cubes, j)
        chosen = (np.arange(len(star))[:, None], star)
        same = twins[chosen][..., None] | hidden  # the chosen one, its twins, and those out of sight: (cubes, j, t, 1)
        K_gap = _zero_where(same, balls.subtract(K[:, None], K[chosen][:, :, None]))  # (cubes, j, t, m)
        V_gap = _zero_where(same, balls.subtract(V[:, None], V[chosen][:, :, None]))
        P = WEIGHTS[rho](balls.dot(Q[:, :, None], K_gap), visible)  # from logit − logit of the chosen token
        mixed = balls.total(balls.multiply(_expanded(P, -1), V_gap), axis=2)
        rest = balls.add(rest, _linear(mixed, W_O[head]))
        matrix = balls.dot(balls.exact(W_O[head][:, None]), balls.exact(W_V[head].T[None]))  # (d, d)
        own = (np.arange(n) == star[..., None])[..., None, None].astype(float)
        chosen_by_heads = balls.add(chosen_by_heads, balls.multiply(balls.exact(own), matrix))
    update = balls.total(balls.dot(chosen_by_heads, Z[:, None, :, None]), axis=2)
    return balls.add(Z, balls.add(update, rest))


def _softmax_weights(gap: Ball, visible: Array) -> Ball:
    weight = _zero_where(~visible, balls.exponential(gap))
    return balls.multiply(weight, _expanded(balls.reciprocal(balls.total(weight, -1)), -1))


def _sparsemax_weights(gap: Ball, visible: Array) -> Ball:
    """0 from a gap of 1 on: p_t = max(l_t − τ, 0) with τ ≥ l_* − 1. Otherwise only 0 ≤ p_t ≤ 1 is used."""
    return _zero_where((gap.high <= -1) | ~visible, Ball(np.full_like(gap.mid, 0.5), np.full_like(gap.mid, 0.5)))


WEIGHTS = {"softmax": _softmax_weights, "sparsemax": _sparsemax_weights}


def feed_forward_layer(Z: Ball, W_1: Array, b_1: Array, W_2: Array, b_2: Array) -> Ball:
    """z + W_2 ReLU(W_1 z + b_1) + b_2 on balls (tokens, d); the weights may differ from token to token."""
    W1, B1, W2, B2 = balls.exact(W_1), balls.exact(b_1), balls.exact(W_2), balls.exact(b_2)
    pre = balls.add(balls.dot(W1, Z[:, None, :]), B1)  # (tokens, r)
    hidden = balls.relu(pre)
    plain = balls.add(Z, balls.add(balls.total(balls.multiply(W2, hidden[:, None, :]), -1), B2))

    active = (pre.low >= 0).astype(float)
    decided = np.asarray(((pre.low >= 0) | (pre.high <= 0)).all(axis=1))
    live = balls.multiply(W2, balls.exact(active[:, None, :]))  # (tokens, d, r), inactive units gone
    products = balls.multiply(_expanded(live, -1), _expanded(W1, -3))  # W_2[a, j] W_1[j, b]: (tokens, a, j, b)
    slope = balls.total(products, axis=2)  # the units are summed before the identity joins: large terms cancel first
    slope = balls.add(slope, balls.exact(np.eye(Z.mid.shape[1])))
    constant = balls.intersect_radii(  # exact in short dyadic numbers, or else to twice the precision
        balls.dot(live, _expanded(B1, -2)), balls.dot_of_floats(live.mid, np.expand_dims(b_1, -2))
    )
    affine = balls.add(balls.dot(slope, Z[:, None, :]), balls.add(constant, B2))
    affine = Ball(affine.mid, np.where(decided[:, None], affine.rad, np.inf))
    return balls.intersect_radii(plain, affine)


@dataclass(frozen=True)
class Run:
    """Layers ``start … stop−1`` of a stack. With ``direction``, they qualify for bisection by ``bias`` (sorted)."""

    start: int
    stop: int
    direction: Array | None
    bias: Array


def _swept(Z: Ball, weights: tuple[Array, ...], run: Run) -> Ball:
    direction = balls.exact(run.direction)
    return sweep(Z, weights, run, lambda Z: balls.dot(direction, Z).high, feed_forward_layer)


def sweep(
    Z: Ball, weights: tuple[Array, ...], run: Run, highest: Callable[[Ball], Array], through: Callable[..., Ball]
) -> Ball:
    """Every token jumps from one layer that may touch it to the next; the layers between add exactly 0.

    ``highest``: what the units of the run read of a token, at most; ``through``: one layer.
    """
    mid, rad = Z.mid.copy(), Z.rad.copy()
    position = np.zeros(len(mid), dtype=np.int64)
    moving = np.arange(len(mid))
    while len(moving):
        high = highest(Ball(mid[moving], rad[moving]))
        high = np.where(np.isnan(high), np.inf, high)  # nothing known: the very first layer may act
        first = np.searchsorted(run.bias, -high, side="right")
        layer = np.maximum(position[moving], first)
        touched = layer < run.stop - run.start
        moving, layer = moving[touched], layer[touched]
        if len(moving):
            moved = through(Ball(mid[moving], rad[moving]), *(w[run.start + layer] for w in weights))
            mid[moving], rad[moving] = moved
            position[moving] = layer + 1
    return Ball(mid, rad)


def find_runs(W_1: Array, b_1: Array, W_2: Array, b_2: Array) -> Iterator[Run]:
    """Cut a stack into maximal runs that qualify for bisection, and single layers that do not."""
    depth = len(W_1)
    alive = (W_2 != 0).any(axis=1)  # (depth, r): units that can change anything
    first = alive.argmax(axis=1)
    direction = W_1[np.arange(depth), first]  # (depth, d)
    same = ((W_1 == direction[:, None]).all(axis=2) | ~alive).all(axis=1)
    qualifies = same & alive.any(axis=1) & (b_2 == 0).all(axis=1)
    bias = np.where(alive, b_1, -np.inf).max(axis=1)
    continues = np.zeros(depth, dtype=bool)
    continues[1:] = (
        qualifies[1:] & qualifies[:-1] & (direction[1:] == direction[:-1]).all(axis=1) & (bias[1:] >= bias[:-1])
    )
    starts = np.flatnonzero(~continues)
    for start, stop in zip(starts, [*starts[1:], depth], strict=True):
        yield Run(int(start), int(stop), direction[start] if qualifies[start] else None, bias[start:stop])


def _is_wide(weight: Any) -> bool:
    """Whether a layer's matrices are too large for a ball for every product."""
    return weight.shape[-1] * weight.shape[-2] > _WIDE


def _weights(feed_forward: FeedForward) -> tuple[Array, ...]:
    return tuple(w.detach().numpy() for w in feed_forward.parameters_list())


def _linear(Z: Ball, W: Array) -> Ball:
    """W z for every token: (cubes, n, d) and (m, d) -> (cubes, n, m)."""
    return balls.dot(_expanded(Z, -2), balls.exact(W))


def _zero_where(certain: Array, x: Ball) -> Ball:
    return Ball(np.where(certain, 0.0, x.mid), np.where(certain, 0.0, x.rad))


def _expanded(x: Ball, axis: int) -> Ball:
    return Ball(np.expand_dims(x.mid, axis), np.expand_dims(x.rad, axis))


def _reshaped(x: Ball, shape: tuple[int, ...]) -> Ball:
    return Ball(x.mid.reshape(shape), x.rad.reshape(shape))
