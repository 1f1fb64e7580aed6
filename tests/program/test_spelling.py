"""What Python and NumPy can write with a program's value: it does what it says, or names the operation to take."""

import math
import operator
import re

import numpy as np
import pytest

import thereexists as te
from thereexists import program as P
from thereexists.constructions.program.numpy_calls import ALONE, NOT_CONTINUOUS, SIGNS, TAKE
from thereexists.constructions.program.splines import MOST_POWER
from thereexists.core.errors import InvalidInput

N = 5
RNG = np.random.default_rng(0)
X = RNG.random((40, N, 2))
ROWS = RNG.random((N, 2))
ORDER = [3, 0, 0, 4, 1]


def every(reduced):
    return np.repeat(reduced, N, axis=1)


# what is written, and what NumPy makes of it: of one sequence (n, d), so that both sides are the same expression
SAME = {
    "abs": lambda x: abs(x - 0.5),
    "+x": lambda x: +x,
    "x ** 0": lambda x: x**0,
    "x ** 1": lambda x: x**1,
    "x ** 2": lambda x: x**2,
    "x ** 5": lambda x: x**5,
    "x ** 3.0": lambda x: x**3.0,
    "pow": lambda x: pow(x - 0.5, 3),
    "x ** 0.5": lambda x: (x + 0.25) ** 0.5,
    "x ** -0.5": lambda x: (x + 0.25) ** -0.5,
    "x ** -1": lambda x: (x + 1) ** -1,
    "x @ matrix": lambda x: x @ np.array([[1.0, 2.0, 0.0], [0.5, 0.0, -1.0]]),
    "x - x[2]": lambda x: x - x[2],
    "x - x[-1]": lambda x: x - x[-1],
    "x - x[np.int64(1)]": lambda x: x - x[np.int64(1)],
    "x - x[1, 1]": lambda x: x[:, :1] - x[1, 1],
    "x[:]": lambda x: x[:],
    "x[::-1]": lambda x: x[::-1],
    "x[ORDER]": lambda x: x[ORDER],
    "x[:, 1]": lambda x: x[:, 1:],
    "x[:, ::-1]": lambda x: x[:, ::-1],
    "x[:, [1, 0, 1]]": lambda x: x[:, [1, 0, 1]],
    "x - x[0, ...]": lambda x: x - x[0, ...],
    "x[..., 1:]": lambda x: x[..., 1:],
    "array - x": lambda x: ROWS - x,
    "array * x": lambda x: ROWS * x,
    "array / x": lambda x: ROWS / (x + 1),
    "np.float64 * x": lambda x: np.float64(0.3) * x,
    "np.sin": lambda x: np.sin(3 * x),
    "np.exp": lambda x: np.exp(x),
    "np.square": lambda x: np.square(x),
    "np.reciprocal": lambda x: np.reciprocal(x + 1),
    "np.maximum": lambda x: np.maximum(x, x[::-1]),
    "np.maximum of an array": lambda x: np.maximum(ROWS, x),
    "np.minimum": lambda x: np.minimum(x, 0.5),
    "np.abs": lambda x: np.abs(x - 0.5),
    "np.negative": lambda x: np.negative(x),
    "np.subtract": lambda x: np.subtract(1.0, x),
    "np.power": lambda x: np.power(x, 3),
    "np.matmul": lambda x: np.matmul(x, np.eye(2)),
    "np.dot": lambda x: np.dot(x, np.eye(2)),
    "np.clip": lambda x: np.clip(x, 0.2, 0.7),
    "np.clip by arrays": lambda x: np.clip(x, ROWS / 2, None),
    "np.where": lambda x: np.where(np.repeat([[1.0], [0.0], [1.0], [0.0], [0.0]], 2, axis=1), x, 0.5),
    "np.interp": lambda x: np.interp(x, [0.0, 0.5, 1.0], [1.0, 0.0, 3.0]),
    "np.sort": lambda x: np.sort(x, axis=0),
    "np.take": lambda x: np.take(x, ORDER, axis=0),
    "np.roll": lambda x: np.roll(x, 2, axis=0),
    "np.flip": lambda x: np.flip(x, axis=0),
    "np.cumsum": lambda x: np.cumsum(x, axis=0),
    "x - np.mean": lambda x: x - np.mean(x, axis=0),
    "x - np.sum": lambda x: x - np.sum(x, axis=0, keepdims=True),
    "x - np.max": lambda x: x - np.max(x, axis=0),
    "x - np.min": lambda x: x - np.min(x, axis=0),
    "x - np.median": lambda x: x - np.median(x, axis=0),
    "x - np.var": lambda x: x - np.var(x, axis=0),
    "np.maximum.accumulate": lambda x: np.maximum.accumulate(x),
    "np.add.reduce": lambda x: x - np.add.reduce(x),
    "np.zeros_like": lambda x: x + np.ones_like(x) - np.zeros_like(x),
}


