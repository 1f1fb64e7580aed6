"""Sorting n numbers by a bitonic network: n = 4, 8, 16, 32, 64.

**Extremes.** The k-th smallest of x_1 … x_n does not decrease if an x_i grows, so over a box it is largest where all
coordinates are at their upper ends, and smallest at the lower ones: the k-th smallest end. ∎

``folded``: gathers are written as fixed 0/1 matrices, and the file is a plain ReLU network; otherwise they are softmax
heads.
"""

from __future__ import annotations

from typing import final

import numpy as np

from thereexists.functions.target import Array
from thereexists.suites.net import folded
from thereexists.suites.plain import is_flag, is_whole
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
from thereexists.suites.verifier.families.hypotheses import MOST_TOKENS, Hypotheses, has_just


@final
class Sort(Family):
    name = "sort"

    def draw(self, rng: np.random.Generator, level: int) -> Params:
        return {"level": level, "n": 2 << level, "folded": bool(rng.integers(2))}

    def hypotheses(self, params: Params) -> Hypotheses:
        yield has_just(params, "level", "n", "folded")
        yield "level is one of 1 … 5", is_whole(params["level"], 1, 5)
        yield f"n is one of 1 … {MOST_TOKENS}", is_whole(params["n"], 1, MOST_TOKENS)
        yield "folded is true or false", is_flag(params["folded"])

    def build(self, params: Params) -> Built:
        from thereexists import program as P

        built = certified_program(P.sort(P.tokens(params["n"])))
        return Built(folded(built.net), built.bound, built.proof) if params["folded"] else built

    def reference(self, params: Params, X: Array) -> Array:
        return np.sort(X, axis=1)

    def ask(self, params: Params, rng: np.random.Generator) -> Question:
        return any_output(rng, random_box(rng, (params["n"], 1), params["level"]))

    def extreme(self, params: Params, question: Question) -> tuple[float, float, Array]:
        low, high = one_box(question)
        point = high if question.sense > 0 else low
        return float(np.sort(point.ravel())[question.output[0]]), 0.0, point
