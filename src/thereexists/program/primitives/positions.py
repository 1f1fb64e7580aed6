"""Who reads whom: gathers by a fixed map, averages and sums over tokens, prefix sums. All exact.

**Prefix sums** by doubling: after round k, token i has the sum over i − 2^k + 1 … i. Reading before the beginning would
have to give 0; instead x(0) is replaced by 0, reads before the beginning go to token 0, and x(0) is added at the end.
⌈log2 n⌉ + 1 blocks, no token ever looks ahead. **Prefix means** are one head of a causal network; elsewhere they are
the prefix sums times 1/(i + 1).
"""

from __future__ import annotations

import numpy as np

from thereexists.errors import InvalidInput
from thereexists.program.graph import Value
from thereexists.program.lowering import Atoms, Form
from thereexists.program.primitives.base import Primitive, one
from thereexists.program.primitives.linear import scaled


def _gather(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    source = np.array(node.settings["source"])
    return [atoms.gather(source, form, node.settings["called"]) for form in arguments[0]]


def _mean(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    _needs_all(atoms, "mean")
    return [atoms.average(form, 1, "mean") for form in arguments[0]]


def _total(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    _needs_all(atoms, "total")
    if atoms.valid is None:
        return [atoms.average(form, atoms.n, "total") for form in arguments[0]]
    forms = [atoms.valid * form.constant if not form.terms else atoms.real(form, 0.0, "total") for form in arguments[0]]
    return [atoms.average(form, atoms.n, "total", everywhere=True) for form in forms]


def _needs_all(atoms: Atoms, name: str) -> None:
    if atoms.causal and atoms.n > 1:
        raise InvalidInput(
            f"'{name}' needs token {atoms.n - 1} at position 0, which a causal mask hides; "
            f"take {'prefix_mean' if name == 'mean' else 'cumsum'} instead."
        )


def _cumsum(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    return [prefix_sum(atoms, form) for form in arguments[0]]


def prefix_sum(atoms: Atoms, x: Form) -> Form:
    if atoms.n == 1:
        return x
    positions = np.arange(atoms.n)
    if not x.terms:
        return atoms.constant(positions + 1.0) * x.constant
    first = atoms.gather(np.zeros(atoms.n, dtype=np.int64), x, "cumsum")
    y = scaled(atoms, x, (positions > 0).astype(np.float64))
    for k in range((atoms.n - 1).bit_length()):
        y = y + atoms.gather(np.maximum(positions - 2**k, 0), y, "cumsum")
    return y + first


def _prefix_mean(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    if atoms.causal:
        return [atoms.average(form, 1, "prefix_mean") for form in arguments[0]]
    return [scaled(atoms, prefix_sum(atoms, form), 1.0 / np.arange(1, atoms.n + 1)) for form in arguments[0]]


def _cumulative(sign: int, name: str):
    """cummax: after round k token i has the largest of i − 2^k + 1 … i; token 0 may count more than once."""

    def lowering(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
        from thereexists.program.primitives.hinges import extreme

        out = []
        for x in arguments[0]:
            for k in range((atoms.n - 1).bit_length()):
                x = extreme(atoms, x, atoms.gather(np.maximum(np.arange(atoms.n) - 2**k, 0), x, name), sign, name)
            out.append(x)
        return out

    return lowering


def _every(X, value):
    return np.broadcast_to(value, X.shape)


TABLE = {
    "gather": Primitive(lambda X, source, called: X[:, list(source[: X.shape[1]])], _gather, one),
    "mean": Primitive(lambda X: _every(X, X.mean(axis=1, keepdims=True)), _mean, one),
    "total": Primitive(
        lambda X, n: _every(X, X.sum(axis=1, keepdims=True)), _total, lambda s, errors: s["n"] * errors[0]
    ),
    "cumsum": Primitive(lambda X, n: np.cumsum(X, axis=1), _cumsum, lambda s, errors: s["n"] * errors[0]),
    "prefix_mean": Primitive(lambda X: np.cumsum(X, axis=1) / np.arange(1, X.shape[1] + 1)[:, None], _prefix_mean, one),
    "cummax": Primitive(lambda X: np.maximum.accumulate(X, axis=1), _cumulative(1, "cummax"), one),
    "cummin": Primitive(lambda X: np.minimum.accumulate(X, axis=1), _cumulative(-1, "cummin"), one),
}
