"""The bound of the whole, real and float part, ramps included: no run leaves it, and no forged number stands."""

import dataclasses
import shutil

import numpy as np
import pytest
import torch

import thereexists as te
from tests.certificates.orders import run_in_another_order
from tests.hostile import certified, forge_certificate, forge_weights
from tests.supported import bumped
from thereexists.certificates.float_edges import edge_points
from thereexists.certificates.float_reach import _largest_number, float_output_bound
from thereexists.certificates.float_run import FloatRun
from thereexists.functions.targets import builtin

CASES = {
    "Theorem 2": lambda: te.build(builtin("sort", n=2), delta=1 / 4),
    "Theorem 1": lambda: te.build(builtin("deep-sets", n=3), delta=1 / 4),
    "two features": lambda: te.build(builtin("convolution", n=2, d=2), delta=1 / 2),
    "a pattern": lambda: te.build(builtin("sort", n=3), delta=1 / 2, pattern=te.patterns.star(n=3)),
    "a box around 0": lambda: te.build(builtin("soft-rank", n=2, domain=(-1.0, 2.3)), delta=1 / 3),
    "guarded": lambda: te.build(bumped("distance-to-mean", n=2, domain=(-0.3, 0.7)), delta=1 / 4),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES)
def test_on_ramps_too_no_number_of_the_run_is_larger_than_said(case):
    witness = CASES[case]()
    target, network = witness.target, witness.network
    X = edge_points(target, witness.grid, np.random.default_rng(0), 300)
    r, output = _largest_number(network, target), float_output_bound(network, target)
    Y = run_in_another_order(network, X, np.random.default_rng(1), lambda Z: np.testing.assert_array_less(np.abs(Z), r))
    assert (np.abs(Y) <= output).all()
    assert (np.abs(witness(X)) <= output).all()
    certificate = te.certify(witness, opinions=1)
    bound = certificate.float_run["dtypes"]["float64"]["bound"]
    assert certificate.bound <= bound <= certificate.bound * (1 + 1e-3)


@pytest.mark.parametrize(("name", "p"), [("sort", 1.0), ("soft-rank", 2.0)])
def test_a_compact_run_keeps_its_bounds_in_float32_too(name, p):
    witness = te.build(builtin(name, n=2), delta=1 / 4, construction="compact")
    certificate, target = te.certify(witness, p=p, opinions=1), witness.target
    assert certificate.float_run["status"] == "proved"
    assert certificate.float_run["dtypes"].keys() == {"float64", "float32"}
    rng = np.random.default_rng(0)
    X = np.concatenate([edge_points(target, witness.grid, rng, 2000), target.points(rng, 2000)])
    core = ~witness.grid.on_ramp(X) & (np.arange(len(X)) >= 2000)  # cores end a little before the ramps
    real = witness(X)
    for dtype, found in certificate.float_run["dtypes"].items():
        Y = witness.to(dtype)(X.astype(dtype)).astype(np.float64)
        assert (np.abs(Y) <= found["output"]).all()
        assert (np.abs(Y - real)[core] <= 2 * found["cores"]).all()  # both are that near to the network
        error = (np.abs(Y[2000:] - target(X[2000:])) ** p).sum(axis=(1, 2)).mean() ** (1 / p)
        assert error * 0.9 <= found["bound"] <= certificate.bound * (1 + 1e-4)


def test_what_is_not_proved_is_not_said():
    sparse = te.build(builtin("sort", n=2), delta=1 / 2, rho="sparsemax", pattern=te.patterns.star(n=2))
    certificate = te.certify(sparse, opinions=1)
    assert certificate.float_run == {"status": "measured", "dtypes": {}}
    assert any("measured only" in sentence for sentence in certificate.meaning())
    ball = te.Target(lambda X: 0.5 * X, n=2, lipschitz=0.5, name="half", domain=te.domains.Ball([0.5], 0.3))
    certificate = te.certify(te.build(ball, delta=1 / 4), opinions=1)
    assert certificate.float_run["dtypes"]["float64"]["bound"] is None
    assert any("on ramps it is tried only" in sentence for sentence in certificate.meaning())


