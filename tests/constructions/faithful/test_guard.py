"""Theorem 1 on all of R^{d×n}: exactly 0 as soon as one entry is outside, right inside, certified and verified."""

import json

import numpy as np
import pytest

import thereexists as te
from tests.cli.in_process import ran
from tests.supported import BOXES, bumped, inputs_everywhere, keeps_the_theorem
from thereexists.certificates.support import vanishes_outside
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.functions.targets import BUILTINS, builtin

EQUIVARIANT = [name for name in BUILTINS if builtin(name, n=2).equivariant]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("d", BOXES)
@pytest.mark.parametrize("name", EQUIVARIANT)
def test_0_outside_and_right_inside(name, d):
    keeps_the_theorem(bumped(name, n=2, d=d, domain=BOXES[d]), 1 / 4, 4000)


@pytest.mark.slow
@pytest.mark.parametrize("construction", ["faithful", "compact"])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (3, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("name", EQUIVARIANT)
def test_a_hundred_thousand_inputs(name, n, d, construction, tmp_path):
    target = bumped(name, n=n, d=d, domain=BOXES[d])
    witness = keeps_the_theorem(target, 1 / 2 if n * d == 6 else 1 / 4, 100_000, construction)
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1).save(tmp_path / "w")
    assert te.verify(tmp_path / "w", target, opinions=1).holds


def test_the_ends_of_the_box_and_the_numbers_beside_them():
    """At an end and beyond it is 0; a ramp's width inside, f̄; and so for every size that a float64 may have."""
    target = bumped("distance-to-mean", n=2, domain=(-0.3, 0.7))
    witness = te.build(target, delta=1 / 4)
    low, high, ramp = -0.3, 0.7, 1.002 * float(witness.grid.ramp[0])
    sizes = 2.0 ** np.arange(-60.0, 1023.0)
    beyond = [low, high, np.nextafter(low, -1), np.nextafter(high, 1), *(high + sizes), *(low - sizes)]
    beyond = np.array([*beyond, *(10.0 ** np.arange(1, 309)), *(-(10.0 ** np.arange(1, 309))), np.finfo(float).max])
    for other in (0.1, -0.2, 3.0, -1e300):
        X = np.stack([beyond, np.full_like(beyond, other)], axis=1)[:, :, None]
        assert not witness(X).any()
        assert not witness(X[:, ::-1]).any()
    inside = np.array([[[low + ramp], [high - ramp]], [[high - ramp], [0.0]]])
    assert np.abs(witness(inside) - witness.cell_values(inside)).max() < 1e-9
    assert (witness(inside) != 0).any()


