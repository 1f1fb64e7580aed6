"""Two more ways to compute what the enclosures claim, sharing no arithmetic with them: Arb balls and exact rationals.

``arb_run``: the network at a point in Arb's ball arithmetic (python-flint) at 256 bits, softmax and all, every layer
in turn. ``exact_run``: the same with hardmax in exact rationals. Softmax's vanishing weights include 0, so the exact
hardmax value must lie in the enclosure as well; all three must be mutually consistent. In networks of more
than 100,000 layers those that add 0 are skipped, found by bisection as in ``enclose.py``.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.arithmetic.balls import Ball
from thereexists.certificates.enclose import Run, enclose_cubes, find_runs
from thereexists.core import shards
from thereexists.functions.grid import Grid
from thereexists.model import Stage, Transformer

PRECISION = 256
_TOKEN_LAYERS = 40_000
VERY_DEEP = 100_000  # layers that are no longer asked one by one
_FEW_RUNS = 64
_WIDE_LAYER = 100  # weights of a wide layer that cost as much as one narrow layer


@dataclass(frozen=True)
class SecondOpinion:
    """How many cubes were asked about, and the numbers of those on which the opinions differ."""

    cubes: int
    seed: int
    disagreeing: tuple[int, ...]


def second_opinion(network: Transformer, grid: Grid, sample: int | None, seed: int | None) -> SecondOpinion:
    """Ask Arb and the rationals about the centres of random cubes (None: as many as a second or two allow)."""
    if sample is None:
        weights = network.depth if not network.wide else network.parameter_count // _WIDE_LAYER
        sample = max(1, min(16, _TOKEN_LAYERS // (grid.n * max(weights, 1))))
    if seed is None:  # nobody can know beforehand which cubes will be asked about
        seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    numbers = np.sort(rng.choice(grid.cells, min(sample, grid.cells), replace=False))
    enclosures = enclose_cubes(network, grid, numbers)
    centres = grid.centre(grid.cube(numbers))
    weights = _layers(network)
    wrong = [
        int(number)
        for number, X, mid, rad in zip(numbers, centres, enclosures.mid, enclosures.rad, strict=True)
        if not consistent(arb_run(network, weights, X), exact_run(network, weights, X), Ball(mid, rad))
    ]
    return SecondOpinion(len(numbers), seed, tuple(wrong))


def consistent(by_arb: list[list[Any]], by_rationals: list[list[Any]], enclosure: Ball) -> bool:
    """Arb's ball meets ours and contains the rational value, and ours contains the rational value, entry by entry."""
    from flint import arb, fmpq

    for j, (arb_row, rational_row) in enumerate(zip(by_arb, by_rationals, strict=True)):
        for i, (ball, rational) in enumerate(zip(arb_row, rational_row, strict=True)):
            mid, rad = float(enclosure.mid[j, i]), float(enclosure.rad[j, i])
            if not np.isfinite(rad):
                continue  # nothing was claimed
            gap = rational - fmpq(*mid.as_integer_ratio())
            if (gap if gap >= 0 else -gap) > fmpq(*rad.as_integer_ratio()):
                return False
            if not ball.overlaps(arb(mid, rad)):
                return False
    return True


def arb_run(network: Transformer, layers: list[Any], X: np.ndarray) -> list[list[Any]]:
    from flint import arb, ctx

    before, ctx.prec = ctx.prec, PRECISION
    try:
        zero = arb(0)

        def relu(x):
            return x if x >= 0 else zero if x <= 0 else (x + abs(x)) / 2

        def mix(logits, values):
            if network.rho == "sparsemax":  # one-hot from a gap of 1 on; anything closer would need the threshold
                top = max(logits, key=lambda l: float(l.mid()))
                if any(not (logit <= top - 1) for logit in logits if logit is not top):
                    return [arb("nan")] * len(values[0])
                return list(values[next(i for i, logit in enumerate(logits) if logit is top)])
            weights = [(logit - max(logits, key=lambda l: float(l.mid()))).exp() for logit in logits]
            total = sum(weights, zero)
            return [
                sum((w * v[i] for w, v in zip(weights, values, strict=True)), zero) / total
                for i in range(len(values[0]))
            ]

        return _run(network, layers, X, arb, relu, mix)
    finally:
        ctx.prec = before


def exact_run(network: Transformer, layers: list[Any], X: np.ndarray) -> list[list[Any]]:
    from flint import fmpq

    zero = fmpq(0)

    def number(x: float):
        return fmpq(*x.as_integer_ratio())

    def relu(x):
        return x if x > 0 else zero

    def mix(logits, values):
        largest = max(logits)
        chosen = [v for logit, v in zip(logits, values, strict=True) if logit == largest]
        return [sum((v[i] for v in chosen), zero) / len(chosen) for i in range(len(chosen[0]))]

    return _run(network, layers, X, number, relu, mix)


