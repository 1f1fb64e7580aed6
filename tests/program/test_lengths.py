"""Programs of lengths up to n, causal networks, and limits on heads and widths: right, or refused by name."""

import dataclasses
import inspect
import sys

import numpy as np
import pytest
import torch

from tests.program.cases import PROGRAMS, inputs, own_weights, ramp
from tests.program.claims import in_dtype, violations
from thereexists import program as P
from thereexists.core.errors import InvalidInput

N = 7


def _x(d=1, **more):
    return P.tokens(N, d=d, shorter=True, **more)


SHORTER = {
    "linear": lambda: 0.3 * _x() - ramp(N),
    "scale": lambda: _x() * ramp(N),
    "mean": lambda: P.mean(2 * _x(low=-1.0) + ramp(N)),
    "sum": lambda: P.sum(_x(low=0.25)),
    "count": lambda: (lambda x: P.sum(P.constant(1.0, x) + 0 * x))(_x()),
    "sort": lambda: P.sort(_x(low=-0.5)),
    "max": lambda: P.max(_x() + ramp(N)),
    "min": lambda: P.min(_x() - ramp(N)),
    "rank": lambda: P.rank(_x(), margin=0.25),
    "argsort": lambda: P.argsort(_x(), margin=0.25),
    "top_k": lambda: P.top_k(_x(), 1),
    "cumsum": lambda: P.cumsum(_x()),
    "prefix_mean": lambda: P.prefix_mean(_x()),
    "cummax": lambda: P.cummax(_x()),
    "delay": lambda: P.delay(_x(), 2),
    "broadcast the first": lambda: P.broadcast(_x(), 0),
    "where": lambda: (lambda x: P.where(P.greater(x, P.mean(x), margin=0.125), x, -1.0))(_x()),
    "histogram": lambda: P.histogram(_x(), [0.0, 0.5, 1.0], margin=0.125),
    "attention": lambda: P.attention(_x(2), *own_weights(2, 2, 2)),
    "attention with large logits": lambda: P.attention(_x(2), *(40 * W for W in own_weights(2, 2, 2))),
    "soft_largest": lambda: P.soft_largest(_x(), sharpness=16.0),
    "very soft_largest": lambda: P.soft_largest(_x(low=-4.0), sharpness=1000.0),
    "product with the mean": lambda: (lambda x: P.multiply(x, P.mean(x)))(_x()),
}


def exceeded(compiled, claim, dtype, length, count=24):
    X = in_dtype(inputs(dataclasses.replace(compiled.source, n=length), count, length), dtype, compiled.source)
    X = np.clip(X, compiled.source.settings["low"], None)
    exact = P.interpret(compiled.program, X.astype(np.longdouble))
    assert exact.shape[1] == length
    return max(0.0, float(np.abs(compiled(X, dtype) - exact).max()) - claim.total)


QUICK = ("linear", "scale", "mean", "sum")  # of the others three dtypes take seconds each


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SHORTER]
)
def test_every_shorter_length_is_right(name):
    compiled = P.compile(SHORTER[name]())
    for dtype in ("float64", "bfloat16"):
        claim = compiled.bound(dtype)
        for length in range(1, N + 1):
            assert exceeded(compiled, claim, dtype, length) == 0.0, (dtype, length)


def test_the_shorter_programs_are_those_of_their_own_length():
    """The interpreter at length ℓ is the program written for ℓ tokens."""
    for length in (1, 3, N):
        X = inputs(P.tokens(length), 16, 0)
        for make in (P.mean, P.sum, P.sort, P.max, P.cumsum, P.cummax, lambda x: P.rank(x, margin=0.1)):
            distance = P.interpret(make(_x()), X) - P.interpret(make(P.tokens(length)), X)
            assert np.abs(distance).max() <= N * N * 2.0**-53  # sums in another order


