"""An operation that NumPy has too is called as there, and does the same along the tokens."""

import numpy as np
import pytest

from thereexists import program as P
from thereexists.certificates.program_meaning import MEANINGS
from thereexists.constructions.program.primitives import PRIMITIVES

N = 6
MARGIN = 1 / 16  # the numbers below are equal or that far apart
KNOTS, VALUES = [0.25, 0.5, 0.75], [1.0, -2.0, 0.5]
ORDER = np.array([3, 0, 0, 5, 1, 2])


def every(reduced):
    """A number for each sequence, given to each of its tokens."""
    return np.repeat(reduced, N, axis=1)


# name: (the program, and what NumPy's function of that name makes of one feature of all tokens, X: (batch, n, 1))
NUMPY = {
    "abs": (lambda x, f: f(x - 0.5), lambda X: np.abs(X - 0.5)),
    "argsort": (lambda x, f: f(x, margin=MARGIN), lambda X: np.argsort(X, axis=1, kind="stable")),
    "clip": (lambda x, f: f(x, 0.25, 0.5), lambda X: np.clip(X, 0.25, 0.5)),
    "convolve": (lambda x, f: f(x, [0.5, 2.0]), lambda X: np.stack([_convolved(row) for row in X])),
    "cumsum": (lambda x, f: f(x), lambda X: np.cumsum(X, axis=1)),
    "divide": (lambda x, f: f(x, x + 1.0), lambda X: np.divide(X, X + 1.0)),
    "equal": (lambda x, f: f(x, 0.5, margin=MARGIN), lambda X: np.equal(X, 0.5)),
    "flip": (lambda x, f: f(x), lambda X: np.flip(X, axis=1)),
    "greater": (lambda x, f: f(x, 0.5, margin=MARGIN), lambda X: np.greater(X, 0.5)),
    "greater_equal": (lambda x, f: f(x, 0.5, margin=MARGIN), lambda X: np.greater_equal(X, 0.5)),
    "histogram": (lambda x, f: f(x, [0.0, 0.5, 2.0], margin=MARGIN), lambda X: np.stack([_counts(row) for row in X])),
    "interp": (lambda x, f: f(x, KNOTS, VALUES), lambda X: np.interp(X, KNOTS, VALUES)),
    "max": (lambda x, f: f(x), lambda X: every(np.max(X, axis=1, keepdims=True))),
    "maximum": (lambda x, f: f(x, 0.5), lambda X: np.maximum(X, 0.5)),
    "mean": (lambda x, f: f(x), lambda X: every(np.mean(X, axis=1, keepdims=True))),
    "median": (lambda x, f: f(x), lambda X: every(np.median(X, axis=1, keepdims=True))),
    "min": (lambda x, f: f(x), lambda X: every(np.min(X, axis=1, keepdims=True))),
    "minimum": (lambda x, f: f(x, 0.5), lambda X: np.minimum(X, 0.5)),
    "multiply": (lambda x, f: f(x, x), lambda X: np.multiply(X, X)),
    "reciprocal": (lambda x, f: P.apply(f, x + 1.0), lambda X: np.reciprocal(X + 1.0)),
    "roll": (lambda x, f: f(x, 2), lambda X: np.roll(X, 2, axis=1)),
    "sort": (lambda x, f: f(x), lambda X: np.sort(X, axis=1)),
    "sum": (lambda x, f: f(x), lambda X: every(np.sum(X, axis=1, keepdims=True))),
    "take": (lambda x, f: f(x, ORDER), lambda X: np.take(X, ORDER, axis=1)),
    "where": (lambda x, f: f(np.arange(N) % 2, x, 0.5), lambda X: np.where((np.arange(N) % 2)[:, None], X, 0.5)),
}
OTHERS = {
    "broadcast",  # np.broadcast makes an iterator of shapes
    "choose",  # np.choose counts from 0; ours are a flag and two
    "argmax",  # of features, and gives a symbol: tests/constructions/symbols
    "isin",  # of symbols
}


def _convolved(row):
    return np.convolve(row[:, 0], [0.5, 2.0])[:N, None]


def _counts(row):
    return np.tile(np.histogram(row, [0.0, 0.5, 2.0])[0], (N, 1))


@pytest.mark.parametrize("name", NUMPY)
def test_an_operation_with_numpys_name_is_numpys(name):
    X = np.random.default_rng(0).integers(0, 16, (50, N, 1)) / 16
    program, wanted = NUMPY[name]
    answer = P.interpret(program(P.tokens(N), getattr(P, name)), X)
    assert np.abs(answer - wanted(X)).max() <= 8 * N * 2.0**-53  # sums of at most 6 numbers below 2 each, in two orders


def test_every_name_that_numpy_has_too_is_compared():
    assert {name for name in P.__all__ if hasattr(np, name)} == set(NUMPY) | OTHERS


@pytest.mark.parametrize(
    "old",
    [
        "largest",
        "smallest",
        "total",
        "absolute",
        "shift",
        "reverse",
        "product",
        "quotient",
        "gather",
        "piecewise",
        "at_least",
    ],
)
def test_a_second_name_is_not_kept(old):
    assert not hasattr(P, old)
    assert old not in PRIMITIVES
    assert old not in MEANINGS


def test_the_functions_say_their_own_names():
    for name in set(NUMPY) - {"reciprocal"}:
        assert getattr(P, name).__name__ == name


def test_the_package_itself_does_not_lose_the_builtins():
    """``max`` of a program is one module's; who computes with numbers still has Python's."""
    import builtins

    from thereexists.constructions.program import compositions, operations, ranges

    for module in (operations, compositions, ranges):
        assert all(getattr(module, name, getattr(builtins, name)) is getattr(builtins, name) for name in ("max", "abs"))
