"""Numbers that are none, or not all there: a sentence with the operation, never another program."""

import functools
from fractions import Fraction

import numpy as np
import pytest
import torch

import thereexists as te
from thereexists import program as P
from thereexists.core.errors import InvalidInput, ThereExistsError

x = P.tokens(3)
one = [[1.0]]


def raising(t):
    raise RuntimeError("boom")


ODD = {
    "text as an end": (lambda: P.tokens(2, low="a"), "'tokens' takes a finite number as low; got 'a'"),
    "no end": (lambda: P.clip(x, None, 1), "'clip' takes a finite number as low; got None"),
    "an array as an end": (lambda: P.clip(x, 0, np.ones(3)), "as high; got an array of the shape"),
    "a ragged matrix": (lambda: P.mix(x, [[1, 2], [3]]), "'mix' takes a matrix of real numbers"),
    "ragged factors": (lambda: x * [[1, 2], [3]], "'scale' takes values, numbers or arrays of real numbers"),
    "knots that are texts": (lambda: P.interp(x, ["0", "1"], [0, 1]), "'interp' takes knots of real numbers"),
    "an infinite knot": (lambda: P.interp(x, [0, np.inf], [0, 1]), "'interp' takes knots of finite numbers"),
    "a kernel that is a text": (lambda: P.convolve(x, "a"), "'convolve' takes a kernel of real numbers"),
    "edges that are texts": (lambda: P.histogram(x, ["0", "1"], margin=0.1), "'histogram' takes edges of real"),
    "a bias of another size": (lambda: P.attention(x, one, one, one, one, b_Q=[1, 2, 3]), r"the shape \(1, 1\)"),
    "beyond float64": (lambda: x * 10**400, "'\\*' takes a finite number as factor; got a whole number of 1,329 bits"),
    "beyond float64, added": (lambda: x + 10**400, "'\\+' takes .* got a whole number of 1,329 bits"),
    "beyond float64, divided": (lambda: 10**400 / (1 + x), "'divide' takes a finite number as numerator"),
    "divided by next to nothing": (
        lambda: x / 1e-310,
        "'/' divides a value .* at least 2\\^-900",
    ),
    "a margin of next to nothing": (lambda: P.greater(x, 0.5, margin=1e-310), "margin, from 2\\^-900"),
    "a smaller one": (lambda: P.rank(x, margin=5e-324), "'rank' takes a positive margin"),
    "an error of next to nothing": (lambda: P.multiply(x, x, epsilon=5e-324), "'multiply' takes a positive epsilon"),
    "a complex margin": (lambda: P.rank(x, margin=np.complex64(1)), "'rank' takes a positive margin"),
    "a curvature that is a text": (lambda: P.apply(raising, x, curvature="1"), "a curvature from 0"),
    "a negative curvature": (lambda: P.apply(raising, x, curvature=-1.0), "a curvature from 0"),
    "a curvature that is a flag": (lambda: P.apply(raising, x, curvature=True), "a curvature from 0 .* got True"),
    "an error that is a flag": (lambda: P.apply(np.sin, x, epsilon=True), "'apply' takes a positive epsilon"),
    "a product's": (lambda: P.multiply(x, x, epsilon=np.True_), "'multiply' takes a positive epsilon"),
    "a quotient's": (lambda: P.divide(x, 1 + x, epsilon=np.array(True)), "'divide' takes a positive epsilon"),
    "a look-up's": (lambda: P.lookup(x, x, x, sharpness=9, epsilon=True), "'lookup' takes a positive epsilon"),
    "one of known keys": (lambda: P.lookup(x, one * 3, one * 3, sharpness=9, epsilon=True), "takes a positive epsilon"),
    "a margin that is a flag": (lambda: P.greater(x, 0.5, margin=True), "'greater' takes a positive margin"),
    "a function that raises": (lambda: P.apply(raising, x, curvature=1.0), "it raised RuntimeError: boom"),
    "a function of texts": (lambda: P.apply(lambda t: t.astype(str), x, curvature=1.0), "values of real numbers"),
    "text": (lambda: x + "1", "'\\+' takes .* real numbers; got '1'"),
    "text times": (lambda: x * "1", "got '1' instead"),
    "bytes": (lambda: x + b"1", "got b'1' instead"),
    "texts": (lambda: x + np.array(["1", "2", "3"]), "kind <U1"),
    "dates": (lambda: x + np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), "kind datetime64"),
    "a mask": (lambda: x + np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "got an array with a mask"),
    "complex": (lambda: x + np.array([1j, 2, 3]), "kind complex128"),
    "complex times": (lambda: x * np.complex64(1j), "as factor"),
    "objects": (lambda: x + np.array([object()] * 3), "kind object"),
    "an axis that is a flag": (lambda: np.sum(P.tokens(3, 2), axis=False), "goes along the tokens here"),
    "an axis that is an array": (lambda: np.sum(x, axis=np.zeros(2)), "goes along the tokens here"),
    "half a place": (lambda: P.roll(x, 1.5), "'roll' takes a whole number of places"),
    "a place that is a flag": (lambda: P.delay(x, np.True_), "'delay' takes a whole number of places"),
}


@pytest.mark.parametrize(("make", "says"), ODD.values(), ids=ODD)
def test_what_is_no_real_number_is_named(make, says):
    with pytest.raises(InvalidInput, match=says):
        make()


X = np.random.default_rng(0).random((5, 3, 1))


@pytest.mark.parametrize(
    ("given", "same"),
    [
        (x + Fraction(1, 4), x + 0.25),
        (x + np.array([Fraction(1, 4), 1, 2]), x + np.array([0.25, 1.0, 2.0])),
        (x * np.float32(0.5), x * 0.5),
        (x + torch.tensor([1.0, 2.0, 3.0]), x + np.array([1.0, 2.0, 3.0])),
        (x + 2**70, x + 2.0**70),
        (P.roll(x, 10**30), P.roll(x, 10**30 % 3)),
        (P.roll(x, -(10**30)), P.roll(x, -(10**30) % 3)),
        (P.delay(x, 10**30, fill=0.5), x * 0.0 + 0.5),
        (P.delay(x, -(10**30)), x * 0.0),
        (x + np.array([True, False, True]), x + np.array([1.0, 0.0, 1.0])),
    ],
)
def test_what_is_a_real_number_is_taken(given, same):
    assert np.array_equal(P.interpret(given, X), P.interpret(same, X))


BEYOND = {
    "factors": lambda: functools.reduce(lambda y, _: y * 2.0**99, range(12), x),
    "divisors": lambda: x / 2.0**-899 / 2.0**-899,
    "sums": lambda: functools.reduce(lambda y, _: y + 2.0**100 * y, range(12), x),
    "matrices": lambda: functools.reduce(lambda y, _: P.mix(y, [[2.0**100]]), range(12), x),
    "a slope": lambda: P.interp(x, [0.0, 5e-324], [0.0, 1.0]),
    "under a clip": lambda: P.clip(BEYOND["factors"](), 0, 1),
    "in a sort": lambda: P.sort(BEYOND["factors"]()),
    "in a product": lambda: BEYOND["factors"]() * x,
}


@pytest.mark.parametrize("make", BEYOND.values(), ids=BEYOND)
def test_what_grows_beyond_float64_is_refused_in_words(make):
    with pytest.raises(ThereExistsError, match=r"largest float64|knots"):
        te.build(make())