def test_a_network_that_ignores_the_flags_is_caught():
    compiled = P.compile(SHORTER["mean"]())
    claim = compiled.bound("float64")
    with torch.no_grad():
        dict(compiled.network.named_parameters())["W_in"][:, -1] = 0.0
        dict(compiled.network.named_parameters())["E"][:, compiled.layout.row[0]] += 1.0  # everything counts
    assert exceeded(compiled, claim, "float64", N) == 0.0
    assert exceeded(compiled, claim, "float64", 3) > 0.0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: P.flip(_x()), "'flip' needs token 6 at position 0, which a shorter sequence does not have"),
        (lambda: P.roll(_x(), 1), "'roll' goes around the end, which is elsewhere in each shorter sequence"),
        (lambda: P.roll(_x(), 7), "'roll' goes around the end"),  # the identity of seven tokens, and of no other number
        (lambda: P.roll(_x(), -14), "'roll' goes around the end"),
        (lambda: P.broadcast(_x(), 3), "'broadcast' needs token 3 at position 0"),
        (lambda: P.median(_x()), "'median' needs token 3 at position 0"),
        (lambda: P.delay(_x(), -1), "'delay' needs token 1 at position 0"),
    ],
)
def test_what_needs_the_end_is_refused_by_name(make, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        P.compile(make())


def test_lengths_that_were_not_promised_are_refused():
    with pytest.raises(InvalidInput, match=r"'tokens' wants inputs \(batch, 1 … 7, 1\)"):
        P.compile(P.sort(_x()))(np.zeros((1, 8, 1)))
    with pytest.raises(InvalidInput, match=r"'tokens' wants inputs \(batch, 7, 1\)"):
        P.compile(P.sort(P.tokens(N)))(np.zeros((1, 6, 1)))


CAUSAL = [
    *("linear", "scale", "relu", "clip", "cumsum", "prefix_mean", "cummax", "cummin", "delay", "convolve", "interp"),
    *("apply", "spread out", "where", "greater"),
]
LOOKS_BACK = {
    **{name: PROGRAMS[name] for name in CAUSAL},
    "attention": lambda n: P.attention(P.tokens(n, d=2), *own_weights(2, 2, 2), causal=True),
    "attention after a prefix": lambda n: P.attention(P.cummax(P.tokens(n, d=2)), *own_weights(1, 2, 2), causal=True),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", LOOKS_BACK)
def test_causal_networks_are_right_and_never_look_ahead(name):
    compiled = P.compile(LOOKS_BACK[name](N), causal=True)
    for dtype in ("float64", "bfloat16"):
        assert violations(compiled, compiled.bound(dtype), dtype, count=48) == 0.0
    X = inputs(compiled.source, 24, 1)
    changed = X.copy()
    changed[:, 3:] = X[:, 3:][:, ::-1] * 0.5
    assert np.array_equal(compiled(X)[:, :3], compiled(changed)[:, :3])
    masks = [s.attention.pattern for s in compiled.network.stages.values() if s.attention is not None]
    assert all(mask is not None and not mask.triu(1).any() for mask in masks)


def test_a_causal_prefix_mean_is_one_head():
    compiled = P.compile(P.prefix_mean(P.tokens(64)), causal=True)
    assert compiled.blocks == 1
    assert compiled.network.shape()["h"] == 2  # and the one that takes the offset away


def test_causal_programs_are_right_at_shorter_lengths_too():
    x = _x()
    compiled = P.compile(P.cummax(x) + P.prefix_mean(x), causal=True)
    for length in range(1, N + 1):
        assert exceeded(compiled, compiled.bound("float32"), "float32", length) == 0.0


def test_a_padding_mask_does_not_replace_the_causal_one():
    compiled = P.compile(P.prefix_mean(P.tokens(N)), causal=True)
    X = torch.from_numpy(inputs(compiled.source, 8, 0))
    mask = torch.ones(8, N, dtype=torch.bool)
    mask[:, 5:] = False
    with torch.no_grad():
        assert torch.equal(compiled.network(X, mask)[:, :5], compiled.network(X)[:, :5])


def test_a_missing_mask_is_caught():
    compiled = P.compile(P.prefix_mean(P.tokens(N)), causal=True)
    claim = compiled.bound("float64")
    for stage in compiled.network.stages.values():
        stage.attention.pattern = None  # pyright: ignore[reportOptionalMemberAccess]
    assert violations(compiled, claim, "float64") > 0.0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda x: P.flip(x), "'flip' needs token 6 at position 0, which a causal mask hides"),
        (lambda x: P.mean(x), "'mean' needs token 6 at position 0, which a causal mask hides; take prefix_mean"),
        (lambda x: P.sum(x), "'sum' needs token 6 at position 0, which a causal mask hides; take cumsum"),
        (lambda x: P.sort(x), "'sort: partner' needs token 1 at position 0"),
        (lambda x: P.max(x), "'max' needs token 1 at position 0"),
        (lambda x: P.rank(x, margin=0.1), "'rank' needs token 6 at position 0"),
        (lambda x: P.soft_largest(x, sharpness=8.0), "'soft_largest' needs token 6 at position 0"),
        (lambda x: P.attention(x, *own_weights(1, 1, 1)), "'attention' needs token 6 at position 0"),
    ],
)
def test_what_a_causal_mask_hides_is_refused_by_name(make, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        P.compile(make(P.tokens(N)), causal=True)


def test_causal_attention_wants_a_causal_network():
    with pytest.raises(InvalidInput, match=r"'attention' with causal=True needs a causal network"):
        P.compile(P.attention(P.tokens(N), *own_weights(1, 1, 1), causal=True))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["apply", "rank", "convolve", "multiply", "mixed", "histogram"])
@pytest.mark.parametrize(("heads", "width"), [(2, None), (3, 6)])
def test_widths_are_limited_on_request(name, heads, width):
    free, compiled = P.compile(PROGRAMS[name](N)), P.compile(PROGRAMS[name](N), heads=heads, width=width)
    shape = compiled.network.shape()
    assert heads is None or shape["h"] <= heads
    assert width is None or shape["r"] <= width
    assert compiled.blocks >= free.blocks
    assert violations(compiled, compiled.bound("float32"), "float32", count=48) == 0.0


@pytest.mark.parametrize(("limit", "sentence"), [({"heads": 1}, "heads of at least 2"), ({"width": 3}, "width of at")])
def test_impossible_limits_are_refused(limit, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        P.compile(P.sort(P.tokens(4)), **limit)


def test_a_lookup_by_an_array_of_keys_needs_all_tokens():
    """A sequence of one token would bring the first key alone."""
    with pytest.raises(InvalidInput, match="cannot take an array of keys in a program for shorter sequences"):
        P.lookup(_x(), np.linspace(0, 1, N), np.arange(N), sharpness=300.0)
    assert P.lookup(P.tokens(N), np.linspace(0, 1, N), np.arange(N), sharpness=300.0).n == N


def test_many_narrow_layers_need_no_deep_recursion():
    """A spline of 600 knots in layers of width 4 is 300 of them, one after the other."""
    knots = np.linspace(0, 1, 600)
    spline = P.interp(P.tokens(1), knots, np.sin(40 * knots))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 200)
    try:
        compiled = P.compile(spline, width=4)
    finally:
        sys.setrecursionlimit(limit)
    assert compiled.blocks == 300
