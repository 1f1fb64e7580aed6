"""Heads whose products underflow, flushed to zero or not: the rounding bound holds, and no verdict is too good."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from thereexists.heads.matrix import from_csr
from thereexists.heads.verify import DTYPES, Arithmetic, verify

L = 4


@pytest.fixture(params=[False, True], ids=["kept", "flushed"])
def flush(request):
    if request.param and not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush")
    try:
        yield request.param
    finally:
        torch.set_flush_denormal(False)


def zeros(*shape):
    return torch.zeros(*shape, dtype=torch.float64)


def subnormal_queries():
    """float64: the queries are 2^-1023, the keys 2^1022; a processor that flushes sees logits of zero."""
    M = 32
    X = torch.cat([torch.eye(L, dtype=torch.float64) * 2.0**-500, torch.eye(L, dtype=torch.float64)], 1)
    W_Q, W_K = zeros(2 * L, L * M), zeros(2 * L, L * M)
    for j in range(L):
        W_Q[j, j * M : (j + 1) * M] = 2.0**-523
        W_K[L + j, j * M : (j + 1) * M] = 2.0**1022
    target = from_csr(np.arange(L + 1), np.arange(L), np.ones(L))
    return (X, W_Q, W_K), target, {"eps1": 1e-3, "eps2": 1e-2, "arithmetic": Arithmetic("float64")}


def subnormal_inputs(array):
    """float64: an entry of X, or of W_Q, is subnormal itself, and the rest makes the query a normal number again."""
    X = torch.cat([torch.eye(L, dtype=torch.float64) * 2.0**-1030, torch.eye(L, dtype=torch.float64)], 1)
    W_Q, W_K = zeros(2 * L, L), zeros(2 * L, L)
    one = torch.eye(L, dtype=torch.float64)
    W_Q[:L], W_K[L:] = one * 2.0**1000, one * 2.0**34
    if array == "W_Q":
        X[:, :L], W_Q[:L] = W_Q[:L].clone(), X[:, :L].clone()
    target = from_csr(np.arange(L + 1), np.arange(L), np.ones(L))
    return (X, W_Q, W_K), target, {"eps1": 1e-3, "eps2": 1e-2, "arithmetic": Arithmetic("float64")}


def copied_subnormals():
    """The same with weights that only copy: no rounding at all, and still flushed."""
    one, nil = torch.eye(L, dtype=torch.float64), zeros(L, L)
    X = torch.cat([one * 2.0**-1023, one * 2.0**1023 * 1.5], 1)
    X[:, :L] *= 16
    X[:, :L] /= 16  # exact
    many = torch.cat([one] * 16, 1)
    none = torch.cat([nil] * 16, 1)
    target = from_csr(np.arange(L + 1), np.arange(L), np.ones(L))
    heads = (X, torch.cat([many, none]), torch.cat([none, many]))
    return heads, target, {"eps1": 1e-3, "eps2": 1e-2, "arithmetic": Arithmetic("float64")}


def vanishing_products():
    """float16: 60 products of 0.99 · 2^-25 round to zero, and the keys are 60000: a ratio error of 0.237 seen as 0."""
    M = 60
    X, W_Q, W_K = zeros(3, 4), zeros(4, M + 1), zeros(4, M + 1)
    X[:, 0], X[0, 1], X[1, 1], X[2, 2], X[:, 3] = 2.0**-12, 1, -1, -1, 0.5
    W_Q[0, :M], W_K[1, :M], W_Q[3, M], W_K[2, M] = 2.0**-13 * 0.99, 60000.0, 1.0, 1.0
    arrays = tuple(t.half().double() for t in (X, W_Q, W_K))
    target = from_csr(np.array([0, 2, 4, 6]), np.array([0, 1] * 3), np.ones(6))
    return arrays, target, {"eps1": 0.9, "eps2": 0.1, "arithmetic": Arithmetic("float16")}


HEADS = [subnormal_queries, lambda: subnormal_inputs("X"), lambda: subnormal_inputs("W_Q"), copied_subnormals,
         vanishing_products]  # fmt: skip


@pytest.mark.parametrize("head", HEADS, ids=["queries", "X", "W_Q", "copied", "float16"])
def test_a_head_that_underflow_spoils_does_not_hold(head, flush):
    torch.set_flush_denormal(False)
    arrays, target, wanted = head()
    torch.set_flush_denormal(flush)
    assert verify(*arrays, target, **wanted).verdict.holds is not True


def exact_logits(X, W_Q, W_K):
    X, W_Q, W_K = ([[Fraction(x) for x in row] for row in t.double().tolist()] for t in (X, W_Q, W_K))
    q, k = (
        [[sum(a * b for a, b in zip(x, w, strict=True)) for w in zip(*W, strict=True)] for x in X] for W in (W_Q, W_K)
    )
    return [[sum(a * b for a, b in zip(x, y, strict=True)) for y in k] for x in q]


def random_head(rng, dtype, copies):
    """Numbers whose exponents spread over the whole range of the dtype, zeros and copying weights among them."""
    d, m = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    info = torch.finfo(DTYPES[dtype])
    low, high = np.log2(info.smallest_normal) - 8, np.log2(info.max) - 1

    def draw(*shape):
        size = np.exp2(rng.uniform(low, high, 1) * rng.uniform(0.2, 1.0) + rng.uniform(-6, 6, shape))
        value = rng.choice([-1, 0, 1, 1], shape) * np.minimum(size, info.max / 4)
        return torch.from_numpy(value).to(DTYPES[dtype]).double()

    weights = [draw(d, m), draw(d, m)]
    if copies:
        weights = [torch.eye(d, dtype=torch.float64)[:, rng.integers(0, d, m)] for _ in range(2)]
    return draw(L, d), *weights


@pytest.mark.sampled(4)
@pytest.mark.parametrize("copies", [False, True], ids=["mixing", "copying"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_bound_covers_every_evaluation(dtype, copies, flush):
    """Against exact rationals: each computed logit is within the bound of the real one, in two orders of summation."""
    rng = np.random.default_rng(11)
    target = from_csr(np.arange(L + 1), np.arange(L), np.ones(L))
    decided, kind = 0, DTYPES[dtype]
    for _ in range(15):
        torch.set_flush_denormal(False)
        head = random_head(rng, dtype, copies)
        exact = exact_logits(*head)
        X, W_Q, W_K = (t.to(kind) for t in head)
        torch.set_flush_denormal(flush)
        computed = (X @ W_Q) @ (X @ W_K).T
        turned = (X.flip(1) @ W_Q.flip(0)).flip(1) @ (X.flip(1) @ W_K.flip(0)).flip(1).T
        bounds = [
            verify(*head, target, eps1=0.5, eps2=0.5, arithmetic=Arithmetic(dtype), rows=np.array([i])).rounding
            for i in range(L)
        ]
        torch.set_flush_denormal(False)
        for z in (computed.double().tolist(), turned.double().tolist()):
            for i, row in enumerate(z):
                if not np.isfinite(bounds[i]):
                    continue
                decided += 1
                assert np.isfinite(row).all()
                assert all(abs(Fraction(a) - b) <= Fraction(bounds[i]) for a, b in zip(row, exact[i], strict=True))
    assert decided > 8
