"""Token-wise operations: one feed-forward half each, exact but for the splines of ``apply``."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from thereexists.constructions.program import splines
from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.lowering import Atoms, Form
from thereexists.constructions.program.primitives.base import Primitive, Ranges, one
from thereexists.functions.target import Array


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
    low, high = node.settings["low"], node.settings["high"]
    return [clipped(atoms, form, low, high, "clip") for form in arguments[0]]


def clipped(atoms: Atoms, form: Form, low: float, high: float, name: str) -> Form:
    """clip(x) = low + ReLU(x − low) − ReLU(x − high)."""
    least, most = (np.clip(bound, low, high) for bound in atoms.range(form))
    units = [(Fraction(1), form - Form.number(low)), (Fraction(-1), form - Form.number(high))]
    return atoms.hinge(units, Form.number(low), least, most, name)


def _where(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    """ReLU(a − l − R·(1 − g)) + l·g, and the same of b with 1 − g: for g = 1 the first is a and the second 0.

    l is a lower end of both and R at least their spans. For g between 0 and 1 this formula is the meaning of `where`.
    It is convex in g, so it is largest at an end of the flag's range.
    """
    bottom, R = node.settings["bottom"], node.settings["height"]
    out = []
    for g, a, b in zip(*arguments, strict=True):
        off = Form.number(1) - g
        units = [
            (Fraction(1), a - Form.number(bottom) - off * R),
            (Fraction(1), b - Form.number(bottom) - g * R),
        ]
        (low_a, high_a), (low_b, high_b) = atoms.range(a), atoms.range(b)
        low_g, high_g = atoms.range(g)
        fixed = low_g == high_g  # a flag that only depends on the position
        low = np.where(fixed, _where_end(low_g, low_a, low_b, bottom, R), bottom)
        high = np.maximum(*(_where_end(end, high_a, high_b, bottom, R) for end in (low_g, high_g)))
        out.append(atoms.hinge(units, Form.number(bottom), low, high, "where"))
    return out


def _where_end(g: Array, a: Array, b: Array, bottom: float, R: float) -> Array:
    """The formula, rising in a and in b; for g = 1 and g = 0 without rounding a or b."""
    first, second = np.maximum(a - bottom - R * (1 - g), 0.0), np.maximum(b - bottom - R * g, 0.0)
    soft = bottom + first + second
    return np.where(g == 1, np.maximum(a, bottom) + second, np.where(g == 0, np.maximum(b, bottom) + first, soft))


def _carry_where(node: Value, errors: list[float], ranges: Ranges) -> float:
    """Where a or b leaves [l, l + R], the formula is off by as much: an end that is missed, a unit that stays open."""
    bottom, R = node.settings["bottom"], node.settings["height"]
    (low_a, high_a), (low_b, high_b) = (ranges(argument) for argument in node.arguments[1:])
    below, above = max(bottom - min(low_a, low_b), 0.0), max(max(high_a, high_b) - bottom - R, 0.0)
    return errors[1] + errors[2] + abs(R) * errors[0] + below + above


def interpret_where(g: Any, a: Any, b: Any, bottom: float, height: float) -> Any:
    soft = bottom + np.maximum(a - bottom - height * (1 - g), 0) + np.maximum(b - bottom - height * g, 0)
    return np.where(g == 1, a, np.where(g == 0, b, soft))


def _interp(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    return [through(atoms, form, node.settings["knots"], node.settings["values"], "interp") for form in arguments[0]]


def _spline(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    return [through(atoms, form, node.settings["knots"], node.settings["values"], "apply") for form in arguments[0]]


def through(atoms: Atoms, form: Form, knots: Array, values: Array, name: str) -> Form:
    """f(t_0) + Σ_k (s_k − s_{k−1}) ReLU(x − t_k), s_k the slope from t_k to t_{k+1}, 0 before and after the knots."""
    t, v = [Fraction(float(k)) for k in knots], [Fraction(float(w)) for w in values]
    slopes = [(w1 - w0) / (t1 - t0) for w0, w1, t0, t1 in zip(v, v[1:], t, t[1:], strict=False)]
    jumps = [after - before for before, after in zip([Fraction(0), *slopes], [*slopes, Fraction(0)], strict=True)]
    low, high = np.full(atoms.n, float(min(v))), np.full(atoms.n, float(max(v)))
    units = [(c, form - Form.number(k)) for c, k in zip(jumps, t, strict=True) if c]
    return atoms.hinge(units, Form.number(v[0]), low, high, name) if units else Form.number(v[0])


def interpret_interp(X: Any, knots: Array, values: Array) -> Any:
    piece = np.clip(np.searchsorted(knots, X.astype(np.float64), side="right") - 1, 0, len(knots) - 2)
    t, v = knots.astype(X.dtype), values.astype(X.dtype)
    inside = np.clip(X, t[0], t[-1])
    return v[piece] + (v[piece + 1] - v[piece]) * ((inside - t[piece]) / (t[piece + 1] - t[piece]))


def _carry_interp(node: Value, errors: list[float], ranges: Ranges) -> float:
    return splines.steepest(node.settings["knots"], node.settings["values"]) * errors[0]


def _carry_spline(node: Value, errors: list[float], ranges: Ranges) -> float:
    return _carry_interp(node, errors, ranges) + splines.own_error(node.settings, *ranges(node.arguments[0]))


TABLE = {
    "relu": Primitive(lambda X: np.maximum(X, 0.0), _relu, one),
    "abs": Primitive(np.abs, _abs, one),
    "maximum": Primitive(np.maximum, _maximum, one),
    "minimum": Primitive(np.minimum, _minimum, one),
    "clip": Primitive(lambda X, low, high: np.clip(X, low, high), _clip, one),
    "where": Primitive(interpret_where, _where, _carry_where),
    "interp": Primitive(interpret_interp, _interp, _carry_interp),
    "apply": Primitive(lambda X, function, **_: function(X), _spline, _carry_spline),
}
