"""How large can the network's output be, on any input at all? Read off the last layers, in exact rational arithmetic.

A layer *clamps* row i at level M if two of its units compute Z_i += ReLU(−M − Z_i) − ReLU(Z_i − M): then Z_i is in
[−M, M] before the layer's other units add their part. Those parts, and those of the layers that follow, are sums of
one-dimensional piecewise linear functions of direction · z; one whose slopes vanish at both ends takes its extremes at
its knots. So |output_i| ≤ M + Σ of those extremes. Without a clamp, or with an unbounded part after it, the answer is
"no bound" (infinity). Compact networks have no clamp: ``mass.py`` bounds them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import cast

import numpy as np

from thereexists.certificates.mass import mass_bound
from thereexists.model import EmbeddedTransformer, FeedForward, Transformer

_LAYERS_SEARCHED = 64


def output_bound(network: Transformer) -> list[float]:
    """An upper bound of |g(X)_i| over all inputs X, for every row i."""
    if network.wide:
        return mass_bound(cast(EmbeddedTransformer, network))
    return [bound for bound, _ in clamped_rows(network)]


def clamped_rows(network: Transformer) -> list[tuple[float, int]]:
    """Of a deep network, for every row: the bound, and how many of the last layers it follows from (0 if none)."""
    last = list(network.stages.values())[-1]
    d = network.shape()["d"]
    if last.attention is not None or last.feed_forward is None or last.feed_forward.phi is not None:
        return [(math.inf, 0)] * d
    layers = [_Layer(last.feed_forward, l) for l in range(max(0, last.depth - _LAYERS_SEARCHED), last.depth)]
    return [_row_bound(layers, row) for row in range(d)]


def _row_bound(layers: list[_Layer], row: int) -> tuple[float, int]:
    drift = Fraction(0)
    for count, layer in enumerate(reversed(layers), 1):
        clamp = layer.clamp(row)
        extreme = layer.extreme(row, without=clamp[1] if clamp else ())
        if extreme is None:
            return math.inf, 0
        drift += extreme
        if clamp:
            return _float_above(clamp[0] + drift), count
    return math.inf, 0


class _Layer:
    """One feed-forward layer with its weights as exact rationals."""

    def __init__(self, stack: FeedForward, index: int):
        W_1, b_1, W_2, b_2 = (w.detach().numpy()[index] for w in stack.parameters_list())
        self.direction = [tuple(map(Fraction, row)) for row in W_1.tolist()]
        self.bias = [Fraction(x) for x in b_1.tolist()]
        self.out = [[Fraction(x) for x in column] for column in W_2.T.tolist()]  # out[unit][row]
        self.constant = [Fraction(x) for x in b_2.tolist()]

    def clamp(self, row: int) -> tuple[Fraction, tuple[int, int]] | None:
        """(M, the two units) if this layer clamps the row, else None."""
        for first in range(len(self.bias)):
            for second in range(len(self.bias)):
                lower, upper = self._clamps_at(first, row, -1), self._clamps_at(second, row, +1)
                if lower is not None and lower == upper and lower >= 0:
                    return lower, (first, second)
        return None

    def _clamps_at(self, unit: int, row: int, sign: int) -> Fraction | None:
        """M if the unit is −sign · ReLU(sign·Z_row − M) on this row alone (up to a positive factor inside)."""
        factor = sign * self.direction[unit][row]
        only_row = all(x == 0 for i, x in enumerate(self.direction[unit]) if i != row)
        if factor <= 0 or not only_row or self.out[unit][row] * factor != -sign:
            return None
        return -self.bias[unit] / factor

    def extreme(self, row: int, without: tuple[int, ...]) -> Fraction | None:
        """The largest |change| of the row by the other units, or None if it is unbounded."""
        total = abs(self.constant[row])
        groups: dict[tuple[Fraction, ...], list[int]] = defaultdict(list)
        for unit, direction in enumerate(self.direction):
            if unit in without or self.out[unit][row] == 0:
                continue
            if not any(direction):
                total += abs(self.out[unit][row]) * max(self.bias[unit], Fraction(0))
            else:
                groups[direction].append(unit)
        for units in groups.values():  # Σ out · ReLU(t + bias): 0 on the far left, constant on the far right
            if sum(self.out[u][row] for u in units) != 0:
                return None
            knots = [-self.bias[u] for u in units]
            total += max(abs(sum(self.out[u][row] * max(t + self.bias[u], Fraction(0)) for u in units)) for t in knots)
        return total


def _float_above(x: Fraction) -> float:
    value = float(x)
    return value if Fraction(value) >= x else float(np.nextafter(value, np.inf))