class _Numbers(dict):
    """Every float as a number of another kind, made once."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def __missing__(self, x: float) -> Any:
        self[x] = self.number(x)
        return self[x]


def _run(network: Transformer, layers: list[Any], X: np.ndarray, number, relu, mix) -> list[list[Any]]:
    """The definition of the class, token by token, over whatever numbers are given."""
    c = _Numbers(number)
    zero = c[0.0]

    def dot(row, z, start=zero):
        for i, w in row:
            start = start + c[w] * z[i]
        return start

    Z = [[c[x] for x in token] for token in X.tolist()]
    W_in, W_out = network.input_map(), network.output_map()
    if W_in is not None:
        W_in = _rows(W_in.tolist())
        Z = [[dot(row, z) for row in W_in] for z in Z]
    if network.E is not None:
        Z = [[z + c[e] for z, e in zip(*pair, strict=True)] for pair in zip(Z, network.E.tolist(), strict=True)]
    for attention, feed_forward in layers:
        if isinstance(feed_forward, _Sweep):
            Z = [feed_forward.moved(z, dot, c, relu) for z in Z]
            continue
        if attention is not None:
            update = [list(z) for z in Z]
            heads, mask = attention
            for W_Q, b_Q, W_K, W_V, W_O in heads:
                K = [[dot(row, z) for row in W_K] for z in Z]
                V = [[dot(row, z) for row in W_V] for z in Z]
                for j, z in enumerate(Z):
                    Q = [dot(row, z, c[b]) for row, b in zip(W_Q, b_Q, strict=True)]
                    seen = [t for t in range(len(Z)) if mask is None or mask[j][t]]
                    logits = [sum((q * k for q, k in zip(Q, K[t], strict=True)), zero) for t in seen]
                    head = mix(logits, [V[t] for t in seen])
                    for i, row in enumerate(W_O):
                        update[j][i] = dot(row, head, update[j][i])
            Z = update
        if feed_forward is not None:
            Z = [_moved(z, feed_forward, dot, c, relu) for z in Z]
    return Z if W_out is None else [[dot(row, z) for row in _rows(W_out.tolist())] for z in Z]


def _moved(z: list[Any], feed_forward: Any, dot, c, relu) -> list[Any]:
    """One feed-forward layer on one token."""
    units, outputs = feed_forward
    hidden = [relu(dot(row, z, c[b])) for row, b in units]
    return [dot(row, hidden, x + c[b]) for x, (row, b) in zip(z, outputs, strict=True)]


def _rows(matrix: list[list[float]]) -> list[list[tuple[int, float]]]:
    """Of every row the weights that are not 0, with their places."""
    return [[(i, w) for i, w in enumerate(row) if w != 0] for row in matrix]


def _heads(attention: Any) -> list[Any]:
    """Those that add something: W_Q, b_Q, W_K, W_V, W_O as rows."""
    return [
        (_rows(W_Q), b_Q, _rows(W_K), _rows(W_V), _rows(W_O))
        for W_Q, b_Q, W_K, W_V, W_O in zip(*attention, strict=True)
        if any(map(any, W_O))
    ]


def _units(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any]:
    """Rows and biases of the units that are read, and of the outputs over these units."""
    live = [u for u in range(len(b_1)) if any(row[u] for row in W_2)]
    units = zip(_rows([W_1[u] for u in live]), (b_1[u] for u in live), strict=True)
    outputs = zip(_rows([[row[u] for u in live] for row in W_2]), b_2, strict=True)
    return list(units), list(outputs)


@dataclass(frozen=True)
class _Sweep:
    """Thousands of layers that share a direction, their largest biases sorted: those before a token's turn add 0.

    Which layers qualify is read off the weights by ``find_runs``; the arithmetic is that of the caller's numbers.
    """

    weights: tuple[np.ndarray, ...]
    run: Run

    def moved(self, z: list[Any], dot, c, relu) -> list[Any]:
        position, (direction,) = 0, _rows([np.asarray(self.run.direction).tolist()])
        while True:
            t = dot(direction, z)
            high = _float_above(t)
            if high == np.inf:
                return [t] * len(z)  # a ball that holds every number: nothing is known from here on
            layer = max(position, int(np.searchsorted(self.run.bias, -high, side="right")))
            if layer >= self.run.stop - self.run.start:
                return z
            z = _moved(z, _units(*(w[self.run.start + layer].tolist() for w in self.weights)), dot, c, relu)
            position = layer + 1


def _float_above(x: Any) -> float:
    """A float that is not below a rational number or an Arb ball."""
    if hasattr(x, "upper"):
        return float(np.nextafter(float(x.upper()), np.inf)) if x.is_finite() else float("inf")
    return float(np.nextafter(int(x.p) / int(x.q), np.inf))


def _swept(stage: Stage) -> list[Any] | None:
    """A feed-forward stage of a very deep network as a few sweeps and single layers; None where it is not that."""
    if stage.attention is not None or stage.feed_forward is None or stage.depth < _FEW_RUNS:
        return None
    weights = tuple(w.detach().numpy() for w in stage.feed_forward.parameters_list())
    runs = list(find_runs(*weights))
    if len(runs) > _FEW_RUNS:
        return None
    return [
        _Sweep(weights, run) if run.direction is not None else _units(*(w[run.start].tolist() for w in weights))
        for run in runs
    ]


def _layers(network: Transformer) -> list[Any]:
    """All weights but zeros, layer by layer: (heads and mask, or None; units and outputs, or None)."""
    result = []
    for stage in network.stages.values():
        swept = _swept(stage) if network.depth >= VERY_DEEP else None
        if swept is not None:
            result += [(None, part) for part in swept]
            shards.release(network)
            continue
        attention = [w.tolist() for w in stage.attention.parameters_list()] if stage.attention is not None else None
        feed_forward = (
            [w.tolist() for w in stage.feed_forward.parameters_list()] if stage.feed_forward is not None else None
        )

        def masks(layer: int, attention: Any = stage.attention) -> Any:
            mask = attention.mask(layer)
            return None if mask is None else mask.tolist()

        for l in range(stage.depth):
            result.append(
                (
                    None if attention is None else (_heads([w[l] for w in attention]), masks(l)),
                    None if feed_forward is None else _units(*(w[l] for w in feed_forward)),
                )
            )
    return result
