"""Every built-in target, and constant ones, the whole way: build, certify, save, verify, show, report, explore."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import thereexists as te
from tests.hostile import certified
from thereexists.cli import app
from thereexists.core.errors import BadWitnessFile, NotProved
from thereexists.functions.targets import BUILTINS, builtin
from thereexists.reports import report
from thereexists.reports.explore.viewer import open_viewer

CONSTRUCTIONS = ("faithful", "compact")
CONSTANT_ALONE = ("distance-to-mean", "distance-to-max", "soft-rank", "nearest-neighbour", "shift")


def whole_way(target, N, construction, folder):
    """All commands; returns the certificate. Nothing may fail, and the bound is finite."""
    witness = te.build(target, delta=f"1/{N}", construction=construction)
    witness.save(folder)
    certificate = te.certify(witness, opinions=1)
    certificate.save(folder)
    verdict = te.verify(folder, target, opinions=1)
    assert verdict.holds, verdict.reasons
    assert np.isfinite(certificate.bound)
    assert certificate.bound >= witness.estimate_distance(samples=256).low
    shown = CliRunner().invoke(app, ["show", str(folder), "--json"], catch_exceptions=False)
    assert json.loads(shown.stdout)["n"] == target.n
    assert "There exists a Transformer" in str(report(folder, target))
    X = (target.low + target.high) / 2 * np.ones((target.n, target.d))
    open_viewer(folder, target).run({"x": X.tolist()})
    return certificate


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CONSTANT_ALONE)
def test_a_target_that_is_constant_alone_is_built_compactly(name, tmp_path):
    assert whole_way(builtin(name, n=1), 2, "compact", tmp_path / "w").bound <= 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", BUILTINS)
def test_every_target_goes_the_whole_way(name, n, d, construction, tmp_path):
    whole_way(builtin(name, n=n, d=d), 3 if n * d < 4 else 2, construction, tmp_path / "w")


CONSTANT = {
    "0": lambda X: 0 * X,
    "0.3": lambda X: 0 * X + 0.3,
    "one feature 0.3": lambda X: np.stack([X[..., 0], 0 * X[..., 0] + 0.3], axis=-1),
    "one feature 1/3, the other 0.7": lambda X: np.stack([0 * X[..., 0] + 1 / 3, 0 * X[..., 0] + 0.7], axis=-1),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("equivariant", [False, True])
@pytest.mark.parametrize("what", CONSTANT)
def test_constant_functions_and_features_are_proved(what, equivariant, tmp_path):
    d = 2 if "feature" in what else 1
    target = te.Target(CONSTANT[what], n=2, d=d, lipschitz=1.0 if d == 2 else 0.0, equivariant=equivariant)
    whole_way(target, 2, "compact", tmp_path / "w")


def without_bound(folder):
    """A network whose outputs nothing bounds: one more unit writes the input itself into an output."""
    witness = te.build(builtin("sort", n=1), delta=1 / 2, construction="compact")
    W_2 = witness.network.stages["edges"].feed_forward.W_2
    W_2.data[0, 1, 0] += 1.0
    witness.save(folder)
    return witness


def test_proved_and_infinity_never_stand_together(tmp_path):
    witness = without_bound(tmp_path / "w")
    with pytest.raises(NotProved, match="Not proved: no finite bound"):
        te.certify(witness, opinions=1)
    for extra in ([], ["--json"]):
        done = CliRunner().invoke(app, ["certify", str(tmp_path / "w"), *extra], catch_exceptions=False)
        assert done.exit_code == 1
        assert "ot proved" in done.stdout
        assert "≤ inf" not in done.stdout
    assert not (tmp_path / "w" / "certificate.json").exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bound", [float("inf"), float("nan"), None, "0.1", True])
def test_a_stored_certificate_without_a_finite_bound_is_refused(tmp_path, bound):
    from thereexists.certificates import certificate as certificates

    witness = te.build(builtin("sort", n=1), delta=1 / 2)
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1).save(tmp_path / "w")
    certified(bound=bound)(tmp_path / "w")
    with pytest.raises(BadWitnessFile):
        certificates.load_certificate(tmp_path / "w")
    with pytest.raises(BadWitnessFile):
        report(tmp_path / "w")
