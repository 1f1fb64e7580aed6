"""The contract of every program: interpreter = numpy; network = interpreter within its claim, in every dtype."""

import dataclasses

import numpy as np
import pytest
import torch

from tests.program.cases import PROGRAMS, inputs
from thereexists import program as P
from thereexists.model.embedded import DTYPES

LENGTHS = (1, 6)
SANE = 2.0**-36  # no claim is tested by this: a bound in float64 above it would be too weak to catch a wrong network


def in_dtype(X, dtype, source):
    """Inputs that are numbers of the dtype and lie in the range."""
    X = torch.from_numpy(X).to(getattr(torch, dtype)).to(torch.float64).numpy()
    low, high = source.settings["low"], source.settings["high"]
    return np.where((X >= low) & (X <= high), X, 0.0)  # every range of the table holds 0


def largest_error(compiled, X, dtype):
    exact = P.interpret(compiled.program, X.astype(np.longdouble))
    return float(np.abs(compiled(X, dtype).astype(np.longdouble) - exact).max())


def violations(compiled, claim, dtype, count=96, seed=0):
    """How much a claim is exceeded on random and edge inputs; 0 if it is kept."""
    X = in_dtype(inputs(compiled.source, count, seed), dtype, compiled.source)
    return max(0.0, largest_error(compiled, X, dtype) - claim.total)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("n", LENGTHS)
def test_every_program_keeps_its_bound_in_every_dtype(name, n):
    compiled = P.compile(PROGRAMS[name](n))
    for dtype in DTYPES:
        claim = compiled.bound(dtype)
        assert np.isfinite(claim.total)
        assert violations(compiled, claim, dtype) == 0.0, (dtype, claim)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bound_in_float64_is_small(name):
    """Weak bounds cannot hide a wrong network: what float64 leaves is far below any mistake."""
    claim = P.compile(PROGRAMS[name](8)).bound("float64")
    assert claim.rounding < SANE
    assert (claim.approximation > 0) == ("apply" in name)


@pytest.mark.parametrize("name", ["sort", "smooth", "apply"])
def test_ten_thousand_random_inputs(name):
    compiled = P.compile(PROGRAMS[name](5))
    for dtype in ("float64", "float32", "bfloat16"):
        assert violations(compiled, compiled.bound(dtype), dtype, count=10_000, seed=1) == 0.0


@pytest.mark.parametrize("name", ["sort", "mean", "linear", "apply", "layered"])
def test_a_claim_that_is_too_small_is_caught(name):
    compiled = P.compile(PROGRAMS[name](16))
    honest = compiled.bound("bfloat16")
    wrong = dataclasses.replace(honest, rounding=honest.rounding / 100, approximation=honest.approximation / 100)
    assert violations(compiled, wrong, "bfloat16") > 0.0


@pytest.mark.parametrize("part", ["W_V", "W_O", "W_1", "b_1", "W_2"])
def test_a_wrong_weight_is_caught(part):
    compiled = P.compile(PROGRAMS["sort"](16))
    claim = compiled.bound("float32")
    weight = dict(compiled.network.named_parameters())
    name = next(key for key in weight if key.startswith("stages.block_7.") and key.endswith(part))
    with torch.no_grad():
        place = tuple(int(i) for i in torch.nonzero(weight[name])[0])
        weight[name][place] *= 0.9
    assert violations(compiled, claim, "float32") > 0.0


def test_the_interpreter_is_numpy():
    x = P.tokens(6, d=2)
    X = inputs(x, 64, 0)
    for program, wanted in (
        (P.sort(x), np.sort(X, axis=1)),
        (P.mean(x), np.repeat(X.mean(axis=1, keepdims=True), 6, axis=1)),
        (P.total(x), np.repeat(6 * X.mean(axis=1, keepdims=True), 6, axis=1)),
        (P.reverse(x), X[:, ::-1]),
        (P.shift(x, 2), np.roll(X, 2, axis=1)),
        (P.broadcast(x, 4), np.repeat(X[:, 4:5], 6, axis=1)),
        (P.largest(x), np.repeat(X.max(axis=1, keepdims=True), 6, axis=1)),
        (P.smallest(x), np.repeat(X.min(axis=1, keepdims=True), 6, axis=1)),
        (P.clip(x, 0.2, 0.7), np.clip(X, 0.2, 0.7)),
        (P.absolute(x - 0.4), np.abs(X - 0.4)),
        (np.ones(6) * 2 + x, X + 2.0),
    ):
        assert np.array_equal(P.interpret(program, X), wanted)
