"""What is linear in the features of a token: exact, and free unless the factor depends on the position."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.lowering import Atoms, Form, gate_height, short_bottom
from thereexists.constructions.program.primitives.base import Primitive, one
from thereexists.functions.target import Array


def _tokens(atoms: Atoms, node: Value, _: list[list[Form]]) -> list[Form]:
    if node.settings["shorter"] and not atoms.causal:  # a causal network never sees what follows
        atoms.valid = atoms.token(node.d, 0.0, 1.0)
    return [atoms.token(f, node.settings["low"], node.settings["high"]) for f in range(node.d)]


def _constant(atoms: Atoms, node: Value, _: list[list[Form]]) -> list[Form]:
    return [atoms.constant(np.ascontiguousarray(node.settings["array"][:, f])) for f in range(node.d)]


def _linear(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    total = [Form() for _ in range(node.d)]
    divisor = Fraction(node.settings.get("divisor", 1.0))
    for c, forms in zip(node.settings["coefficients"], arguments, strict=True):
        total = [t + form * (Fraction(c) / divisor) for t, form in zip(total, forms, strict=True)]
    return total


def _carried(node: Value, errors: list[float], _: Any) -> float:
    size = abs(node.settings.get("divisor", 1.0)) * (1 - 2.0**-50)
    return sum(abs(c) * e for c, e in zip(node.settings["coefficients"], errors, strict=True)) / size


def _mix(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    out = []
    for weights in node.settings["matrix"]:
        total = Form()
        for c, form in zip(weights, arguments[0], strict=True):
            total = total + form * c
        out.append(total)
    return out


def _scale(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    columns = node.settings["factors"].T
    return [scaled(atoms, form, factors) for form, factors in zip(arguments[0], columns, strict=True)]


def scaled(atoms: Atoms, form: Form, factors: Array) -> Form:
    """c(i)·x(i), exactly: one unit for every value that c takes, open at its positions only.

    (Factors like 1/3 are meant exactly: a number of more than 26 bits may be off by 2^-52, see ``weights.nearest``.)

    Number the values of c, and give every position the ±1 code of its number. At a position with the number k the
    distance H_k(i) = (bits − ⟨code of k, code⟩)/2 is 0, and at least 1 elsewhere. With l ≤ x ≤ l + R

        c(i)·x(i) = l·c(i) + Σ_k c_k·ReLU(x − l − R·H_k(i)),

    because all units but one are closed.
    """
    if (factors == factors[0]).all() or not form.terms:
        return form * float(factors[0]) if form.terms else atoms.constant(factors) * form.constant
    values, number = np.unique(factors, return_inverse=True)
    if len(values) == atoms.n:  # the positions' own codes will do
        values, number = factors, np.arange(atoms.n)
    low, high = atoms.range(form)
    bottom = short_bottom(float(low.min()), float(high.max()))
    R, bits = gate_height(bottom, float(high.max())), (len(values) - 1).bit_length()
    code = [atoms.constant(2.0 * (number >> b & 1) - 1.0, "position") for b in range(bits)]
    units = []
    for k, c in enumerate(values):
        distance = Form.number(Fraction(bits, 2))
        for b in range(bits):
            distance = distance - code[b] * Fraction(2 * (k >> b & 1) - 1, 2)
        if c:
            units.append((Fraction(float(c)), form - Form.number(bottom) - distance * R))
    ends = (factors * low, factors * high)
    return atoms.hinge(units, atoms.constant(factors) * bottom, np.minimum(*ends), np.maximum(*ends), "scale")


TABLE = {
    "tokens": Primitive(lambda X, **_: X, _tokens, one),
    "constant": Primitive(lambda array: array[None], _constant, lambda node, errors, ranges: 0.0),
    "linear": Primitive(
        lambda *X, coefficients, divisor=1.0: sum(c * x for c, x in zip(coefficients, X, strict=True)) / divisor,
        _linear,
        _carried,
    ),
    "mix": Primitive(
        lambda X, matrix: X @ matrix.T,
        _mix,
        lambda node, errors, _: float(np.abs(node.settings["matrix"]).sum(axis=1).max()) * errors[0],
    ),
    "scale": Primitive(
        lambda X, factors: factors[: X.shape[1]] * X,
        _scale,
        lambda node, errors, _: float(np.abs(node.settings["factors"]).max()) * errors[0],
    ),
}
