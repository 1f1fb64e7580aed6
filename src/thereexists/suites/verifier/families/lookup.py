"""Two kinds of look-up. ``Lookup``: by the nearest key, softly, one softmax head. ``Needle``: a secret key, of which
nothing is seen anywhere else, so that a counterexample is hidden from every search.

**Extremes of Lookup.** y_i = Σ_j w_j(q_i) v_j, w the softmax of −s(q_i − k_j)² over fixed keys k. The weights are
positive, so y_i is largest with all v_j at their upper ends, whatever q_i is. Then y_i is a function g of q_i alone:
g' = 2s·Cov_w(k, v) and g'' = 4s²·E_w[(k − E k)²(v − E v)], so |g''| ≤ s²·K²·V with K and V the spreads of k and v (|E
(k − Ek)² (v − Ev)| ≤ Var(k)·V ≤ K²V/4). If the largest value over [a, b] is at an inner point then g' = 0 there, and
the next point of a grid of step h is at most h/2 away and at most |g''|h²/8 below; the ends are points of the grid. So
max over the grid ≤ max g ≤ max over the grid + s²K²V h²/8. ∎

**Extremes of Needle.** y = min_j p_j·b(x_j − c_j), p_j ≥ 0, b a triangle of height 1 and half-width w. Coordinates are
chosen independently, so the maximum of the minimum is the minimum of the maxima; that of a triangle over an interval
is at the point next to its top. The minimum is min_j of the minima, each at the end further from c_j. ∎
The share of the box where y > t is at most Π_j 2w(1 − t/p_j), over the sides of the box.
"""

from __future__ import annotations

from typing import final

import numpy as np

from thereexists.functions.target import Array
from thereexists.suites.plain import are_numbers, is_number, is_whole
from thereexists.suites.verifier.families.base import (
    UNIT,
    Built,
    Family,
    Params,
    Question,
    any_output,
    certified_program,
    one_box,
    random_box,
)
from thereexists.suites.verifier.families.hypotheses import MOST_TOKENS, Hypotheses, has_just

SLACK = 1e-8  # of the maximum over a grid
SHARPEST = 64.0  # the grid has then some thousand points


@final
class Lookup(Family):
    name = "lookup"
    margins = (2**-5, 2**-7, 2**-9)

    def draw(self, rng: np.random.Generator, level: int) -> Params:
        n = 2 + 2 * level
        keys = np.sort(rng.choice(17, n, replace=False)) / 16
        return {"level": level, "n": n, "keys": keys.tolist(), "sharpness": float(2 ** (level + 1))}

    def hypotheses(self, params: Params) -> Hypotheses:
        yield has_just(params, "level", "n", "keys", "sharpness")
        yield "level is one of 1 … 5", is_whole(params["level"], 1, 5)
        yield f"n is one of 1 … {MOST_TOKENS}", is_whole(params["n"], 1, MOST_TOKENS)
        yield "there are n keys of [0, 1]", are_numbers(params["keys"], params["n"], 0, 1)
        yield f"0 ≤ sharpness ≤ {SHARPEST:g}", is_number(params["sharpness"], 0, SHARPEST)

    def build(self, params: Params) -> Built:
        from thereexists import program as P

        x = P.tokens(params["n"], d=2)
        keys = np.array(params["keys"])[:, None]
        return certified_program(P.lookup(x[:, 0], keys, x[:, 1], sharpness=params["sharpness"]))

    def reference(self, params: Params, X: Array) -> Array:
        return (self._weights(params, X[..., 0]) @ X[..., 1:2]).astype(np.float64)

    def _weights(self, params: Params, q: Array) -> Array:
        logits = -params["sharpness"] * (q[..., None] - np.array(params["keys"])) ** 2
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    def ask(self, params: Params, rng: np.random.Generator) -> Question:
        return any_output(rng, random_box(rng, (params["n"], 2), params["level"]))

    def extreme(self, params: Params, question: Question) -> tuple[float, float, Array]:
        low, high = one_box(question)
        i, sense = question.output[0], question.sense
        point = (high if sense > 0 else low).copy()
        v, a, b = point[:, 1], low[i, 0], high[i, 0]
        curvature = params["sharpness"] ** 2 * np.ptp(params["keys"]) ** 2 * np.ptp(v)
        steps = max(1, int(np.ceil((b - a) * np.sqrt(curvature / (8 * SLACK)))))
        q = np.linspace(a, b, steps + 1)
        g = self._weights(params, q) @ v
        best = int(np.argmax(sense * g))
        point[i, 0] = np.clip(float(np.float32(q[best])), a, b)  # a number of float32, next to it
        return float(g[best]), 2 * SLACK, point


@final
class Needle(Family):
    name = "needle"

    def draw(self, rng: np.random.Generator, level: int) -> Params:
        n = 2 if level == 1 else 4
        width = 2.0**-level if level < 5 else 2.0**-5
        margin = int(width * UNIT)
        return {
            "n": n,
            "centres": (rng.integers(margin, UNIT - margin + 1, n) / UNIT).tolist(),
            "peaks": (rng.integers(8, 17, n) / 16).tolist(),
            "width": width,
        }

    def hypotheses(self, params: Params) -> Hypotheses:
        yield has_just(params, "n", "centres", "peaks", "width")
        yield f"n is one of 1 … {MOST_TOKENS}", is_whole(params["n"], 1, MOST_TOKENS)
        yield "there are n centres of [0, 1]", are_numbers(params["centres"], params["n"], 0, 1)
        yield "there are n peaks, from 0 to 1", are_numbers(params["peaks"], params["n"], 0, 1)
        yield "width is from 1/1024 to 1", is_number(params["width"], 2**-10, 1)

    def build(self, params: Params) -> Built:
        from thereexists import program as P

        w, c, p = params["width"], _column(params["centres"]), _column(params["peaks"])
        x = P.tokens(params["n"]) - c
        return certified_program(P.min(P.interp(x, [-w, 0.0, w], [0.0, 1.0, 0.0]) * p))

    def reference(self, params: Params, X: Array) -> Array:
        w, c, p = params["width"], _column(params["centres"]), _column(params["peaks"])
        heights = p * np.maximum(0.0, 1.0 - np.abs(X - c) / w)
        return np.broadcast_to(heights.min(axis=1, keepdims=True), X.shape)

    def ask(self, params: Params, rng: np.random.Generator) -> Question:
        """The whole domain, or a box with the needle in it."""
        c = _column(params["centres"])
        side = params["width"] if rng.integers(2) else 1.0
        low = np.floor(np.maximum(c - side, 0.0) * UNIT) / UNIT
        high = np.ceil(np.minimum(c + side, 1.0) * UNIT) / UNIT
        return Question(((low, high),), (int(rng.integers(params["n"])), 0), 1)

    def extreme(self, params: Params, question: Question) -> tuple[float, float, Array]:
        low, high = one_box(question)
        w, c, p = params["width"], _column(params["centres"]), _column(params["peaks"])
        furthest = np.where(np.abs(low - c) > np.abs(high - c), low, high)
        point = np.clip(c, low, high) if question.sense > 0 else furthest
        return float((p * np.maximum(0.0, 1.0 - np.abs(point - c) / w)).min()), 1e-12, point


def _column(values: list[float]) -> Array:
    return np.array(values)[:, None]
