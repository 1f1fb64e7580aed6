"""What a deep network's float64 run gives on the core of every cube: a ball that holds for every conforming machine.

Statement. For every float64 input in a cube's core, and every machine that keeps to the assumptions below, in any order
of the sums and with or without fused multiply-add, the run's output lies in the returned ball. A radius of 0 means that
all machines give exactly this number; an infinite one that nothing is proved.

1. **Order-free exactness.** If the terms of a sum are multiples of 2^k and their absolute values sum to less than
   2^(k+53), then so is, and does, every partial sum: each is a float64, and nothing is rounded in any order. A product
   of a multiple of 2^a and one of 2^b is a multiple of 2^(a+b): ``_lowest_bit`` reads a and b off the numbers.
2. **Sterbenz.** For floats c/2 ≤ z ≤ 2c the difference z − c is exact. So a quantising layer, z − ReLU(z − e) with its
   other units closed, gives exactly e for every z of a cell beside e, however z was rounded before.
3. **One addition** of two floats is rounded once, and monotonely: a unit ±z + b that is at most 0 in real numbers is at
   most 0 in float64, and stays closed.
4. **Otherwise** γ_m = m u/(1 − m u), u = 2^-53, times the sum of the absolute values bounds the error of m terms in any
   order (Higham 2002, section 3.1).
5. **Attention.** If the largest logit exceeds the others by 746, rounding included, their weights underflow to 0 and
   its own is exp(0)/1 = 1: the head gives that token's value. If several are near each other, it gives something
   between their values, up to γ; tokens with the same exact column share the mass equally.

Compact networks have a proof of their own, ``float_run.py``: where it holds, the output is the real one rounded once.

What the real network does with a ball is its enclosure (``enclose.py``); rounding is added to that. Assumed of the
machine: IEEE 754 float64 with rounding to nearest, no lower precision inside (TF32), no flush of results to 0 that
matters; softmax computed as exp(l − max l) over its sum, with exp(0) = 1, exp(x) = 0 for x ≤ −746, and exp right to
four units in the last place between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from thereexists.arithmetic.balls import Array, Ball
from thereexists.certificates.enclose import Run, feed_forward_layer, find_runs, sweep, token_cores
from thereexists.certificates.float_run import dtype_verdicts
from thereexists.core import shards
from thereexists.functions.grid import Grid
from thereexists.model import Attention, EmbeddedTransformer, FeedForward, Stage, Transformer

U = 2.0**-53
UNDERFLOW = 746.0
FINITE = 2.0**1000  # of a logit or a value: differences and sums of so many are numbers, too
_LARGE = 2.0**500  # times any weight, of at most 1e150, it is a number
_BITS = 53
_NO_BIT = 1 << 13  # of the number 0, which is a multiple of everything
_UP = 1 + 2.0**-40  # for sums of absolute values that are themselves rounded


class FloatRunner:
    """Balls of the float64 run of one network on one grid; ``qualifies`` says of which networks."""

    def __init__(self, network: Transformer, grid: Grid):
        stages = list(network.stages.values())
        alone = next((i for i, stage in enumerate(stages) if stage.attention is not None), len(stages))
        self.network, self.grid, self.together = network, grid, stages[alone:]
        self.runs = {stage: _runs(stage) for stage in stages}
        cores = token_cores(network, grid, encoded=False)
        Z = _encoded(cores, network)
        for stage in stages[:alone]:
            Z = self._feed_forward(Z, stage)
        self.cells = Z
        shards.release(network)

    def __call__(self, numbers: Array) -> Ball:
        """The run on the cores of these cubes: (cubes, n, d)."""
        grid = self.grid
        cells = grid.cube(numbers) @ (grid.N ** np.arange(grid.d))
        Z = self.cells[np.arange(grid.n), cells]
        with np.errstate(all="ignore"):
            for stage in self.together:
                if stage.attention is None:
                    Z = self._feed_forward(Z, stage)
                    shards.release(self.network)
                    continue
                for layer in range(stage.depth):
                    Z = float_attention(Z, stage.attention, layer)
        known = np.isfinite(Z.mid) & np.isfinite(Z.rad)
        return Ball(np.where(known, Z.mid, 0.0), np.where(known, Z.rad, np.inf))

    def _feed_forward(self, Z: Ball, stage: Stage) -> Ball:
        weights, shape = _weights(stage.feed_forward), Z.mid.shape
        Z = Ball(Z.mid.reshape(-1, shape[-1]), Z.rad.reshape(-1, shape[-1]))
        with np.errstate(all="ignore"):
            for run in self.runs[stage]:
                single = run.direction is None
                Z = float_layer(Z, *(w[run.start] for w in weights)) if single else _swept(Z, weights, run)
        return Ball(Z.mid.reshape(shape), Z.rad.reshape(shape))


def float_evaluator(network: Transformer, grid: Grid) -> Callable[[Array, Ball], Ball] | None:
    """From cubes and their enclosures over the reals to balls of the float64 run; None where nothing is proved of it.

    A compact network that is safe in float64 gives, off the ramps, its output over the reals rounded once.
    """
    if network.wide:
        safe = dtype_verdicts(cast(EmbeddedTransformer, network), ["float64"], grid)["float64"].holds
        return (lambda numbers, G: Ball(G.mid, (G.rad + U * (np.abs(G.mid) + G.rad)) * _UP)) if safe else None
    runner = FloatRunner(network, grid) if qualifies(network) else None
    return None if runner is None else lambda numbers, G: runner(numbers)


def qualifies(network: Transformer) -> bool:
    """Deep networks of softmax and ReLU with heads of size 1, whose attention stages have no feed-forward layers."""
    stages = list(network.stages.values())
    plain = all(s.feed_forward is None or s.feed_forward.phi is None for s in stages)
    apart = all(s.attention is None or s.feed_forward is None for s in stages)
    heads = all(s.attention is None or s.attention.W_Q.shape[2] == 1 for s in stages)
    return not network.wide and network.rho == "softmax" and plain and apart and heads


def _encoded(cores: Ball, network: Transformer) -> Ball:
    """The float input plus E, rounded once: (n, K, d)."""
    if network.E is None:
        return cores
    mid = cores.mid + network.E.detach().numpy()[:, None, :]
    return Ball(mid, (cores.rad + 3 * U * (np.abs(mid) + cores.rad)) * _UP)


def float_layer(Z: Ball, W_1: Array, b_1: Array, W_2: Array, b_2: Array) -> Ball:
    """z + W_2 ReLU(W_1 z + b_1) + b_2 in float64, on balls (tokens, d); the weights may differ from token to token.

    The layer over the reals takes the ball to ``real``. In float64 a unit is off by ``error`` at most, ReLU does not
    enlarge that, and the last sum is off by ``rounding``.
    """
    d, r = W_1.shape[-1], W_1.shape[-2]
    real = feed_forward_layer(Z, W_1, b_1, W_2, b_2)
    z, rad = Z.mid[:, None, :], Z.rad[:, None, :]
    size = ((np.abs(W_1) * (np.abs(z) + rad)).sum(-1) + np.abs(b_1)) * _UP  # (tokens, r)
    points = ~((W_1 != 0) & (rad > 0)).any(-1)  # units that read exactly known numbers
    exact = points & _fits(size, np.minimum(_bits(W_1, z).min(-1), _lowest_bit(b_1)))
    pre, spread = (W_1 * z).sum(-1) + b_1, (np.abs(W_1) * rad).sum(-1) * _UP
    reads = np.count_nonzero(np.broadcast_to(W_1, (len(Z.mid), r, d)), axis=-1)
    below, beside = _one_row(Z, W_1, b_1, reads == 1)
    error = np.where(exact | beside | (reads == 0), 0.0, 2 * gamma(d + 2) * size)
    closed = below | (pre + spread + error <= 0)
    error = np.where(closed, 0.0, error)
    hidden = np.where(closed, 0.0, np.maximum(pre + spread + error, 0.0))

    out = np.abs(W_2) * hidden[:, None, :]  # (tokens, d, r): at most what each unit adds
    written = np.count_nonzero(out, axis=-1) + np.broadcast_to(b_2 != 0, Z.mid.shape)
    total = (np.abs(Z.mid) + Z.rad + out.sum(-1) + np.abs(b_2)) * _UP
    values = np.where(closed, 0.0, np.maximum(pre, 0.0))[:, None, :]
    lattice = np.minimum(_bits(W_2, values).min(-1), np.minimum(_lowest_bit(Z.mid), _lowest_bit(b_2)))
    known = (Z.rad == 0) & ((out == 0) | exact[:, None, :]).all(-1)
    sums = known & _fits(total, lattice)
    plain = (out == 0) | (
        is_power_of_two(W_2) & (error == 0)[:, None, :]
    )  # products of what is not rounded, nor are they
    once = (written <= 1) & plain.all(-1)  # one addition of two floats: rounded once, and not if its result is known
    rounding = np.where(once, np.where(real.rad == 0, 0.0, U * (np.abs(real.mid) + real.rad)), gamma(r + 4) * total)
    rounding = np.where(sums, 0.0, rounding)
    carried = (np.abs(W_2) * error[:, None, :]).sum(-1)
    moved = (real.rad + carried + rounding) * _UP
    return Ball(np.where(written == 0, Z.mid, real.mid), np.where(written == 0, Z.rad, moved))


def _one_row(Z: Ball, W_1: Array, b_1: Array, single: Array) -> tuple[Array, Array]:
    """Of units ±z_i + b: which are surely closed, and which are not rounded for any float of the ball."""
    row = np.abs(W_1).argmax(-1)  # (tokens or 1, r)
    row = np.broadcast_to(row, (len(Z.mid), row.shape[-1]))
    slope = np.take_along_axis(np.broadcast_to(W_1, (len(Z.mid), *W_1.shape[-2:])), row[..., None], -1)[..., 0]
    plain = single & (np.abs(slope) == 1)
    low, high = (np.take_along_axis(end, row, 1) for end in (Z.low, Z.high))
    low, high = np.where(slope > 0, low, -high), np.where(slope > 0, high, -low)  # of ±z
    c = np.broadcast_to(-b_1, low.shape)
    beside = np.where(c >= 0, (low >= c / 2) & (high <= 2 * c), (high <= c / 2) & (low >= 2 * c)) | (c == 0)
    return plain & (high <= c), plain & beside


def _swept(Z: Ball, weights: tuple[Array, ...], run: Run) -> Ball:
    """As the enclosure's sweep: a layer is passed over only if its units are surely closed in float64 too.

    Those that write nothing must not overflow, either, for 0 · ∞ is not 0: beyond ``_LARGE`` every layer is looked at.
    """
    u = np.asarray(run.direction)
    alone = np.count_nonzero(u) == 1 and np.abs(u).max() == 1  # one addition, rounded monotonely
    largest, bit = float(np.abs(run.bias).max()), int(_lowest_bit(run.bias).min())

    def highest(Z: Ball) -> Array:
        z, r = Z
        size = ((np.abs(u) * (np.abs(z) + r)).sum(-1) + largest) * _UP
        exact = (r == 0).all(-1) & _fits(size, np.minimum(_bits(u, z).min(-1), bit))
        error = np.where(exact, 0.0, (np.abs(u) * r).sum(-1) * _UP + (U if alone else 2 * gamma(len(u) + 2)) * size)
        return np.where((np.abs(z) + r).max(-1) <= _LARGE, (u * z).sum(-1) + error, np.inf)

    return sweep(Z, weights, run, highest, float_layer)


def float_attention(Z: Ball, attention: Attention, layer: int) -> Ball:
    """Z + Σ_heads W_O (value of the token with the largest logit) in float64, on balls (cubes, n, d)."""
    W_Q, b_Q, W_K, W_V, W_O = (w.detach().numpy()[layer] for w in attention.parameters_list())
    n = Z.mid.shape[1]
    mask = attention.mask(layer)
    visible = np.ones((n, n), dtype=bool) if mask is None else mask.numpy()
    same, finite = _same_columns(Z), np.ones(len(Z.mid), dtype=bool)
    alive = np.flatnonzero(W_O.any(axis=(1, 2))).tolist()
    heads = []
    for h in range(len(W_O)):
        Q, K, V = _dot(Z, W_Q[h, 0], float(b_Q[h, 0])), _dot(Z, W_K[h, 0], 0.0), _dot(Z, W_V[h, 0], 0.0)  # (cubes, n)
        q, k, v = ((np.abs(part.mid) + part.rad).max(axis=1) for part in (Q, K, V))
        finite &= (q * k <= FINITE) & (v <= FINITE)  # or ∞ − ∞ is weighed, be it by 0
        if h not in alive:
            continue
        sizes = ((np.abs(Z.mid) + Z.rad) @ np.abs(W_V[h, 0])) * _UP  # of the sums that give the values
        alike = same & (K.rad == 0)[:, None, :] & (K.rad == 0)[:, :, None]  # the same column, and the same key
        heads.append(_looked_at(V, sizes, *_near(Q, K, visible), alike))
    difference = _difference(heads, W_V[alive], W_O[alive])
    adds, spread, sizes = np.zeros_like(Z.mid), np.zeros_like(Z.mid), np.abs(Z.mid) + Z.rad
    lattice, known = _lowest_bit(Z.mid), (Z.rad == 0).all(axis=(1, 2))
    for h, head in zip(alive, heads, strict=True):
        w, v, r = W_O[h, :, 0], head.value.mid, head.value.rad
        adds = adds + w * v[..., None]
        sizes = sizes + np.abs(w) * (np.abs(v) + r)[..., None]
        spread = spread + np.where(w == 0, 0.0, np.abs(w) * np.minimum(r, difference)[..., None])
        shares = (n - 1).bit_length()  # a value may come in halves, quarters, …
        lattice = np.minimum(lattice, _lowest_bit(w) + (_lowest_bit(v) - shares)[..., None])
        known = known & (r == 0).all(axis=1)
    sizes = sizes * _UP
    exact = known[:, None, None] & _fits(sizes, lattice)
    untouched = np.broadcast_to(~W_O.any(axis=(0, 2)), exact.shape)
    rounding = np.where(exact | untouched, 0.0, 2 * gamma(len(alive) * n + 6) * sizes)
    rad = np.where(exact | untouched, Z.rad, (Z.rad + spread + rounding) * _UP)
    rad = np.where(finite[:, None, None], rad, np.inf)
    return Ball(np.where(untouched, Z.mid, Z.mid + adds), rad)


class _Head(NamedTuple):
    """What comes out of a head at every token (cubes, n); whom the token may look at (cubes, n, n); and, of those, how
    far their logits are apart at most, how far their values are, and how large the sums are that give these."""

    value: Ball
    near: Array
    apart: Array
    range: Array
    largest: Array


def _near(Q: Ball, K: Ball, visible: Array) -> tuple[Array, Array, Array]:
    """Whom each token may look at: all whose weight does not surely underflow (cubes, j, t); the one with the largest
    logit; and how far the logits of the near ones are apart at most."""
    logits = np.where(visible, Q.mid[:, :, None] * K.mid[:, None, :], -np.inf)
    q, k = np.abs(Q.mid) + Q.rad, np.abs(K.mid) + K.rad
    slack = q[:, :, None] * K.rad[:, None, :] + Q.rad[:, :, None] * k[:, None, :]
    slack = slack + 4 * U * q[:, :, None] * k[:, None, :]
    star = logits.argmax(-1)
    best, loose = (np.take_along_axis(part, star[..., None], -1) for part in (logits, slack))
    gap = best - logits
    near = (~(gap - loose - slack >= UNDERFLOW * _UP) & visible) | (np.arange(logits.shape[-1]) == star[..., None])
    return near, star, np.where(near, gap + loose + slack, 0.0).max(-1) * _UP


def _looked_at(V: Ball, sizes: Array, near: Array, star: Array, apart: Array, same: Array) -> _Head:
    """One near token's value is taken as it is. Several share the mass: what comes is between their values, up to the
    rounding of weights and sum; twins with exact values, a power of two of them, give exactly theirs, the weights being
    1/2, 1/4, …"""
    low, high = ((V.mid - V.rad)[:, None, :], (V.mid + V.rad)[:, None, :])
    low, high = np.where(near, low, np.inf).min(-1), np.where(near, high, -np.inf).max(-1)
    v, r = (np.take_along_axis(part, star, axis=1) for part in V)
    count, largest = near.sum(-1), np.where(near, sizes[:, None, :], 0.0).max(-1)
    twins = (~near | np.take_along_axis(same, star[:, :, None], axis=1)).all(-1)
    equal = (count == 1) | (twins & (r == 0) & (np.frexp(count.astype(float))[0] == 0.5))
    mixed = (np.maximum(high - v, v - low) + gamma(2 * near.shape[-1] + 8) * largest) * _UP
    return _Head(Ball(v, np.where(equal, r, mixed)), near, apart, (high - low) * _UP, largest)


def _difference(heads: list[_Head], W_V: Array, W_O: Array) -> Array | float:
    """Half of how far two heads with opposite outputs may be apart at a token, where they look at the same tokens.

    Both are means of the same numbers. With logits at most D apart the weights of c near tokens lie within a factor
    e^±D of 1/c, so the means differ by (e^D − e^−D)·(range of the values) at most, and by the rounding of both.
    """
    if len(heads) != 2 or (W_O[0] != -W_O[1]).any() or (W_V[0] != W_V[1]).any():
        return np.inf
    first, second = heads
    D = np.maximum(first.apart, second.apart)
    alike = (first.near == second.near).all(-1) & (D <= 1) & (first.value.mid == second.value.mid)
    apart = 2 * np.sinh(np.minimum(D, 1.0)) * first.range
    rounding = 2 * gamma(2 * first.near.shape[-1] + W_V.shape[-1] + 10) * first.largest
    return np.where(alike, (apart + rounding) * _UP, np.inf)


def _same_columns(Z: Ball) -> Array:
    """Tokens that hold the same exactly known column, and each token and itself: (cubes, n, n)."""
    point = (Z.rad == 0).all(-1)
    same = (Z.mid[:, :, None] == Z.mid[:, None]).all(-1) & point[:, :, None] & point[:, None]
    return same | np.eye(Z.mid.shape[1], dtype=bool)


def _dot(Z: Ball, w: Array, b: float) -> Ball:
    """w·z + b in float64 for every token: (cubes, n)."""
    size = ((np.abs(w) * (np.abs(Z.mid) + Z.rad)).sum(-1) + abs(b)) * _UP
    lattice = np.minimum(_bits(w, Z.mid).min(-1), int(_lowest_bit(np.array(b))))
    exact = (Z.rad == 0).all(-1) & _fits(size, lattice)
    spread = (np.abs(w) * Z.rad).sum(-1) * _UP
    return Ball((w * Z.mid).sum(-1) + b, np.where(exact, 0.0, spread + 2 * gamma(len(w) + 2) * size))


def _fits(size: Array, lattice: Array) -> Array:
    """Whether sums of multiples of 2^lattice whose absolute values sum to ``size`` are exact in any order."""
    return (size < np.ldexp(1.0, np.clip(lattice + _BITS, -1020, 1020))) & (lattice >= -1000)


def _bits(w: Array, z: Array) -> Array:
    """Of products: the exponents of powers of two that they are multiples of."""
    return _lowest_bit(w) + _lowest_bit(z)


def _lowest_bit(x: Any) -> Array:
    """The exponent of the largest power of two that a number is a multiple of; large for 0."""
    x = np.asarray(x, dtype=np.float64)
    mantissa, exponent = np.frexp(x)
    whole = np.where(np.isfinite(x), mantissa * 2.0**_BITS, 0.0).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, _NO_BIT, exponent - _BITS + zeros)


def exact_sums(terms: Array) -> Array:
    """At least |Σ| over the last axis: the sum itself, if it is exact in any order."""
    size = np.abs(terms).sum(axis=-1) * _UP
    exact = _fits(size, _lowest_bit(terms).min(axis=-1))
    return np.abs(terms.sum(axis=-1)) + np.where(exact, 0.0, gamma(terms.shape[-1]) * size)


def is_power_of_two(w: Array) -> Array:
    return np.abs(np.frexp(w)[0]) == 0.5


def gamma(m: int) -> float:
    """γ_m, rounded up."""
    return m * U / (1 - m * U) * _UP


def _runs(stage: Stage) -> list[Run]:
    return [] if stage.feed_forward is None else list(find_runs(*_weights(stage.feed_forward)))


def _weights(layers: FeedForward | None) -> tuple[Array, ...]:
    assert layers is not None  # a stage without attention has them
    return tuple(w.detach().numpy() for w in layers.parameters_list())
