"""One contract for every built-in target: shape, equivariance, Lipschitz constant; then the caller's own functions."""

import dataclasses
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import thereexists as te
from thereexists.core.errors import InvalidTarget
from thereexists.functions.targets import _TABLE, BUILTINS, builtin, resolve

SHAPES = [(1, 1), (2, 1), (3, 1), (4, 2), (5, 3)]


def test_names_are_unique_and_there_are_enough_of_both_kinds():
    assert len(BUILTINS) == len(_TABLE)
    assert sum(entry.equivariant for entry in _TABLE) >= 6
    assert sum(not entry.equivariant for entry in _TABLE) >= 6


@pytest.mark.parametrize("name", BUILTINS)
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_shape_and_symmetry_are_as_claimed(name, n, d):
    target = builtin(name, n=n, d=d)
    X = np.random.default_rng(0).random((7, n, d))
    assert target(X).shape == X.shape
    claim = dataclasses.replace(target, equivariant=True)
    if target.equivariant:
        claim.check_equivariance()
    elif n > 2:  # two tokens reversed are two tokens permuted
        with pytest.raises(te.ThereExistsError, match="not permutation equivariant"):
            claim.check_equivariance()


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", BUILTINS)
@pytest.mark.parametrize("domain", [(0.0, 1.0), (-2.0, 3.0)])
@given(data=st.data())
def test_lipschitz_constant_holds(name, domain, data):
    n, d = data.draw(st.sampled_from(SHAPES))
    target = builtin(name, n=n, d=d, domain=domain)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    X = rng.uniform(*domain, (200, n, d))
    Y = np.clip(X + rng.choice([1e-3, 0.1, 1.0]) * rng.choice([-1.0, 1.0], X.shape), *domain)
    change = np.abs(target(X) - target(Y)).max(axis=(1, 2))
    moved = np.abs(X - Y).max(axis=(1, 2))
    rounding = 1e3 * np.finfo(float).eps * 10  # sums of at most n·d terms of at most 9
    assert (change <= target.lipschitz * moved + rounding).all()


@pytest.mark.parametrize("name", sorted(set(BUILTINS) - {"softmax-attention"}))
def test_lipschitz_constant_is_not_wasteful(name):
    """The true constant: some pair of inputs nearly attains it (softmax-attention states a proved upper bound)."""
    target = builtin(name, n=3)
    rng = np.random.default_rng(0)
    X = rng.random((20_000, 3, 1)) * rng.choice([1.0, 0.1, 0.0], (20_000, 1, 1))
    X = np.where(rng.random((20_000, 1, 1)) < 0.2, 1.0 - X, X)
    Y = np.clip(X + 1e-4 * rng.choice([-1.0, 1.0], X.shape), 0, 1)
    moved = np.abs(X - Y).max(axis=(1, 2))
    ratio = (np.abs(target(X) - target(Y)).max(axis=(1, 2)) / moved.clip(1e-9)).max()
    assert ratio >= 0.9 * target.lipschitz


def test_a_refuted_lipschitz_constant_is_refused_with_the_pair():
    with pytest.raises(te.ThereExistsError, match=r"not what it claims to be: f changes by .* between"):
        te.build(te.Target(lambda X: np.sin(50 * X), n=2, lipschitz=1.0), delta=1 / 4)


def test_what_a_function_prints_stays_off_stdout(capsys):
    te.build(te.Target(lambda X: print("hello") or X, n=2), delta=1 / 2)
    assert "hello" not in capsys.readouterr().out


def test_a_function_from_a_file_builds_and_runs(tmp_path):
    source = tmp_path / "my.py"
    source.write_text("import math\ndef f(X):\n    'A swirl.'\n    return 0.5 * X[:, ::-1] + 0.1 * X**2\n")
    target = dataclasses.replace(resolve(f"{source}:f", n=2, d=2), lipschitz=0.7)
    witness = te.build(target, epsilon=0.4)
    assert witness.estimate_distance().high <= 0.4
    assert target.description == "A swirl."


@pytest.mark.parametrize(
    ("source", "reference", "message"),
    [
        ("f = 3", "my.py:f", "has no function 'f'"),
        ("def f(X): return X", "my.py:g", "has no function 'g'"),
        ("1/0", "my.py:f", "cannot be imported: ZeroDivisionError"),
        ("", "other.py:f", "There is no file"),
        ("", "my.py", "named as file.py:function"),
        ("", "nonsense", "no built-in target 'nonsense'"),
    ],
)
def test_bad_references_are_named(tmp_path, monkeypatch, source, reference, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text(source)
    with pytest.raises(te.ThereExistsError, match=message):
        resolve(reference, n=2)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda X: X[:, :1], r"must return an array of shape \(.*\); .*it returned|it returned"),
        (lambda X: X / 0.0 * 0.0 if isinstance(X, str) else np.full(X.shape, np.nan), "returns NaN, infinity"),
        (lambda X: (_ for _ in ()).throw(KeyError("lost")), "failed on an input of shape .*KeyError"),
        (lambda X: "text", "failed on an input"),
        (lambda X: 1j * X, "complex numbers"),
        (lambda X: 1e300 * (1 + X), "beyond 1e\\+100"),
        (lambda X: sys.exit(3), "failed on an input of shape .*SystemExit"),
    ],
)
def test_bad_functions_are_named(f, message):
    with pytest.raises(te.ThereExistsError, match=message):
        te.build(te.Target(f, n=2), delta=1 / 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "'n' of a target must be an integer of at least 1"),
        ({"n": 2, "d": 0}, "'d' of a target must be"),
        ({"n": 2, "lipschitz": -1.0}, "'lipschitz' must be"),
        ({"n": 2, "lipschitz": float("nan")}, "'lipschitz' must be"),
        ({"n": 2, "domain": (1.0, 1.0)}, "finite low < high"),
        ({"n": 2, "domain": (0.0, float("inf"))}, "finite low < high"),
        ({"n": 2, "domain": ([0.0, 0.0, 0.0], 1.0)}, "each a number or 1 numbers"),
    ],
)
def test_bad_targets_are_named(arguments, message):
    with pytest.raises(te.ThereExistsError, match=message):
        te.Target(lambda X: X, **arguments)


