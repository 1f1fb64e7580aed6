"""A layer of softmax attention with its residual connection: H heads, keys and values are features of their own.

    y_i = v⁰_i + Σ_h o_h Σ_j softmax_j(λ_h k^h_j) v^h_j        o_h > 0, features (k⁰, v⁰, k¹, v¹, …)

**Extremes.** y_i increases with every v (weights are positive), so it is largest with all of them at their upper ends,
whatever the keys are. The heads share no feature, so each sum may then be maximised for itself: with u_j = exp(λ k_j)
it is Σ u_j v_j / Σ u_j over a box of positive u. If t is the maximum, then Σ u_j (v_j − t) ≤ 0 on the box, with
equality where it is attained, and that linear function is largest with u_j at its upper end where v_j > t and at its
lower one where v_j < t. So some threshold between the sorted v_j gives the maximum, and all n + 1 are tried. (λ > 0.)
∎
"""

from __future__ import annotations

from typing import final

import numpy as np

from thereexists.functions.target import Array
from thereexists.suites.plain import are_numbers, is_whole
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

MOST_HEADS, SHARPEST = 8, 64.0


@final
class SoftmaxLayer(Family):
    name = "softmax"

    def draw(self, rng: np.random.Generator, level: int) -> Params:
        heads = (1, 1, 2, 2, 4)[level - 1]
        return {
            "level": level,
            "n": (3, 4, 4, 8, 8)[level - 1],
            "sharpness": (2.0 ** rng.integers(0, level + 1, heads)).tolist(),
            "outputs": (rng.integers(2, 9, heads) / 8).tolist(),
        }

    def hypotheses(self, params: Params) -> Hypotheses:
        yield has_just(params, "level", "n", "sharpness", "outputs")
        yield "level is one of 1 … 5", is_whole(params["level"], 1, 5)
        yield f"n is one of 1 … {MOST_TOKENS}", is_whole(params["n"], 1, MOST_TOKENS)
        o, λ = params["outputs"], params["sharpness"]
        yield f"there are 1 … {MOST_HEADS} outputs o_h", isinstance(o, list) and 1 <= len(o) <= MOST_HEADS
        yield "0 < o_h ≤ 1", are_numbers(o, len(o), 2**-20, 1)
        yield f"there are as many λ_h, 0 < λ_h ≤ {SHARPEST:g}", are_numbers(λ, len(o), 2**-20, SHARPEST)

    def build(self, params: Params) -> Built:
        from thereexists import program as P

        H = len(params["outputs"])
        (W_Q, W_K, W_V), W_O = np.zeros((3, H, 1, 2 * H)), np.zeros((H, 1, 1))
        h = np.arange(H)
        W_K[h, 0, 2 * h] = W_V[h, 0, 2 * h + 1] = 1.0
        W_O[h, 0, 0] = params["outputs"]
        x = P.tokens(params["n"], d=2 * H)
        b_Q = np.array(params["sharpness"])[:, None]
        return certified_program(x[:, 1] + P.attention(x, W_Q, W_K, W_V, W_O, b_Q=b_Q))

    def reference(self, params: Params, X: Array) -> Array:
        y = X[..., 1:2].copy()
        for h, (sharpness, output) in enumerate(zip(params["sharpness"], params["outputs"], strict=True)):
            powers = np.exp(sharpness * X[..., 2 * h])
            y += output * ((powers * X[..., 2 * h + 1]).sum(axis=1) / powers.sum(axis=1))[:, None, None]
        return y

    def ask(self, params: Params, rng: np.random.Generator) -> Question:
        shape = (params["n"], 2 * len(params["outputs"]))
        return any_output(rng, random_box(rng, shape, params["level"]))

    def extreme(self, params: Params, question: Question) -> tuple[float, float, Array]:
        low, high = one_box(question)
        point = np.empty_like(low)
        point[:, 1::2] = (high if question.sense > 0 else low)[:, 1::2]
        for h, sharpness in enumerate(params["sharpness"]):
            v = point[:, 2 * h + 1]
            thresholds = np.concatenate([[-np.inf], np.sort(v)])
            up = question.sense * (v - thresholds[:, None]) > 0  # (thresholds, n)
            up[0] = question.sense > 0
            k = np.where(up, high[:, 2 * h], low[:, 2 * h])
            powers = np.exp(sharpness * k)
            sums = (powers * v).sum(axis=1) / powers.sum(axis=1)
            point[:, 2 * h] = k[int(np.argmax(question.sense * sums))]
        return float(self.reference(params, point[None])[0][question.output]), 1e-12, point