def test_whole_numbers_end_at_the_bits_of_the_dtype():
    witness = te.build(builtin("soft-rank", n=2), delta=1 / 4, construction="compact")
    run = FloatRun.of(witness.network, witness.grid)
    for name, bits in (("float32", 24), ("float64", 53)):
        assert dataclasses.replace(run, whole=2.0**bits).verdict(name).holds
        assert not dataclasses.replace(run, whole=2.0**bits + 4).verdict(name).holds


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}
    for construction in ("faithful", "compact"):
        made[construction] = tmp_path_factory.mktemp("bounds") / construction
        witness = te.build(builtin("sort", n=2), delta=1 / 4, construction=construction)
        witness.save(made[construction])
        te.certify(witness, opinions=1).save(made[construction])
        assert te.verify(made[construction], opinions=1).holds
    return made


def said(dtype, **parts):
    def change(record):
        record["float_run"]["dtypes"].setdefault(dtype, {"cores": 0.0, "output": None, "bound": None}).update(parts)

    return lambda folder: forge_certificate(folder, change)


def smaller(part, dtype="float64"):
    def change(record):
        run = record["float_run"]["dtypes"][dtype]
        run[part] = [x * 0.999 for x in run[part]] if part == "output" else run[part] * 0.999

    return lambda folder: forge_certificate(folder, change)


def compact(stage, index, how):
    def change(weights):
        weights[f"stages.{stage}"][index] = how(weights[f"stages.{stage}"][index])

    return lambda folder: forge_weights(folder, change)


def off_the_lattice(folder):
    """A stored value that float32 rounds twice, to another number than once."""
    witness = te.load(folder)
    run = FloatRun.of(witness.network, witness.grid)
    position = int(np.flatnonzero(run.default[:, 0])[0])
    unit = int(np.flatnonzero((run.gate[position] > 0) & (run.values[:, 0] != 0))[0])
    old = run.values[unit, 0]
    changed = next(
        new
        for new in old + np.arange(1, 4000) * 2.0**-31
        if not dataclasses.replace(run, values=np.where(run.values == old, new, run.values)).verdict("float32").holds
    )
    forge_weights(folder, lambda w: _put(w, old, changed))


def _put(weights, old, new):
    stored = weights["stages.recall.feed_forward.W_2"]
    stored[stored == old] = new


def a_little_logit(weights):
    for part in ("W_Q", "W_K"):
        weights[f"stages.gather.attention.{part}"][0, 0, 0, 0] = 7.0  # a gap of 49 at most: no underflow


FAULTS = {
    ("faithful", "a smaller bound"): smaller("bound"),
    ("faithful", "a smaller output"): smaller("output"),
    ("faithful", "a smaller distance"): said("float64", cores=0.0),
    ("faithful", "another dtype"): said("float32", cores=1e-8),
    ("faithful", "no ramps"): said("float64", bound=None),
    ("faithful", "not proved"): lambda f: forge_certificate(f, lambda r: r["float_run"].update(status="measured")),
    ("faithful", "no dtype"): certified(float_run={"status": "proved", "dtypes": {}}),
    ("compact", "a smaller bound"): smaller("bound", "float32"),
    ("compact", "a smaller output"): smaller("output", "float32"),
    ("compact", "a smaller distance"): smaller("cores", "float32"),
    ("compact", "half of the bits"): said("bfloat16", cores=1e-2),
    ("compact", "a value off the lattice of float32"): off_the_lattice,
    ("compact", "an edge one ulp of float32 off"): compact(
        "edges.feed_forward.b_1", (0, 0), lambda x: torch.nextafter(x.float(), torch.tensor(torch.inf)).double()
    ),
    ("compact", "a magnitude past 2^24"): compact(
        "cells.feed_forward.W_2", ..., lambda w: torch.where(w == 1, 2.0**24 + 2, w)
    ),
    ("compact", "a logit gap too small"): lambda f: forge_weights(f, a_little_logit),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("construction", "fault"), FAULTS)
def test_forged_bounds_of_the_run_are_noticed(construction, fault, folders, tmp_path):
    shutil.copytree(folders[construction], tmp_path / "w")
    FAULTS[construction, fault](tmp_path / "w")
    verdict = te.verify(tmp_path / "w", opinions=1)
    assert verdict.holds is False
    assert "float bound" in {check.name for check in verdict.evidence if check.passed is False}