@pytest.mark.sampled(14)
@pytest.mark.parametrize("name", SAME)
def test_what_is_written_is_what_numpy_makes_of_it(name):
    """Interpreter and network both; the network within the bound of its splines and 2^-30 for float64."""
    program = SAME[name](P.tokens(N, d=2))
    wanted = np.stack([SAME[name](one) for one in X])
    assert np.abs(P.interpret(program, X) - wanted).max() <= 2.0**-45
    compiled = P.compile(program)
    assert np.abs(compiled(X) - wanted).max() <= compiled.approximation + 2.0**-30


X_ = P.tokens(N)
COMPARISONS = {
    "==": (operator.eq, "P.equal"),
    "!=": (operator.ne, "P.equal"),
    "<": (operator.lt, "P.greater"),
    "<=": (operator.le, "P.greater_equal"),
    ">": (operator.gt, "P.greater"),
    ">=": (operator.ge, "P.greater_equal"),
}


@pytest.mark.parametrize("sign", COMPARISONS)
@pytest.mark.parametrize("other", [0.5, None, "same", "value", "array"], ids=str)
def test_a_comparison_is_refused_with_the_operation_to_use(sign, other):
    compare, instead = COMPARISONS[sign]
    others = {"same": X_, "value": P.tokens(N), "array": np.arange(N)}
    right = others.get(other, other) if isinstance(other, str) else other
    with pytest.raises(InvalidInput, match=instead):
        compare(X_, right)
    if other != "same":
        with pytest.raises(InvalidInput, match=instead):
            compare(right, X_)


