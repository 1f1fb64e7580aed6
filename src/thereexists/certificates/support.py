"""Does a network vanish outside a box? Proved from the weights alone, in exact rational arithmetic, or not at all.

Claim: g(X) = 0 for every X with an entry of a token at or below ``low``, or at or above ``high``. Then, for an f that
is 0 outside the box, the integral of ‖f − g‖_p^p over all of R^{d×n} is the one over the box, which is bounded.

The proof, for a network without positions whose stages are: feed-forward, attention, feed-forward.

1. *Before the attention* every layer must act on each feature by itself. A feature's way is then a continuous piecewise
   linear function of one number, and the image of an interval, infinite ones too, under such a function is found
   exactly: at its ends, at the knots inside, and by the slopes at infinity. So we know what every entry is at least, on
   any input (T_i), and what an entry is at least that starts outside the box.
2. *The attention* must read and weigh tokens by one direction u ≥ 0. With ids l = u^T z, a head whose logits are s·l,
   s = k(q l_j + b), gives token j the mean m(s) of the ids under ρ(s·l). For softmax and sparsemax alike ρ(v) maximises
   ⟨v, p⟩ − Ω(p) over the simplex, Ω convex with values in an interval of length ≤ n (log n, ½). Hence m grows with s
   (add the two inequalities of two maximisers), and m(s) ≥ max l − n/s for s > 0 (compare with the largest id alone).
   Two heads with opposite outputs, kq alike and kb − k'b' ≥ 0 therefore never lower a row. A single head with positive
   outputs raises every row of every token by its output times m = max l − n/s at least, s ≥ k(q·u^T T + b): or lowers
   it, where m < 0. The largest id is at least G, first that of a token with an entry outside; it moves with its rows.
3. *After it*, one layer Z += w·ReLU(a^T Z + b) with a ≥ 0, w < 0 and −w_i a_i ≥ 1 sends all Z ≥ T to Z ≤ 0, if it does
   so with Z = T: no row grows with any entry. The next layers must act on each feature by itself and send (−∞, 0] to
   the single point 0. Every token of the sequence now is the column 0.
4. *The rest* is feed-forward, and its enclosure of the column 0 must be exactly 0.

Networks of another form are not proved. Those over scratch rows: ``support_wide.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, cast

import numpy as np

from thereexists.arithmetic.balls import Ball
from thereexists.certificates.enclose import enclose_stage
from thereexists.core.verdict import Verdict
from thereexists.functions.target import Target
from thereexists.model import EmbeddedTransformer, FeedForward, Stage, Transformer

Interval = tuple[Fraction | None, Fraction | None]  # None: infinite
Units = list[tuple[Fraction, Fraction, Fraction]]  # of one feature: (a, b, w) for Z += w·ReLU(a·Z + b)
_NOTHING: Interval = (None, None)
_HOLDS = "0 as soon as one entry of one token is outside the box, proved from the weights"


class _Unproved(Exception):
    """Why the weights do not prove it."""


def _no(why: str) -> NoReturn:
    raise _Unproved(why)


def vanishes_outside(network: Transformer, target: Target, n: int) -> Verdict:
    """Whether g is 0 for all inputs with an entry that is not strictly inside the target's box."""
    try:
        if network.wide:
            from thereexists.certificates.support_wide import prove_wide

            prove_wide(cast(EmbeddedTransformer, network), target.low, target.high, n, _no)
        else:
            _prove_deep(network, target.low, target.high, n)
    except _Unproved as why:
        return Verdict(False, (str(why),))
    return Verdict(True, (_HOLDS,))


def _prove_deep(network: Transformer, low: np.ndarray, high: np.ndarray, n: int) -> None:
    if network.E is not None:
        _no("with a positional encoding E a network is not 0 outside a box: g(P(X + E) − E) is P times g(X)")
    stages = list(network.stages.values())
    at = [i for i, stage in enumerate(stages) if stage.attention is not None]
    if len(at) != 1 or network.rho not in ("softmax", "sparsemax"):
        _no("it is not of the form feed-forward, attention, feed-forward")
    least, outer = _before(stages[: at[0]], low, high)
    columns = _attended(stages[at[0]], least, outer, n)
    rest = _emptied(stages[at[0] + 1 :], columns)
    Z = Ball(np.zeros((1, len(low))), np.zeros((1, len(low))))
    for stage in rest:
        Z = enclose_stage(Z, stage)
    if Z.mid.any() or Z.rad.any():
        _no("the value layers do not answer the column 0 by 0")


