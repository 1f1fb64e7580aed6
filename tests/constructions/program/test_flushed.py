"""Numbers below the smallest normal one may be taken for 0: no bound may forget that, not even one of nothing."""

import contextlib

import numpy as np
import pytest
import torch

from thereexists import program as P
from thereexists.core.dtypes import DTYPES

CASES = {
    "tokens": P.tokens,
    "tokens, larger": lambda n: 64 * P.tokens(n),
    "mixed": lambda n: P.mix(P.tokens(n, d=2), [[1.0, -8.0], [4.0, 2.0]]),
    "flip": lambda n: P.flip(P.tokens(n)),
    "relu": lambda n: P.relu(P.tokens(n)),
    "sort": lambda n: P.sort(P.tokens(n)),
    "mean": lambda n: P.mean(P.tokens(n)),
}


@contextlib.contextmanager
def flushing():
    """Operands and results of this thread's float64 and float32 operations below the smallest normal number are 0."""
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush")
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_a_flushed_number_is_within_the_bound(name, dtype):
    compiled = P.compile(CASES[name](3))
    tiny = torch.finfo(getattr(torch, dtype)).tiny
    X = np.full((4, 3, compiled.source.d), tiny / 2)
    X[1] *= 1.5
    X[2, 0] = X[3, :, 0] = 0.0
    given, network = torch.from_numpy(X).to(getattr(torch, dtype)), compiled.to(dtype)
    wanted = P.interpret(compiled.program, X.astype(np.longdouble))
    with torch.no_grad():
        kept = network(given)
        with flushing():
            flushed = network(given)
    for found in (kept, flushed):
        off = np.abs(found.to(torch.float64).numpy() - wanted).max()
        assert off <= compiled.bound(dtype).total


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_a_bound_of_nothing_allows_for_flushing(dtype):
    assert P.compile(P.tokens(3)).bound(dtype).total >= torch.finfo(getattr(torch, dtype)).tiny


def test_a_bound_is_no_worse_for_it_where_nothing_can_be_flushed():
    """Snapped tokens are multiples of normal numbers: a sort is still off by half a unit in the last place."""
    assert P.compile(P.sort(P.tokens(16))).bound("float32").total <= 2.0**-24 * (1 + 1e-6)