@pytest.mark.parametrize("scale", [1e-300, 1e-40, 1e-15, 1.0, 1e50])
@pytest.mark.parametrize("lipschitz", [None, 1e60])
def test_symmetry_is_relative_to_the_size_of_the_function(scale, lipschitz):
    """A large Lipschitz constant, true as it is, is no excuse either."""
    claim = te.Target(lambda X: scale * X[:, ::-1], n=3, equivariant=True, lipschitz=lipschitz)
    with pytest.raises(te.ThereExistsError, match="not permutation equivariant"):
        claim.check_equivariance()


def test_a_function_made_of_its_own_rounding_has_no_symmetry():
    claim = te.Target(lambda X: (1 + 1e-15 * X[:, ::-1]) - 1, n=3, equivariant=True)
    with pytest.raises(te.ThereExistsError, match="not permutation equivariant"):
        claim.check_equivariance()


HONEST = {
    "mean": lambda X: X.mean(axis=1, keepdims=True) + 0 * X,
    "centred": lambda X: X - X.mean(axis=1, keepdims=True),
    "softmax": lambda X: np.exp(X - X.max()) / np.exp(X - X.max()).sum(axis=1, keepdims=True),
    "cancels": lambda X: 1 - np.cos(1e-3 * (1 + X.sum(axis=1, keepdims=True)) + 0 * X),
    "steep": lambda X: np.sin(1e6 * X.mean(axis=1, keepdims=True)) + 0 * X,
    "zero": lambda X: 0 * X,
    "exact": lambda X: X,
}


@pytest.mark.sampled(21)
@pytest.mark.parametrize("scale", [1e-200, 1e-15, 1.0, 1e20])
@pytest.mark.parametrize("domain", [(0.0, 1.0), (1000.0, 1001.0), (0.0, 1e-9)])
@pytest.mark.parametrize("name", HONEST)
def test_rounding_is_no_lack_of_symmetry(name, domain, scale):
    f = HONEST[name]
    target = te.Target(lambda X: scale * f(X), n=7, d=2, domain=domain, equivariant=True)
    for seed in range(8):
        target.check_equivariance(seed=seed)


def test_a_function_that_computes_in_float32_is_named_as_such():
    W = np.random.default_rng(0).normal(size=(2, 16)).astype(np.float32)
    for f in (
        lambda X: X.astype(np.float32),
        lambda X: 1e9 * X.astype(np.float32),
        lambda X: np.exp(X.astype(np.float32)),
        lambda X: np.tanh(X.reshape(-1, 2).astype(np.float32) @ W).sum(axis=1)[:, None, None] + 0 * X,  # cancels
        lambda X: torch.from_numpy(X).to(torch.bfloat16).float().numpy() / 3,
    ):
        with pytest.raises(InvalidTarget, match="computes in float32"):
            te.Target(f, n=2, d=1).check_one_by_one()
    for f in (lambda X: (X > 0.5) * 1.0, lambda X: np.rint(X * 255) / 256, np.zeros_like, lambda X: X):
        te.Target(f, n=2, d=1).check_one_by_one()


STEPS = {
    "whole numbers": (np.rint, (0.0, 1e6)),
    "whole numbers of 25 bits": (np.rint, (0.0, 2.0**25)),
    "even numbers of 25 bits": (lambda X: 2 * np.rint(X / 2), (-(2.0**25), 2.0**25)),
    "millionths of the range": (lambda X: np.floor(1e6 * X), (0.0, 1.0)),
    "20 bits": (lambda X: np.floor(X * 2**20) / 2**20, (0.0, 1.0)),
    "24 bits in one binade": (lambda X: np.rint(X * 2**23) / 2**23, (1.0, 2.0)),
    "few large ones": (lambda X: np.where(X < 2.0**23, np.rint(X), 2.0**30), (0.0, 2.0**24)),
    "a constant": (lambda X: 100_003 + 0 * X, (0.0, 1.0)),
    "squares": (lambda X: np.rint(X) ** 2, (0.0, 4096.0)),
    "multiples of 64": (lambda X: 64 * np.rint(X / 64), (0.0, 2.0**30)),
}


@pytest.mark.parametrize("what", STEPS)
def test_multiples_of_one_number_are_no_float32(what):
    """They may all be float32 numbers, of more than 16 bits; that is no sign of anything."""
    f, domain = STEPS[what]
    for seed in range(4):
        te.Target(f, n=1, domain=domain).check_one_by_one(seed)


def test_a_quantiser_is_certified():
    target = te.Target(lambda X: np.floor(X * 2**20) / 2**20, n=1, modulus=lambda r: r + 2.0**-20)
    assert te.certify(te.build(target, delta=1 / 4), opinions=1).bound < 1


@pytest.mark.parametrize("kind", [np.array, list])
def test_a_target_keeps_its_own_domain(kind):
    low, high = kind([0.0, -1.0]), kind([1.0, 1.0])
    ends = [low, high]
    target = te.Target(lambda X: X, n=1, d=2, domain=ends)
    before = target.describe()
    high[0], ends[0] = 2.0, kind([-5.0, -5.0])
    assert target.describe() == before
    assert target == dataclasses.replace(target)