REFUSED = {
    "bool": (bool, "P.where"),
    "if": (lambda x: 1 if x else 2, "P.where"),
    "and": (lambda x: x and 1, "P.where"),
    "not": (operator.not_, "P.where"),
    "in": (lambda x: 0.5 in x, "P.equal"),
    "in a list": (lambda x: x in [P.tokens(2), x], "P.equal"),
    "list": (list, "P.sum"),
    "sum": (sum, "P.sum"),
    "max": (lambda x: max(x, P.tokens(N)), "P.maximum"),
    "min": (lambda x: min(x, P.tokens(N)), "P.minimum"),
    "sorted": (sorted, "P.sort"),
    "reversed": (reversed, "x.i."),
    "float": (float, "P.apply"),
    "math.sin": (math.sin, "np.sin"),
    "int": (int, "P.interp"),
    "math.floor": (math.floor, "P.interp"),
    "round": (round, "P.interp"),
    "round to 2": (lambda x: round(x, 2), "P.interp"),
    "//": (lambda x: x // 2, "P.greater"),
    "%": (lambda x: x % 2, "P.interp"),
    "divmod": (lambda x: divmod(x, 2), "P.interp"),
    "&": (lambda x: x & 1, "P.minimum"),
    "|": (lambda x: x | 1, "P.maximum"),
    "~": (operator.invert, "1 - flag"),
    "2 ** x": (lambda x: 2**x, "np.exp"),
    "x ** x": (lambda x: x**x, "np.exp"),
    "x ** -2": (lambda x: x**-2, "quotients"),
    "x ** 0.3": (lambda x: x**0.3, "P.apply"),
    "x ** 9": (lambda x: x ** (MOST_POWER + 1), "products"),
    "x ** True": (lambda x: x**True, "whole number"),
    "pow modulo": (lambda x: pow(x, 2, 3), "whole number"),
    "array @ x": (lambda x: np.eye(N) @ x, "P.attention"),
    "x @ x": (lambda x: x @ x, "P.sum"),
    "x[1:]": (lambda x: x[1:], "P.take"),
    "x[N]": (lambda x: x[N], "0 to 4"),
    "x[None]": (lambda x: x[None], "two indices"),
    "x[0, 0, 0]": (lambda x: x[0, 0, 0], "two indices"),
    "x[0.5]": (lambda x: x[0.5], "whole number"),
    "x[mask]": (lambda x: x[np.arange(N) > 2], "P.where"),
    "x[x]": (lambda x: x[x], "P.lookup"),
    "x[:, 1]": (lambda x: x[:, 1], "0 to 0"),
    "x[:, 1:]": (lambda x: x[:, 1:], "No feature"),
    "x[ragged]": (lambda x: x[[[1], [2, 3]]], r"whole numbers of tokens; got \[\[1\]"),
    "x @ ragged": (lambda x: x @ [[1.0, 2.0], [3.0]], "two dimensions; got"),
    "P.take of ragged lists": (lambda x: P.take(x, [[1], [2, 3]]), "list of whole numbers; got"),
    "np.take of ragged lists": (lambda x: np.take(x, [[1], [2, 3]], axis=0), "whole numbers; got"),
    "inputs that are ragged": (lambda x: P.interpret(x, [[1.0], [2.0, 3.0]]), "inputs of real numbers"),
    "inputs that are text": (lambda x: P.interpret(x, "abc"), "inputs of real numbers; got 'abc'"),
    "an input beyond float64": (lambda x: P.interpret(x, 10**400), "a whole number of 1,329 bits"),
    "x[0] = 1": (lambda x: operator.setitem(x, 0, 1.0), "P.where"),
    "np.asarray": (np.asarray, "P.interpret"),
    "array += x": (lambda x: operator.iadd(np.zeros((N, 1)), x), "out"),
    "np.sin with out": (lambda x: np.sin(x, out=np.zeros((N, 1))), "out"),
    "np.sinh": (np.sinh, "P.apply"),
    "np.arctan2": (lambda x: np.arctan2(x, x), "P.apply"),
    "np.add.outer": (lambda x: np.add.outer(x, x), "P.sum"),
    "np.sort along features": (np.sort, "axis=0"),
    "np.linalg.norm": (np.linalg.norm, "docs/programs.md"),
    "np.mean of axis 1": (lambda x: np.mean(x, axis=1), "axis=0"),
    "np.sum of all features": (lambda x: np.sum(P.tokens(N, d=2)), "axis=0"),
    "np.where with one argument": (np.where, "P.where"),
    "np.mean with where": (lambda x: np.mean(x, axis=0, where=np.ones((N, 1), bool)), "axis"),
    "np.mean with a dtype": (lambda x: np.mean(x, 0, np.float32), "np.mean"),
    "the length of shorter sequences": (lambda x: len(P.tokens(N, shorter=True)), "P.sum"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_is_refused_with_the_operation_to_use(name):
    write, instead = REFUSED[name]
    with pytest.raises(InvalidInput, match=instead):
        write(P.tokens(N))


@pytest.mark.parametrize("ufunc", [*SIGNS, *NOT_CONTINUOUS], ids=lambda f: f.__name__)
def test_a_ufunc_that_is_not_continuous_is_refused(ufunc):
    with pytest.raises(InvalidInput, match=r"take "):
        ufunc(*[P.tokens(N)] * ufunc.nin)


CALLS = {
    np.copyto: lambda x: np.copyto(x, x),
    np.allclose: lambda x: np.allclose(x, 0.5),
    np.isclose: lambda x: np.isclose(x, 0.5),
    np.array_equal: lambda x: np.array_equal(x, x),
    np.convolve: lambda x: np.convolve(x, [1.0]),
    np.einsum: lambda x: np.einsum("ij->i", x),
    np.concatenate: lambda x: np.concatenate([x, x]),
    np.stack: lambda x: np.stack([x, x]),
}


@pytest.mark.parametrize("function", TAKE, ids=lambda f: f.__name__)
def test_a_function_that_is_no_operation_names_one(function):
    with pytest.raises(InvalidInput, match=r"take "):
        CALLS.get(function, function)(P.tokens(N))


def test_every_unary_ufunc_of_numpy_is_one_of_ours_or_refused():
    """None of them may slip through to something else."""
    names = {f for f in vars(np).values() if isinstance(f, np.ufunc) and f.nin == 1 and f.nout == 1}
    for ufunc in names - set(ALONE):
        with pytest.raises(InvalidInput):
            ufunc(P.tokens(N, low=1.0, high=2.0))


def test_values_are_known_by_their_identity_in_sets():
    x, y = P.tokens(N), P.tokens(N)
    assert len({x, y, x}) == 2
    assert {x: 1}[x] == 1
    assert len(x) == N
    assert np.shape(x) == (N, 1)


def test_a_comparison_does_not_become_a_program():
    """``P.where(x == 0.5, 1.0, 0.0)`` used to be the program 0, and was proved."""
    x = P.tokens(N)
    with pytest.raises(InvalidInput, match="margin"):
        te.build(P.where(x == 0.5, 1.0, x))


def test_numbers_that_may_be_for_tokens_or_for_features_are_refused():
    x = P.tokens(3, d=3)
    with pytest.raises(InvalidInput, match="tokens or the 3 features"):
        np.add(x, [1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="tokens or the 3 features"):
        x * np.arange(3)
    X = np.random.default_rng(0).random((2, 3, 3))
    for column in (np.arange(3.0)[:, None], np.arange(3.0)[None, :]):
        assert np.array_equal(P.interpret(x + column, X), X + column)


def test_two_lists_of_indices_are_refused_and_small_integers_are_indices():
    x = P.tokens(2, d=2)
    with pytest.raises(InvalidInput, match="pairs, as in NumPy"):
        x[[0, 1], [1, 0]]
    assert x[[1, 0]][:, [1, 0]].d == 2
    long = P.tokens(300)
    X = np.random.default_rng(0).random((1, 300, 1))
    assert np.array_equal(P.interpret(long[np.uint8(3)], X), np.repeat(X[:, 3:4], 300, axis=1))
    assert np.array_equal(P.interpret(long[np.full(300, -1, np.int8)], X), np.repeat(X[:, -1:], 300, axis=1))
    with pytest.raises(InvalidInput, match="an array of it"):
        np.array(x)


def test_an_assumed_curvature_is_told_with_all_its_digits():
    x = P.tokens(2, low=1e6, high=1e6 + 2)
    said = te.build(P.apply(lambda t: 0.5 * t, x, curvature=1.2345651, epsilon=1.0)).certificate.assumptions
    (curvature,) = (text for text in said if "|f''|" in text)
    low, high = (float(word) for word in re.findall(r"from (\S+) to (\S+),", curvature)[0])
    assert "≤ 1.2345651 " in curvature
    assert low <= 1e6 < 1e6 + 2 <= high


def test_nothing_is_counted_from_an_end_that_is_elsewhere():
    x = P.tokens(4, shorter=True)
    for written in (lambda: x[-1], lambda: x[-4], lambda: x[[0, 0, -4, 1]], lambda: np.take(x, [0, -4, 0, 0], axis=0)):
        with pytest.raises(InvalidInput, match="counts from the end"):
            written()
    assert x[0].n == 4
