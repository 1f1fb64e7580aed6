"""Softmax attention over data: a head of the program is a head of the network, exact in real arithmetic.

Its Lipschitz constant: if every logit changes by at most δ, the output Σ_j p_j v_j does by at most δ·(spread of v)/2,
because its derivative along the change is the covariance of change and value under p, and that is at most the product
of the standard deviations, δ and half the spread. If every value changes by at most e, the output does by at most e.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.lowering import Atoms, Form
from thereexists.constructions.program.primitives.base import Primitive, Ranges
from thereexists.core.errors import InvalidInput


def _attend(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    queries, keys, values = arguments
    called = node.settings["called"]
    if node.settings["causal"] != atoms.causal and atoms.n > 1 and not atoms.free:
        if atoms.causal:
            raise InvalidInput(
                f"'{called}' needs token {atoms.n - 1} at position 0, which a causal mask hides; say causal=True there."
            )
        raise InvalidInput(f"'{called}' with causal=True needs a causal network: compile(program, causal=True).")
    return [atoms.soft(queries, keys, value, called) for value in values]


def interpret_attend(Q: Any, K: Any, V: Any, causal: bool, called: str) -> Any:
    length = max(X.shape[1] for X in (Q, K, V))
    logits = Q @ np.swapaxes(K, 1, 2)  # (batch, i, j)
    if causal:
        logits = np.where(np.tri(length, dtype=bool), logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True) @ V


def _carry(node: Value, errors: list[float], ranges: Ranges) -> float:
    """A logit is a sum of m products, each of which moves by |k|·e_q + |q|·e_k + e_q·e_k."""
    (query, key, value), (e_q, e_k, e_v) = node.arguments, errors
    if e_q == e_k == 0:
        return e_v
    size_q, size_k = (max(map(abs, ranges(part))) for part in (query, key))
    low, high = ranges(value)
    logit = query.d * (size_k * e_q + size_q * e_k + e_q * e_k)
    return min(logit * (high - low) / 2, high - low) + e_v


def _soft_largest(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    """Σ_j p_j x_j with p = softmax(λx). λ·Σ p_j x_j + entropy(p) = log Σ exp(λ x_j) ≥ λ·max, and the entropy is at

    most log n: so the maximum is missed by at most log(n)/λ, from below.
    """
    if atoms.causal and atoms.n > 1:
        raise InvalidInput(f"'soft_largest' needs token {atoms.n - 1} at position 0, which a causal mask hides.")
    one, sharpness = Form.number(1), node.settings["sharpness"]
    return [atoms.soft([one], [form * sharpness], form, "soft_largest") for form in arguments[0]]


def _carry_largest(node: Value, errors: list[float], ranges: Ranges) -> float:
    return errors[0] + math.log(node.n) / node.settings["sharpness"] * (1 + 2.0**-40)


TABLE = {
    "attend": Primitive(interpret_attend, _attend, _carry),
    "soft_largest": Primitive(
        lambda X, sharpness: np.broadcast_to(X.max(axis=1, keepdims=True), X.shape),
        _soft_largest,
        _carry_largest,
    ),
}
