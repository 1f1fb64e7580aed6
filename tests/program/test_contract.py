"""The contract of every program: interpreter = numpy; network = interpreter within its claim, in every dtype."""

import dataclasses

import numpy as np
import pytest
import torch

from tests.program.cases import APPROXIMATE, PROGRAMS, inputs, own_weights
from tests.program.claims import SANE, violations
from thereexists import program as P
from thereexists.constructions.program import compiler
from thereexists.constructions.program.graph import nodes
from thereexists.constructions.program.primitives import PRIMITIVES
from thereexists.core.dtypes import DTYPES


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_keeps_its_bound_in_every_dtype(name):
    compiled = P.compile(PROGRAMS[name](6))
    for dtype in DTYPES:
        claim = compiled.bound(dtype)
        assert np.isfinite(claim.total)
        assert violations(compiled, claim, dtype) == 0.0, (dtype, claim)
        if dtype == "float64":  # weak bounds cannot hide a wrong network: what float64 leaves is far below any mistake
            assert claim.rounding < SANE
            assert (claim.approximation > 0) == (name in APPROXIMATE)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_is_right_for_a_single_token(name):
    compiled = P.compile(PROGRAMS[name](1))
    assert violations(compiled, compiled.bound("float32"), "float32", count=24) == 0.0


@pytest.mark.parametrize(
    "name", ["sort", *(pytest.param(name, marks=pytest.mark.slow) for name in ("smooth", "apply"))]
)
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


@pytest.mark.sampled(3)
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
        (P.sum(x), np.repeat(6 * X.mean(axis=1, keepdims=True), 6, axis=1)),
        (P.cummax(x), np.maximum.accumulate(X, axis=1)),
        (P.cummin(x), np.minimum.accumulate(X, axis=1)),
        (P.prefix_mean(x), np.stack([X[:, : i + 1].sum(axis=1) / (i + 1) for i in range(6)], axis=1)),
        (P.delay(x, 2, fill=0.5), np.concatenate([np.full((64, 2, 2), 0.5), X[:, :4]], axis=1)),
        (P.delay(x, -1), np.concatenate([X[:, 1:], np.zeros((64, 1, 2))], axis=1)),
        (P.scale(x, np.arange(6)), X * np.arange(6)[:, None]),
        (P.where(np.arange(6) % 2, x, 2.0), np.where((np.arange(6) % 2)[:, None], X, 2.0)),
        (P.where(P.greater_equal(x, 0.5, margin=2.0**-30), 1.0, 3 * x), np.where(X >= 0.5, 1.0, 3 * X)),
        (P.median(x), np.repeat(np.median(X, axis=1, keepdims=True), 6, axis=1)),
        (P.top_k(x, 3), np.sort(X, axis=1)[:, ::-1][:, [0, 1, 2, 2, 2, 2]]),
        (P.multiply(x, P.flip(x)), X * X[:, ::-1]),
        (P.flip(x), X[:, ::-1]),
        (P.roll(x, 2), np.roll(X, 2, axis=1)),
        (P.broadcast(x, 4), np.repeat(X[:, 4:5], 6, axis=1)),
        (P.max(x), np.repeat(X.max(axis=1, keepdims=True), 6, axis=1)),
        (P.min(x), np.repeat(X.min(axis=1, keepdims=True), 6, axis=1)),
        (P.clip(x, 0.2, 0.7), np.clip(X, 0.2, 0.7)),
        (P.abs(x - 0.4), np.abs(X - 0.4)),
        (np.ones(6) * 2 + x, X + 2.0),
    ):
        assert np.array_equal(P.interpret(program, X), wanted), program
    assert np.abs(P.interpret(P.cumsum(x), X) - np.cumsum(X, axis=1)).max() <= 6 * 5 * 2.0**-53  # 5 sums of at most 6


