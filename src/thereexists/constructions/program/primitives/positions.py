"""Who reads whom: gathers by a fixed map, averages and sums over tokens. All exact."""

from __future__ import annotations

import numpy as np

from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.lowering import Atoms, Form
from thereexists.constructions.program.primitives.base import Primitive, one
from thereexists.constructions.program.primitives.linear import scaled
from thereexists.core.errors import InvalidInput


def _take(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    source = np.array(node.settings["source"])
    return [atoms.gather(source, form, node.settings["called"]) for form in arguments[0]]


def _mean(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    scale = node.settings["scale"]
    name = "mean" if scale == 1 else "sum"
    _needs_all(atoms, name)
    return [atoms.average(form, scale, name) for form in arguments[0]]


def _sum(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    """For programs of shorter lengths: padded tokens become 0 and count, so that n times the mean is the sum."""
    _needs_all(atoms, "sum")
    if atoms.valid is None:
        raise InvalidInput("'sum' of a shorter sequence needs its flags.")
    forms = [atoms.valid * form.constant if not form.terms else atoms.real(form, 0.0, "sum") for form in arguments[0]]
    return [atoms.average(form, atoms.n, "sum", everywhere=True) for form in forms]


def _needs_all(atoms: Atoms, name: str) -> None:
    if atoms.causal and atoms.n > 1:
        raise InvalidInput(
            f"'{name}' needs token {atoms.n - 1} at position 0, which a causal mask hides; "
            f"take {'prefix_mean' if name == 'mean' else 'cumsum'} instead."
        )


def _prefix_mean(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    """One head of a causal network. Elsewhere: Σ_{j ≤ i} x_j by doubling (as in ``cumsum``), times 1/(i + 1)."""
    if atoms.causal:
        return [atoms.average(form, 1, "prefix_mean") for form in arguments[0]]
    return [scaled(atoms, _prefix_sum(atoms, form), 1.0 / np.arange(1, atoms.n + 1)) for form in arguments[0]]


def _prefix_sum(atoms: Atoms, x: Form) -> Form:
    positions = np.arange(atoms.n)
    y = scaled(atoms, x, (positions > 0) * 1.0)
    for k in range((atoms.n - 1).bit_length()):
        y = y + atoms.gather(np.maximum(positions - 2**k, 0), y, "prefix_mean")
    return y + atoms.gather(np.zeros(atoms.n, dtype=np.int64), x, "prefix_mean")


def _every(X, value):
    return np.broadcast_to(value, X.shape)


TABLE = {
    "take": Primitive(lambda X, source, called: X[:, list(source[: X.shape[1]])], _take, one),
    "mean": Primitive(
        lambda X, scale: _every(X, scale * X.mean(axis=1, keepdims=True)),
        _mean,
        lambda node, errors, _: abs(node.settings["scale"]) * errors[0],
    ),
    "sum": Primitive(
        lambda X, n: _every(X, X.sum(axis=1, keepdims=True)), _sum, lambda node, errors, _: node.n * errors[0]
    ),
    "prefix_mean": Primitive(lambda X: np.cumsum(X, axis=1) / np.arange(1, X.shape[1] + 1)[:, None], _prefix_mean, one),
}
