"""The stages of the compiler, the sizes that were promised, and what the rounding bound refuses."""

import time

import numpy as np
import pytest
import torch

from tests.program.cases import PROGRAMS, inputs
from thereexists import program as P
from thereexists.arithmetic.dtype_sums import quantum
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.model import Transformer


@pytest.mark.slow
def test_sort_of_1024_reals():
    x = P.tokens(n=1024)
    start = time.perf_counter()
    compiled = P.compile(P.sort(x))
    assert time.perf_counter() - start < 10
    assert compiled.blocks == 55
    assert compiled.layout.d_model == 13  # ten bits of the position, the constant 1, the number and its partner
    claim = compiled.bound("float32").total
    assert claim <= 2.0**-23  # one ulp of 1
    X = np.random.default_rng(0).random((1, 1024, 1), dtype=np.float32).astype(np.float64)
    assert np.abs(compiled(X, "float32") - np.sort(X, axis=1)).max() <= claim


def test_sort_is_exact_in_float64_on_its_grid():
    """Numbers with 52 bits after the point, all float32 numbers from 2^-29 on among them, are not rounded at all."""
    compiled = P.compile(P.sort(P.tokens(n=64)))
    X = np.random.default_rng(0).integers(0, 2**52, (64, 64, 1), endpoint=True) * 2.0**-52
    assert np.array_equal(compiled(X), np.sort(X, axis=1))
    assert compiled.bound("float64").total <= 2.0**-52


def test_rows_are_reused():
    """Twenty rounds that need two living numbers each: rows do not grow with the depth."""
    x = P.tokens(8)
    widths = []
    for rounds in (2, 20):
        y = x
        for _ in range(rounds):
            y = P.maximum(P.roll(y, 1) - 0.1, y / 2)
        compiled = P.compile(y)
        assert compiled.blocks == rounds
        widths.append(compiled.layout.d_model)
    assert widths[0] == widths[1]


def test_independent_operations_share_a_block():
    x = P.tokens(8)
    y = P.relu(P.flip(x) - 0.5) + P.abs(P.mean(x) - 0.5) + P.clip(P.roll(x, 3), 0.1, 0.2)
    compiled = P.compile(y)
    assert compiled.blocks == 1
    assert compiled.network.shape()["h"] == 4  # reverse, mean, shift, and the one that takes the offset away


def test_common_subexpressions_are_one_and_dead_code_is_dropped():
    x = P.tokens(8)
    twice = P.compile(P.sort(x) + P.relu(P.sort(x) - 0.5) + 0 * P.relu(P.mean(P.sort(P.flip(x)))))
    once = P.compile(P.sort(x))
    assert twice.blocks == once.blocks + 1


def test_linear_programs_need_no_block():
    assert P.compile(3 * P.tokens(4) - 1).blocks == 0


def test_explain_names_every_half_block():
    text = P.compile(P.sort(P.tokens(4))).listing()
    assert text.startswith("3 blocks")
    assert "block 2 attention: sort: partner" in text
    assert "block 3 feed-forward: sort: exchange" in text


def test_a_network_comes_back_from_its_structure():
    compiled = P.compile(PROGRAMS["layered"](5))
    weights = {k: w.clone() for k, w in compiled.network.state_dict().items()}
    again = Transformer.from_structure(compiled.network.structure(), weights)
    X = torch.from_numpy(inputs(compiled.source, 16, 0))
    with torch.no_grad():
        assert torch.equal(again(X), compiled.network(X))


def test_a_gather_that_is_not_sharp_is_judged_as_what_it_is():
    """Logits 16 apart: no longer one-hot. The rounding bound is one of a soft head, and the program is missed."""
    compiled = P.compile(P.flip(P.tokens(4)))
    before = compiled.bound("float64").rounding
    with torch.no_grad():
        dict(compiled.network.named_parameters())["stages.block_1.attention.W_Q"].div_(64)
    after = compiled.bound("float64").rounding
    X = inputs(compiled.source, 32, 0)
    assert before < after < np.abs(compiled(X) - X[:, ::-1]).max()


def test_logits_that_may_overflow_are_refused():
    x = P.tokens(4, low=-200.0, high=200.0)
    compiled = P.compile(P.attend(x, x, x))
    assert np.isfinite(compiled.bound("float32").total)
    with pytest.raises(CannotBuild, match="may overflow in float16"):
        compiled.bound("float16")


def test_the_bound_follows_the_weights():
    """With an offset 64 times as large the network still sorts, on a grid 64 times as coarse; the bound must say so."""
    compiled = P.compile(P.sort(P.tokens(16)))
    X = np.random.default_rng(0).random((256, 16, 1), dtype=np.float32).astype(np.float64)
    before = compiled.bound("float32").rounding
    weights = dict(compiled.network.named_parameters())
    with torch.no_grad():
        weights["E"][:, compiled.layout.row[compiled.schedule.at(0)[0]]] *= 64
        weights["stages.block_1.attention.W_V"][..., compiled.layout.one] *= 64
    after = compiled.bound("float32").rounding
    assert after >= 64 * before
    assert before < np.abs(compiled(X, "float32") - np.sort(X, axis=1)).max() <= after


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_the_bound_of_a_sort_is_attained(dtype):
    compiled = P.compile(P.sort(P.tokens(8)))
    X = torch.from_numpy(np.random.default_rng(0).random((256, 8, 1))).to(getattr(torch, dtype)).double().numpy()
    error, claim = np.abs(compiled(X, dtype) - np.sort(X, axis=1)).max(), compiled.bound(dtype).total
    assert claim / 1.001 < error <= claim