def test_ranks_and_histograms_are_those_of_numpy_where_numbers_are_apart():
    x = P.tokens(9)
    X = np.random.default_rng(0).integers(0, 8, (200, 9, 1)) / 8  # equal, or 1/8 apart
    order = np.argsort(X, axis=1, kind="stable")
    assert np.array_equal(P.interpret(P.argsort(x, margin=0.125), X), order)
    assert np.array_equal(P.interpret(P.rank(x, margin=0.125), X), np.argsort(order, axis=1))
    edges = [0.0, 0.25, 0.5, 1.0]
    counts = P.interpret(P.histogram(x, edges, margin=0.125), X)
    wanted = np.stack([np.histogram(row, [0.0, 0.25, 0.5, 1.0])[0] for row in X])
    assert np.array_equal(counts, np.repeat(wanted[:, None], 9, axis=1))  # np.histogram's last bin is closed; no 1 here
    assert np.array_equal(P.interpret(P.equal(x, 0.5, margin=0.125), X), X == 0.5)
    assert np.array_equal(P.interpret(P.greater(x, 0.5, margin=0.125), X), X > 0.5)
    assert np.array_equal(P.interpret(P.greater_equal(x, 0.5, margin=0.125), X), X >= 0.5)


def test_attention_is_that_of_torch():
    W_Q, W_K, W_V, W_O = own_weights(2, 3, 3)
    x = P.tokens(6, d=3)
    X = inputs(x, 32, 0)
    T = torch.from_numpy(X)
    Q, K, V = (torch.einsum("bnd,hmd->bhnm", T, torch.from_numpy(W)) for W in (W_Q, W_K, W_V))
    for causal in (False, True):
        heads = torch.nn.functional.scaled_dot_product_attention(Q, K, V, is_causal=causal)
        wanted = torch.einsum("bhnm,hdm->bnd", heads, torch.from_numpy(W_O)).numpy()
        found = P.interpret(P.attention(x, W_Q, W_K, W_V, W_O, temperature=3.0**0.5, causal=causal), X)
        assert np.abs(found - wanted).max() <= 2.0**-45  # two float64 implementations


def test_a_lookup_finds_the_nearest_key_where_there_is_a_gap():
    n, keys = 5, np.linspace(0.0, 1.0, 5)
    x = P.tokens(n)
    X = np.random.default_rng(0).random((500, n, 1))
    distances = np.sort((X - keys) ** 2, axis=2)
    gap = distances[:, :, 1] - distances[:, :, 0]
    nearest = np.abs(X - keys).argmin(axis=2)
    values = np.array([3.0, -1.0, 0.5, 2.0, 0.0])
    found = P.interpret(P.lookup(x, keys, values, sharpness=200.0), X)[:, :, 0]
    wrong = np.abs(found - values[nearest])
    promised = [[P.lookup_error(n, 200.0, g, 4.0) + 2.0**-48 for g in row] for row in gap]
    assert (wrong <= np.array(promised)).all()
    assert wrong[gap > 0.05].max() < 1e-3 < wrong.max()


def operations_of(name):
    return {node.operation for node in nodes(PROGRAMS[name](6))}


def test_the_table_of_programs_has_every_operation():
    assert set().union(*(operations_of(name) for name in PROGRAMS)) == set(PRIMITIVES)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("operation", PRIMITIVES)
def test_a_wrong_lowering_is_caught(operation, monkeypatch):
    """One part in a million too much, at one operation of one program, breaks the contract."""
    name = next(name for name in PROGRAMS if operation in operations_of(name))
    right = PRIMITIVES[operation].lower
    program = PROGRAMS[name](6)
    honest = P.compile(program)
    monkeypatch.setitem(compiler._RULES, operation, lambda *given: [form * (1 + 2.0**-20) for form in right(*given)])
    wrong = P.compile(program)
    claim = dataclasses.replace(honest.bound("float64"), approximation=0.0)
    drift = np.abs(wrong(X := inputs(honest.source, 96, 0)) - honest(X)).max()
    assert drift > 2 * claim.rounding
    if operation not in ("apply", "multiply", "soft_largest"):
        assert violations(wrong, claim, "float64") > 0.0


@pytest.mark.parametrize("operation", ["apply", "multiply", "soft_largest"])
def test_an_operation_that_denies_its_own_error_is_caught(operation):
    name = {"apply": "apply, derived", "multiply": "multiply", "soft_largest": "soft_largest"}[operation]
    compiled = P.compile(PROGRAMS[name](6))
    claim = compiled.bound("float64")
    assert violations(compiled, claim, "float64") == 0.0
    assert violations(compiled, dataclasses.replace(claim, approximation=claim.approximation / 4), "float64") > 0.0
