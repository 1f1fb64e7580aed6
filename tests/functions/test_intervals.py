"""Interval extensions contain their functions: on random boxes, and at points against Arb."""

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from thereexists.functions.targets import BUILTINS, RANK_WIDTH, builtin

SHAPES = [(1, 1), (2, 1), (3, 2)]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", BUILTINS)
@pytest.mark.parametrize("domain", [(0.0, 1.0), (-2.0, 3.0)])
@given(data=st.data())
def test_boxes_contain_the_function(name, domain, data):
    n, d = data.draw(st.sampled_from(SHAPES))
    target = builtin(name, n=n, d=d, domain=domain)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    centre = rng.uniform(*domain, (40, n, d))
    radius = rng.choice([0.0, 1e-9, 0.01, 0.3, 2.0], (40, 1, 1))
    low, high = np.maximum(centre - radius, domain[0]), np.minimum(centre + radius, domain[1])
    f_low, f_high = target.interval(low, high)
    for share in (0.0, 1.0, rng.random(low.shape), rng.integers(0, 2, low.shape)):
        Y = target(low + share * (high - low))
        rounding = 1e-14 * (1 + np.abs(Y))  # of the float evaluation itself
        assert (f_low - rounding <= Y).all()
        assert (f_high + rounding >= Y).all()


@pytest.mark.parametrize("name", BUILTINS)
def test_points_are_enclosed_tightly(name):
    target = builtin(name, n=3)
    X = np.random.default_rng(0).random((100, 3, 1))
    low, high = target.interval(X, X)
    assert (high - low).max() <= 1e-11


def by_arb(name, x):
    """The function itself at 200 bits, for one sequence of exact floats."""
    x = [arb(float(v)) for v in x]
    n = len(x)
    mean = sum(x, arb(0)) / n
    match name:
        case "distance-to-mean":
            return [v - mean for v in x]
        case "softmax-attention":
            weights = [[(a * b).exp() for b in x] for a in x]
            return [sum((w * v for w, v in zip(row, x, strict=True)), arb(0)) / sum(row, arb(0)) for row in weights]
        case "deep-sets":
            return [v * mean for v in x]
        case "token-sine":
            return [(arb.pi() * v).sin() for v in x]
        case "cumulative-mean":
            return [sum(x[: i + 1], arb(0)) / (i + 1) for i in range(n)]
        case "convolution":
            padded = [arb(0), *x, arb(0)]
            return [-padded[i] + 2 * padded[i + 1] - padded[i + 2] for i in range(n)]
        case "soft-rank":
            return [
                sum(
                    (min(max((a - b) / RANK_WIDTH + arb(0.5), arb(0)), arb(1)) for j, b in enumerate(x) if j != i),
                    arb(0),
                )
                / (n - 1)
                for i, a in enumerate(x)
            ]


@pytest.mark.parametrize(
    "name",
    ["distance-to-mean", "softmax-attention", "deep-sets", "token-sine", "cumulative-mean", "convolution", "soft-rank"],
)
def test_points_contain_the_value_that_arb_computes(name):
    before, ctx.prec = ctx.prec, 200
    try:
        target = builtin(name, n=3)
        X = np.random.default_rng(1).random((200, 3, 1))
        low, high = target.interval(X, X)
        for row, bottom, top in zip(X[:, :, 0], low[:, :, 0], high[:, :, 0], strict=True):
            for value, l, h in zip(by_arb(name, row), bottom, top, strict=True):
                assert bool(arb(float(l)) <= value)
                assert bool(value <= arb(float(h)))
    finally:
        ctx.prec = before


def test_a_wrong_extension_is_caught():
    """The containment check can fail: an extension that forgets the other tokens does not pass it."""
    target = builtin("distance-to-mean", n=3)
    X = np.random.default_rng(0).random((10, 3, 1))
    low, high = np.clip(X - 0.1, 0, 1), np.clip(X + 0.1, 0, 1)
    careless = (target(low), target(high))  # not monotone: the corners do not bound it
    inside = target(np.stack([low[:, 0], high[:, 1], low[:, 2]], axis=1))
    assert ((inside < careless[0]) | (inside > careless[1])).any()