def test_quantum_is_the_lowest_bit():
    values = np.array([1.0, -6.0, 0.75, 2.0**-30 + 1, 0.0, 0.1])
    assert quantum(values).tolist() == [1.0, 2.0, 0.25, 2.0**-30, np.inf, 2.0**-55]


X4 = P.tokens(4)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: P.take(X4, [0, 1, 2, 4]), "'take' takes positions from 0 to 3; got 4"),
        (lambda: P.take(X4, [0, 1]), "'take' takes 4 whole numbers"),
        (lambda: P.take(X4, [0.5, 1, 2, 3]), "'take' takes 4 whole numbers"),
        (lambda: P.broadcast(X4, 4), "'broadcast' takes a position from 0 to 3"),
        (lambda: P.roll(X4, 0.5), "'roll' takes a whole number"),
        (lambda: P.tokens(0), "'tokens' takes a whole number n"),
        (lambda: P.tokens(2, low=1.0, high=1.0), "'tokens' takes ends low < high"),
        (lambda: X4 + P.tokens(5), r"'\+' takes values of one program; got values of n = 4 and n = 5"),
        (lambda: P.maximum(X4, P.tokens(4, d=2)), "'maximum' takes values with the same number of features"),
        (lambda: X4 + np.ones(3), r"'\+' takes values, numbers or arrays"),
        (lambda: X4 + np.nan, r"'\+' takes finite constants"),
        (lambda: X4 / (X4 - 0.5), "'divide' takes a denominator that is never 0; this one goes from -0.500001 to"),
        (lambda: 1 / X4, "'divide' takes a denominator that is never 0"),
        (lambda: P.multiply(X4, X4, epsilon=0), "'multiply' takes a positive epsilon"),
        (lambda: P.multiply(X4, X4, epsilon=1e-12), "'multiply' would need more than"),
        (lambda: X4 * np.ones(3), "'scale' takes values, numbers or arrays"),
        (lambda: P.rank(X4, margin=-1.0), "'rank' takes a positive margin"),
        (lambda: P.where([0, 1, 2, 0], X4, 1.0), "'where' takes a flag of zeros and ones"),
        (lambda: P.where(3 * X4, X4, 1.0), "'where' takes a flag between 0 and 1; this one goes from"),
        (lambda: P.where([0, 1, 1, 0], X4, np.inf), "'where' takes finite constants"),
        (lambda: P.interp(X4, [0.0, 0.0], [1.0, 2.0]), "'interp' takes ascending knots"),
        (lambda: P.histogram(X4, [0.5], margin=0.1), "'histogram' takes at least two"),
        (lambda: P.top_k(X4, 5), "'top_k' takes a k from 1 to 4"),
        (lambda: P.convolve(X4, []), "'convolve' takes a kernel"),
        (lambda: P.attention(X4, *(np.ones((1, 2)),) * 4), "'attention' takes W_Q"),
        (lambda: P.soft_largest(X4, sharpness=0), "'soft_largest' takes a positive sharpness"),
        (lambda: P.apply(np.sinc, X4), "'apply' has no bound on the second derivative of this function"),
        (lambda: P.apply(np.log, X4), "'apply' cannot bound log near 0"),
        (lambda: P.apply(np.sqrt, X4 - 0.5), "'apply' cannot bound sqrt near -0.5"),
        (lambda: X4 + 1e40, r"'\+' takes constants of at most 2\^100"),
        (lambda: P.maximum(X4, np.full(4, -1e40)), r"'maximum' takes constants of at most 2\^100"),
        (lambda: X4 * 1e40, r"'\*' takes at most 2\^100 as factor"),
        (lambda: P.tokens(2, high=1e40), r"'tokens' takes at most 2\^100 as high"),
        (lambda: X4 * np.inf, r"'\*' takes a finite number"),
        (lambda: X4 / 0, "'/' divides a value by a value, or by a number other than 0"),
        (lambda: P.minimum(0.5, 0.7), "'minimum' takes a value of a program"),
        (lambda: P.clip(X4, 1.0, 0.0), "'clip' takes ends low ≤ high"),
        (lambda: P.mix(X4, np.ones((2, 2))), r"'mix' takes a matrix \(out, 1\)"),
        (
            lambda: P.apply(lambda t: np.log(t), X4, epsilon=0.1, curvature=1.0),
            "'apply' takes a function of arrays with finite",
        ),
        (lambda: P.apply(np.sin, X4, epsilon=1e-12, curvature=1.0), "'apply' would need"),
        (lambda: P.compile(X4 + P.tokens(4)), "one 'tokens'; this one has 2"),
        (lambda: P.compile(P.sort(X4))(np.ones((1, 3, 1))), r"'tokens' wants inputs \(batch, 4, 1\)"),
        (lambda: P.compile(P.sort(X4))(np.full((1, 4, 1), 2.0)), "'tokens' wants inputs between 0.0 and 1.0"),
    ],
)
def test_bad_input_is_refused_by_operation(make, sentence):
    with np.errstate(all="ignore"), pytest.raises(InvalidInput, match=sentence):
        make()