def test_the_plan_counts_the_layers_and_the_class_is_the_theorems():
    for d in (1, 2, 5):
        target = bumped("distance-to-mean", n=2, d=d, domain=(0.0, 1.0))
        witness = te.build(target, delta=1 / 2)
        stages = witness.network.stages
        assert {name: stage.depth for name, stage in stages.items()} | {"total": witness.network.depth} == (
            witness.plan.layers
        )
        assert list(stages) == ["guard", "quantise", "context", "outside", "value"]
        assert (stages["guard"].depth, stages["outside"].depth) == (2 * d + 1, 1 + (d + 3) // 4)
        assert witness.plan.parameters == witness.network.parameter_count
        assert {k: witness.network.shape()[k] for k in "hmr"} == {"h": 2, "m": 1, "r": 4}
        assert witness.network.E is None


def test_the_bound_is_about_all_of_the_space_and_above_the_truth():
    target = bumped("distance-to-mean", n=2)
    witness = te.build(target, delta=1 / 8)
    certificate = te.certify(witness, opinions=1)
    assert witness.estimate_distance().low <= certificate.bound <= witness.plan.error.total * (1 + 1e-5)
    assert "all of R^{d×n}" in certificate.meaning()[0]
    assert "all of R^{d×n}" in certificate.statement()
    plain = te.build(te.Target(target.f, n=2, lipschitz=target.lipschitz, equivariant=True), delta=1 / 8)
    assert certificate.bound == pytest.approx(te.certify(plain, opinions=1).bound, rel=1e-3)  # ramps alone differ
    assert te.certify(witness, p=2.0, opinions=1).bound > 0


def test_two_sweeps_and_sparsemax():
    target = te.Target(
        lambda X: 1e6 * np.prod(4 * X * (1 - X), axis=1, keepdims=True) * X, n=2, lipschitz=1e7, equivariant=True,
        compact_support=True, name="large",
    )  # fmt: skip
    witness = keeps_the_theorem(target, 1 / 4, 4000)
    assert witness.plan.sweeps == 2
    sparsemax = te.build(target, delta=1 / 4, rho="sparsemax")
    X, outside = inputs_everywhere(target, 4000)
    assert not sparsemax(X)[outside].any()
    assert vanishes_outside(sparsemax.network, target, 2).holds


def test_what_cannot_be_0_outside_is_refused():
    f = bumped("distance-to-mean", n=2, equivariant=False)
    with pytest.raises(CannotBuild, match="positional encoding E is 0 outside a box"):
        te.build(f, delta=1 / 4)
    with pytest.raises(CannotBuild, match="positional encoding"):
        te.build(bumped("distance-to-mean", n=4), delta=1 / 2, pattern=te.patterns.star(n=4))
    with pytest.raises(CannotBuild, match="a single token"):
        te.plan(bumped("token-sine", n=1), delta=1 / 4)
    with pytest.raises(CannotBuild, match="too far from 0"):
        te.plan(bumped("distance-to-mean", n=2, domain=(1e9, 1e9 + 1)), delta=1 / 4)
    with pytest.raises(InvalidInput, match="no guard layers"):
        te.build(bumped("distance-to-mean", n=2), delta=1 / 4, modified=True)
    with pytest.raises(InvalidInput, match="compact_support"):
        te.Target(f.f, n=2, compact_support=1)
    witness = te.build(bumped("distance-to-mean", n=2), delta=1 / 4)
    for bad in (np.nan, np.inf):
        with pytest.raises(InvalidInput, match="domain"):
            witness([[bad], [0.5]])


def test_no_network_with_positions_is_0_outside():
    """The reason, seen on a network: X' = P(X + E) − E lies outside, and g(X') is P g(X)."""
    witness = te.build(builtin("sort", n=2), delta=1 / 4)
    E = witness.network.E.detach().numpy()
    X = np.array([[[0.7], [0.2]]])
    beyond = (X + E)[:, ::-1] - E
    assert (beyond < 0).any()
    assert (witness.run(beyond)[:, ::-1] == witness.run(X)).all()


def test_on_the_command_line(tmp_path):
    (tmp_path / "my.py").write_text(
        "import numpy as np\ndef f(X):\n    return X * np.prod(4 * X * (1 - X), axis=1, keepdims=True)\n"
        "def g(X):\n    return X\n"
    )
    asked = "--n 2 --delta 1/4 --lipschitz 9 --equivariant --compact-support"
    plan = ran(f"plan my.py:f {asked}", cwd=tmp_path).stdout
    assert "3 guard + 4 quantise + 5 context + 2 outside +" in " ".join(plan.split())
    assert "not continuous" not in plan
    edge = json.loads(ran(f"plan my.py:g {asked} --json", cwd=tmp_path).stdout)["advice"]
    assert any("not continuous" in sentence for sentence in edge)
    built = ran(f"build my.py:f {asked} --out w", cwd=tmp_path).stdout
    assert "all of R^{d×n}" in " ".join(built.split())
    assert ran('run w --input "1e300 0.5"', cwd=tmp_path).stdout.split() == ["0;", "0"]
    checks = json.loads(ran("verify w --function my.py:f --json", cwd=tmp_path).stdout)["checks"]
    assert [check["passed"] for check in checks if check["name"] == "support"] == [True]
    ran("report w --out r.html", cwd=tmp_path)
    assert "--compact-support" in (tmp_path / "r.html").read_text()