def _before(stages: list[Stage], low: np.ndarray, high: np.ndarray) -> tuple[list[Fraction], list[Fraction]]:
    """What every entry is at least after these stages, and what one is at least that starts outside: (d,) each."""
    d = len(low)
    ways: list[list[Interval]] = [
        [_NOTHING] * d,
        [(None, Fraction(x)) for x in low.tolist()],
        [(Fraction(x), None) for x in high.tolist()],
    ]
    for stage in stages:
        for units, constant in _by_feature(stage, d):
            ways = [[_image(x, u, c) for x, u, c in zip(way, units, constant, strict=True)] for way in ways]
    bottoms = [[x[0] for x in way] for way in ways]
    if any(bottom is None for way in bottoms for bottom in way):
        _no("an entry outside the box can come out of the first layers as far below 0 as it likes")
    anywhere, below, above = cast(list[list[Fraction]], bottoms)
    return anywhere, [min(a, b) for a, b in zip(below, above, strict=True)]


def _by_feature(stage: Stage, d: int) -> Iterator[tuple[list[Units], list[Fraction]]]:
    """The layers of a stage that act on each feature by itself: units and constant of every feature."""
    if stage.attention is not None or stage.feed_forward is None or stage.feed_forward.phi is not None:
        _no("it is not of the form feed-forward, attention, feed-forward")
    W_1, b_1, W_2, b_2 = _weights(stage.feed_forward)
    reads, writes = W_1 != 0, W_2.transpose(0, 2, 1) != 0  # (depth, r, d)
    alive = writes.any(axis=2)
    alone = (writes.sum(axis=2) == 1) & ~(reads & ~writes).any(axis=2)
    if not (alone | ~alive).all():
        _no("a layer mixes the features before the attention, or where they should become 0")
    feature = writes.argmax(axis=2)
    for l in range(stage.depth):
        units: list[Units] = [[] for _ in range(d)]
        for k in np.flatnonzero(alive[l]).tolist():
            i = int(feature[l, k])
            units[i].append((Fraction(W_1[l, k, i]), Fraction(b_1[l, k]), Fraction(W_2[l, i, k])))
        yield units, [Fraction(x) for x in b_2[l].tolist()]


def _image(x: Interval, units: Units, constant: Fraction) -> Interval:
    """The exact image of an interval under z ↦ z + Σ w·ReLU(a·z + b) + constant."""
    if not units:
        return tuple(None if end is None else end + constant for end in x)  # pyright: ignore[reportReturnType]
    low, high = x
    knots = [-b / a for a, b, _ in units if a != 0]
    inside = [t for t in knots if (low is None or t > low) and (high is None or t < high)]
    points = [end for end in x if end is not None] + (inside or ([Fraction(0)] if x == _NOTHING else []))
    values = [t + sum(w * max(a * t + b, Fraction(0)) for a, b, w in units) + constant for t in points]
    right = 1 + sum(w * a for a, _, w in units if a > 0) if high is None else Fraction(0)
    left = 1 + sum(w * a for a, _, w in units if a < 0) if low is None else Fraction(0)
    down, up = right < 0 or left > 0, right > 0 or left < 0
    return None if down else min(values), None if up else max(values)


@dataclass(frozen=True)
class _Head:
    """Logits s·l with s = scale·l_j + shift, and what the mean of the ids adds to every row."""

    scale: Fraction
    shift: Fraction
    adds: tuple[Fraction, ...]


