"""The operations: how each runs on arrays (the interpreter), how it becomes atoms, and its Lipschitz constant.

The interpreter of an operation is the obvious line of numpy and shares nothing with its lowering: the contract suite
compares the two. Given bounds on the errors of the arguments, in the maximum norm, ``carry`` bounds what becomes of
them: at most the largest of them times the Lipschitz constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from thereexists.program.graph import Value
from thereexists.program.lowering import Atoms, Form, Token


@dataclass(frozen=True)
class Primitive:
    interpret: Callable[..., Any]  # (arrays (batch, n, d) of the arguments, settings) -> (batch, n, d)
    lower: Callable[[Atoms, Value, list[list[Form]]], list[Form]]
    carry: Callable[[dict[str, Any], list[float]], float]


def _tokens(atoms: Atoms, node: Value, _: list[list[Form]]) -> list[Form]:
    return [atoms.token(f, node.settings["low"], node.settings["high"]) for f in range(node.d)]


def _constant(atoms: Atoms, node: Value, _: list[list[Form]]) -> list[Form]:
    return [atoms.constant(np.ascontiguousarray(node.settings["array"][:, f])) for f in range(node.d)]


def _linear(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    total = [Form() for _ in range(node.d)]
    for c, forms in zip(node.settings["coefficients"], arguments, strict=True):
        total = [t + form * c for t, form in zip(total, forms, strict=True)]
    return total


def _mix(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    out = []
    for weights in node.settings["matrix"]:
        total = Form()
        for c, form in zip(weights, arguments[0], strict=True):
            total = total + form * c
        out.append(total)
    return out


def _gather(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    return [atoms.attend(node.settings["source"], form, 1, "gather") for form in arguments[0]]


def _mean(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    return [atoms.attend(None, form, node.settings["scale"], "mean") for form in arguments[0]]


def _relu(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    return [relu(atoms, form, "relu") for form in arguments[0]]


def relu(atoms: Atoms, form: Form, name: str) -> Form:
    low, high = atoms.range(form)
    return atoms.hinge([(Fraction(1), form)], Form(), np.maximum(low, 0.0), np.maximum(high, 0.0), name)


def _abs(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    out = []
    for form in arguments[0]:
        low, high = atoms.range(form)
        least = np.maximum(np.maximum(low, -high), 0.0)
        out.append(
            atoms.hinge([(Fraction(1), form), (Fraction(1), form * -1)], Form(), least, np.maximum(-low, high), "abs")
        )
    return out


def _maximum(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    """max(a, b) = a + ReLU(b − a)."""
    return [extreme(atoms, a, b, 1, "maximum") for a, b in zip(*arguments, strict=True)]


def _minimum(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    """min(a, b) = a − ReLU(a − b)."""
    return [extreme(atoms, a, b, -1, "minimum") for a, b in zip(*arguments, strict=True)]


def extreme(atoms: Atoms, a: Form, b: Form, sign: int, name: str) -> Form:
    larger = np.maximum if sign > 0 else np.minimum
    (low_a, high_a), (low_b, high_b) = atoms.range(a), atoms.range(b)
    return atoms.hinge([(Fraction(sign), (b - a) * sign)], a, larger(low_a, low_b), larger(high_a, high_b), name)


def _clip(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    """clip(x) = low + ReLU(x − low) − ReLU(x − high)."""
    low, high = node.settings["low"], node.settings["high"]
    out = []
    for form in arguments[0]:
        least, most = (np.clip(bound, low, high) for bound in atoms.range(form))
        units = [(Fraction(1), form - Form.number(low)), (Fraction(-1), form - Form.number(high))]
        out.append(atoms.hinge(units, Form.number(low), least, most, "clip"))
    return out


def _sort(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    return [bitonic(atoms, form) for form in arguments[0]]


def bitonic(atoms: Atoms, x: Form) -> Form:
    """log2 n (log2 n + 1)/2 rounds of gather and compare-exchange, the smaller one always to the lower position.

    Merge k joins sorted runs of 2^(k−1): the first round pairs i with its mirror in the run of 2^k, the others pair i
    with i XOR 2^j. The lower of a pair is the one whose highest differing bit is 0. If n is no power of two, imagine
    +∞ at the missing positions: no round moves it down, so a token without a partner just keeps its number.

    With g = 1 at the lower position (keep the minimum), 0 at the upper one, and R at least the width of the range:

        x' = x − ReLU(x − p − R·(1 − g)) + ReLU(p − x − R·g)

    One of the two units is closed because |x − p| ≤ R; the other makes x' = min(x, p) or max(x, p).
    """
    n, positions = atoms.n, np.arange(atoms.n)
    low, high = atoms.range(x)
    low, high = np.full(n, low.min()), np.full(n, high.max())
    R = gate_height(atoms, x, float(high[0] - low[0]))
    for k in range(1, (n - 1).bit_length() + 1):
        for mirror, j in [(True, k - 1), *((False, j) for j in reversed(range(k - 1)))]:
            partner = positions ^ (2**k - 1 if mirror else 2**j)
            source = np.where(partner < n, partner, positions)
            p = atoms.attend(tuple(source.tolist()), x, 1, "sort: partner")
            upper = atoms.constant(2.0 * (positions >> j & 1) - 1.0, "position")  # ±1: the bit j of the position
            gate = upper * (0.5 * R) + Form.number(0.5 * R)  # R·(1 − g)
            units = [(Fraction(-1), x - p - gate), (Fraction(1), p - x + gate - Form.number(R))]
            x = atoms.hinge(units, x, low, high, "sort: exchange")
    return x


def gate_height(atoms: Atoms, x: Form, span: float) -> float:
    """A power of two R ≥ span. Snapped tokens never leave their range; others may by rounding, and get a margin.

    Without it a unit that ought to be closed would let a rounding error through, and every round would triple it.
    """
    (atom, c), *others = [*x.terms.items(), (0, Fraction(0))]
    snapped = len(others) == 1 and c == 1 and isinstance(atoms.definitions[atom], Token)
    wanted = span if snapped else 1.25 * span
    return 2.0 ** math.ceil(math.log2(wanted)) if span > 0 else 1.0


def _spline(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    """f(t_0) + Σ_k (s_k − s_{k−1}) ReLU(x − t_k), s_k the slope from t_k to t_{k+1}, 0 before and after the knots."""
    knots = [Fraction(t) for t in node.settings["knots"]]
    values = [Fraction(v) for v in node.settings["values"]]
    slopes = [(w - v) / (t - s) for v, w, s, t in zip(values, values[1:], knots, knots[1:], strict=False)]
    jumps = [after - before for before, after in zip([Fraction(0), *slopes], [*slopes, Fraction(0)], strict=True)]
    low, high = np.full(atoms.n, float(min(values))), np.full(atoms.n, float(max(values)))
    out = []
    for form in arguments[0]:
        units = [(c, form - Form.number(t)) for c, t in zip(jumps, knots, strict=True) if c]
        out.append(atoms.hinge(units, Form.number(values[0]), low, high, "apply"))
    return out


def one(_: dict[str, Any], errors: list[float]) -> float:
    """A Lipschitz constant of 1."""
    return max(errors, default=0.0)


PRIMITIVES: dict[str, Primitive] = {
    "tokens": Primitive(lambda X, **_: X, _tokens, one),
    "constant": Primitive(lambda array: array[None], _constant, lambda _, errors: 0.0),
    "linear": Primitive(
        lambda *X, coefficients: sum(c * x for c, x in zip(coefficients, X, strict=True)),
        _linear,
        lambda s, errors: sum(abs(c) * e for c, e in zip(s["coefficients"], errors, strict=True)),
    ),
    "mix": Primitive(
        lambda X, matrix: X @ matrix.T, _mix, lambda s, errors: float(np.abs(s["matrix"]).sum(axis=1).max()) * errors[0]
    ),
    "gather": Primitive(lambda X, source: X[:, list(source)], _gather, one),
    "mean": Primitive(
        lambda X, scale: np.broadcast_to(scale * X.mean(axis=1, keepdims=True), X.shape),
        _mean,
        lambda s, errors: s["scale"] * errors[0],
    ),
    "relu": Primitive(lambda X: np.maximum(X, 0.0), _relu, one),
    "abs": Primitive(np.abs, _abs, one),
    "maximum": Primitive(np.maximum, _maximum, one),
    "minimum": Primitive(np.minimum, _minimum, one),
    "clip": Primitive(lambda X, low, high: np.clip(X, low, high), _clip, one),
    "sort": Primitive(lambda X: np.sort(X, axis=1), _sort, one),
    "apply": Primitive(
        lambda X, function, **_: function(X), _spline, lambda s, errors: s["slope"] * errors[0] + s["own"]
    ),
}
