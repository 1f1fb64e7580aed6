"""Smooth-looking programs: straight lines through many points, means, maxima, in one to three layers.

    u = f(±x),  v = αu + (1 − α) mean(u),  w = g(v),  y = w or max(w, its neighbour)      f, g increasing, linear
    between knots

**Extremes.** Every operation but the first sign is increasing in all it reads (positive factors, means, maxima,
increasing f and g), so y is monotone in every x_i, in the direction of its sign: over a box it is largest at the corner
that has the upper ends where the sign is +, the lower ones where it is −. ∎

Level 5 takes tanh itself in place of f, by a spline whose error is part of the bound (below 1e-6).
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from thereexists.functions.target import Array
from thereexists.suites.plain import are_numbers, is_flag, is_number, is_whole
from thereexists.suites.verifier.families.base import (
    Built,
    Family,
    Params,
    Question,
    any_output,
    certified_program,
    one_box,
    random_box,
)
from thereexists.suites.verifier.families.hypotheses import MOST_TOKENS, Hypotheses, has_just, is_rising

GRID = 1 << 12  # values at knots are multiples of 1/4096
SMOOTH = 1e-6
MOST_KNOTS = 129  # lines so steep that 1e-12 is far above what float64 rounds


@final
class Spline(Family):
    name = "spline"

    def draw(self, rng: np.random.Generator, level: int) -> Params:
        knots = 2 ** (level + 1)
        return {
            "level": level,
            "n": 4 if level in (1, 2, 5) else 8,
            "signs": rng.choice([-1, 1], 4 if level in (1, 2, 5) else 8).tolist(),
            "alpha": int(rng.integers(1, 8)) / 8,
            "f": None if level == 5 else _increasing(rng, knots),
            "g": _increasing(rng, 8 if level == 5 else knots) if level > 1 else None,
            "neighbour": bool(level > 2 and rng.integers(2)),
        }

    def hypotheses(self, params: Params) -> Hypotheses:
        yield has_just(params, "level", "n", "signs", "alpha", "f", "g", "neighbour")
        yield "level is one of 1 … 5", is_whole(params["level"], 1, 5)
        n, signs, f, g = (params[name] for name in ("n", "signs", "f", "g"))
        yield f"n is one of 1 … {MOST_TOKENS}", is_whole(n, 1, MOST_TOKENS)
        yield "there are n signs, 1 or −1", are_numbers(signs, n, -1, 1) and all(abs(sign) == 1 for sign in signs)
        yield "0 ≤ alpha ≤ 1", is_number(params["alpha"], 0, 1)
        yield f"f is tanh (null) or increasing from 2 to {MOST_KNOTS} values of [0, 1]", _is_curve(f)
        yield f"g is nothing (null) or increasing from 2 to {MOST_KNOTS} values of [0, 1]", _is_curve(g)
        yield "neighbour is true or false", is_flag(params["neighbour"])

    def build(self, params: Params) -> Built:
        from thereexists import program as P

        signs = np.array(params["signs"], dtype=float)[:, None]
        x = P.tokens(params["n"]) * signs + (1 - signs) / 2
        f, g, alpha = params["f"], params["g"], params["alpha"]
        u = P.apply(np.tanh, x, epsilon=SMOOTH / 2) if f is None else P.interp(x, _knots(f), f)
        y = alpha * u + (1 - alpha) * P.mean(u)
        y = y if g is None else P.interp(y, _knots(g), g)
        return certified_program(P.maximum(y, P.roll(y, 1)) if params["neighbour"] else y)

    def reference(self, params: Params, X: Array) -> Array:
        signs = np.array(params["signs"], dtype=float)[:, None]
        x = X * signs + (1 - signs) / 2
        f, g, alpha = params["f"], params["g"], params["alpha"]
        u = np.tanh(x) if f is None else np.interp(x, _knots(f), f)
        y = alpha * u + (1 - alpha) * u.mean(axis=1, keepdims=True)
        y = y if g is None else np.interp(y, _knots(g), g)
        return np.maximum(y, np.roll(y, 1, axis=1)) if params["neighbour"] else y

    def ask(self, params: Params, rng: np.random.Generator) -> Question:
        return any_output(rng, random_box(rng, (params["n"], 1), params["level"]))

    def extreme(self, params: Params, question: Question) -> tuple[float, float, Array]:
        low, high = one_box(question)
        point = np.where(question.sense * np.array(params["signs"])[:, None] > 0, high, low)
        return float(self.reference(params, point[None])[0][question.output]), 1e-12, point


def _increasing(rng: np.random.Generator, pieces: int) -> list[float]:
    """Values from 0 to 1 at equal distances, increasing, multiples of 1/4096."""
    steps = rng.integers(1, 9, pieces)
    return [0.0, *(np.floor(np.cumsum(steps) / steps.sum() * GRID) / GRID).tolist()]


def _is_curve(values: Any) -> bool:
    return values is None or is_rising(values, MOST_KNOTS)


def _knots(values: list[float]) -> Array:
    return np.arange(len(values)) / (len(values) - 1)