def _attended(stage: Stage, least: list[Fraction], outer: list[Fraction], n: int) -> list[Fraction]:
    """What every row of every token is at least after the attention, if one entry of one token was outside."""
    attention = stage.attention
    if attention is None or attention.pattern is not None or stage.feed_forward is not None:
        _no("its attention is sparse, or has feed-forward layers between")
    weights = [w.detach().numpy().astype(np.float64) for w in attention.parameters_list()]
    if weights[0].shape[2] != 1:
        _no("its heads are not of size 1")
    u = _direction(weights[3])
    T = list(least)
    G = min(sum(u[k] * (outer[k] if k == i else least[k]) for k in range(len(u))) for i in range(len(u)))
    for heads in _heads(weights, u):
        if len(heads) == 2 and all(x == -y for x, y in zip(heads[0].adds, heads[1].adds, strict=True)):
            upper, lower = heads if min(heads[0].adds) >= 0 else heads[::-1]
            if min(upper.adds) < 0 or upper.scale != lower.scale or upper.scale < 0 or upper.shift < lower.shift:
                _no("two heads may lower an id where a token is outside")
        elif len(heads) == 1 and min(heads[0].adds) >= 0:
            least_id = sum(a * b for a, b in zip(u, T, strict=True))
            s = heads[0].scale * least_id + heads[0].shift
            if heads[0].scale < 0 or s <= 0:
                _no("a head does not look for the largest id")
            mean = max(G - Fraction(n) / s, least_id)
            T = [t + c * mean for t, c in zip(T, heads[0].adds, strict=True)]
            G += sum(a * c for a, c in zip(u, heads[0].adds, strict=True)) * mean
        elif heads:
            _no("an attention layer is neither a selective shift nor a global one")
    return T


def _direction(W_V: np.ndarray) -> list[Fraction]:
    """u: what the first head reads, which all others must read too."""
    u = [Fraction(x) for x in W_V[0, 0, 0].tolist()]
    if min(u) <= 0:
        _no("the heads do not weigh every feature by a positive number")
    return u


def _heads(weights: list[np.ndarray], u: list[Fraction]) -> Iterator[list[_Head]]:
    """The heads of every layer that write anything."""
    W_Q, b_Q, W_K, W_V, W_O = weights
    for l in range(len(W_Q)):
        alive = np.flatnonzero(W_O[l].any(axis=(1, 2))).tolist()
        heads = []
        for h in alive:
            q, k, v = (_multiple(W[l, h, 0], u) for W in (W_Q, W_K, W_V))
            adds = tuple(Fraction(x) * v for x in W_O[l, h, :, 0].tolist())
            heads.append(_Head(k * q, k * Fraction(b_Q[l, h, 0]), adds))
        yield heads


def _multiple(row: np.ndarray, u: list[Fraction]) -> Fraction:
    """The factor of u that a row is."""
    factor = Fraction(row[0]) / u[0]
    if any(Fraction(x) != factor * y for x, y in zip(row.tolist(), u, strict=True)):
        _no("the heads read different directions")
    return factor


def _emptied(stages: list[Stage], T: list[Fraction]) -> list[Stage]:
    """The stages after those that send every column Z ≥ T to the column 0."""
    if not stages or stages[0].feed_forward is None or stages[0].attention is not None:
        _no("no layer empties the columns of a sequence that is outside")
    first, rest = stages[0].feed_forward, stages[1:]
    W_1, b_1, W_2, b_2 = (w[0] for w in _weights(first))
    alive = np.flatnonzero(W_2.any(axis=0)).tolist()
    if len(alive) != 1 or b_2.any() or first.phi is not None:
        _no("no layer pushes the columns of a sequence that is outside below 0")
    a, w = ([Fraction(x) for x in side.tolist()] for side in (W_1[alive[0]], W_2[:, alive[0]]))
    active = sum(x * t for x, t in zip(a, T, strict=True)) + Fraction(b_1[alive[0]])
    pushed = active >= 0 and min(a) >= 0
    if not (pushed and all(-y * x >= 1 and t + y * active <= 0 for x, y, t in zip(a, w, T, strict=True))):
        _no("the columns of a sequence that is outside are not all pushed below 0")
    ways: list[Interval] = [(None, Fraction(0))] * len(T)
    following = _by_feature(_after_first(stages[0]), len(T)) if stages[0].depth > 1 else iter(())
    for units, constant in following:
        ways = [_image(x, u, c) for x, u, c in zip(ways, units, constant, strict=True)]
    if any(x != (0, 0) for x in ways):
        _no("the columns of a sequence that is outside do not become exactly 0")
    return rest


def _after_first(stage: Stage) -> Stage:
    layers = cast(FeedForward, stage.feed_forward)
    W_1, b_1, W_2, b_2 = (w.detach()[1:] for w in layers.parameters_list())
    return Stage(feed_forward=FeedForward(W_1, b_1, W_2, b_2))


def _weights(layers: FeedForward) -> list[np.ndarray]:
    return [w.detach().numpy().astype(np.float64) for w in layers.parameters_list()]
