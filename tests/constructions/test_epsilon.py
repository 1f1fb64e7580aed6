"""``epsilon`` is proved, by the coarsest power-of-two grid that proves it, or the build says that it is not."""

import json
import shutil

import numpy as np
import pytest

import thereexists as te
from tests.cli.in_process import ran
from tests.hostile import forge_certificate, forge_record
from thereexists.certificates.block_sums import blocks_sha256, load_blocks, packed
from thereexists.certificates.certificate import BLOCKS, FILE, load_certificate
from thereexists.core.errors import CannotBuild, NotProved
from thereexists.functions.targets import builtin

CUBES = 1 << 9  # of the largest grid that the random cases ask for, about


def random_case(seed):
    """A random function with its true Lipschitz constant, a construction, p, and an epsilon that some grid may keep."""
    rng = np.random.default_rng(seed)
    n, d = [(1, 1), (2, 1), (1, 2), (3, 1), (2, 1), (1, 1)][seed % 6]
    low = float(rng.uniform(-2, 1))
    width = float(2 ** rng.uniform(-2, 2))
    a, b, bend = rng.uniform(0.2, 1), rng.uniform(0, 0.5), rng.uniform(low, low + width)
    equivariant = bool(rng.random() < 0.4)

    def f(X):
        across = X.mean(axis=1, keepdims=True) if equivariant else X[:, ::-1]
        return a * np.abs(X - bend) + b * across

    p = float(rng.choice([1.0, 1.0, 2.0]))
    target = te.Target(f, n=n, d=d, lipschitz=a + b, equivariant=equivariant, domain=(low, low + width))
    finest = 2 ** rng.uniform(0.5, np.log2(CUBES) / (n * d))  # cells a feature
    scale = (a + b) * width * (n * d * width ** (n * d)) ** (1 / p)
    epsilon = float(scale * rng.uniform(0.3, 1) / finest)
    return target, epsilon, p, str(rng.choice(["faithful", "compact"]))


def keeps_the_promise(seed):
    """True if epsilon is proved by the coarsest grid that does; False if it is refused, in words."""
    target, epsilon, p, construction = random_case(seed)
    try:
        witness = te.build(target, epsilon=epsilon, p=p, construction=construction)
    except (CannotBuild, NotProved) as refusal:
        if f"epsilon = {epsilon:g}" not in str(refusal):
            raise
        return False
    proved = witness.certificate
    assert proved.bound <= epsilon == proved.epsilon == witness.plan.epsilon
    assert te.plan(target, epsilon=epsilon, p=p, construction=construction).grid == witness.grid
    N = witness.grid.N
    assert N & (N - 1) == 0
    for coarser in [1 << k for k in range(1, N.bit_length() - 1)]:
        other = te.build(target, delta=1 / coarser, p=p, construction=construction)
        assert te.certify(other, p, opinions=1).bound > epsilon
    return True


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", [1, 2, 3, 48])  # 48: the ramps decide
def test_random_functions_and_epsilons(seed):
    assert keeps_the_promise(seed)  # none of these is refused


@pytest.mark.slow
def test_fifty_random_functions_and_epsilons():
    assert sum(map(keeps_the_promise, range(50))) >= 25


@pytest.mark.parametrize("construction", ["faithful", "compact"])
def test_the_plan_of_old_missed_these(construction):
    """The moment of the whole cube is below what the certificate's parts of it add up to, and the other way round."""
    missed = te.build(builtin("reverse", n=1), epsilon=0.065, construction=construction)
    assert missed.certificate.bound <= 0.065
    coarse = te.build(te.Target(lambda X: X[:, ::-1] / 2, n=2, lipschitz=0.5), epsilon=0.15, construction=construction)
    assert coarse.grid.N == 2
    assert te.plan(coarse.target, delta=1 / 2).error.total > 0.15  # what the modulus alone would have said


def test_the_command_states_epsilon_everywhere(tmp_path):
    done = ran("build reverse --n 1 --epsilon 0.065 --out w --json", cwd=tmp_path)
    assert done.code == 0
    said = json.loads(done.stdout)
    assert said["certificate"]["bound"] <= 0.065 == said["epsilon"] == said["certificate"]["epsilon"]
    assert json.loads((tmp_path / "w" / "witness.json").read_text())["plan"]["epsilon"] == 0.065
    assert load_certificate(tmp_path / "w").epsilon == 0.065
    assert "epsilon = 0.065 is reached" in ran("certify w", cwd=tmp_path).stdout
    assert te.verify(tmp_path / "w", opinions=1).holds
    assert te.load(tmp_path / "w").plan.epsilon == 0.065


def test_what_is_not_reached_is_said(tmp_path, monkeypatch):
    """A certificate that proves more than was predicted: finer grids are tried, it is said, and nothing is left."""
    from thereexists.constructions import within

    forecast = within.forecast
    monkeypatch.setattr(
        within, "forecast", lambda f, grid, p, all_columns, enough: forecast(f, grid, p, all_columns, 9)
    )
    monkeypatch.setattr("thereexists.constructions.faithful.plan.MAX_ID_BITS", 14)
    done = ran("build reverse --n 1 --epsilon 0.01 --out w", cwd=tmp_path)
    assert done.code == 1
    assert "epsilon = 0.01 is not reached: delta = 1/8 proves only d_1" in done.stderr
    assert not (tmp_path / "w").exists()
    with pytest.raises(NotProved, match="is not reached"):
        te.build(builtin("reverse", n=1), epsilon=0.01)


def test_without_a_certificate_it_is_a_prediction(tmp_path):
    done = ran("build sort --n 1 --epsilon 0.1 --no-certify --out w --json", cwd=tmp_path)
    said = json.loads(done.stdout)
    assert (done.code, said["certificate"], said["epsilon"]) == (0, None, 0.1)
    assert said["error"]["total"] <= 0.1
    assert te.build(builtin("sort", n=1), epsilon=0.1, modified=True).certificate is None


def test_a_black_box_is_promised_nothing():
    with pytest.raises(te.ThereExistsError, match="No distance can be promised"):
        te.build(te.Target(lambda X: X, n=1), epsilon=0.1)


def test_an_interval_extension_is_enough():
    witness = te.build(te.Target(lambda X: X, n=1, interval=lambda low, high: (low, high)), epsilon=0.1)
    assert witness.certificate.bound <= 0.1


FORGED = {
    "a smaller epsilon in both": (lambda r: r["plan"].update(epsilon=0.01), lambda r: r.update(epsilon=0.01)),
    "a smaller epsilon in the record": (lambda r: r["plan"].update(epsilon=0.01), lambda r: None),
    "a larger epsilon in the certificate": (lambda r: None, lambda r: r.update(epsilon=1.0)),
    "no epsilon in the certificate": (lambda r: None, lambda r: r.update(epsilon=None)),
    "no epsilon in the record": (lambda r: r["plan"].update(epsilon=None), lambda r: None),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept") / "w"
    te.build(builtin("sort", n=1), epsilon=0.1).save(folder)
    return folder


@pytest.mark.sampled(3)
@pytest.mark.parametrize("forgery", FORGED)
def test_a_false_epsilon_is_noticed(forgery, kept, tmp_path):
    shutil.copytree(kept, tmp_path / "w")
    assert te.verify(tmp_path / "w", opinions=1).holds
    record, certificate = FORGED[forgery]
    forge_record(tmp_path / "w", record)
    forge_certificate(tmp_path / "w", certificate)
    verdict = te.verify(tmp_path / "w", opinions=1)
    assert verdict.holds is False
    assert any(reason.startswith("epsilon:") for reason in verdict.reasons)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_certificate_of_a_version_before_still_holds(version, kept, tmp_path):
    """Before version 3 it named no epsilon, before version 4 it said nothing of single inputs, with six sums a block,
    and before version 5 nothing of the float run as a whole."""
    shutil.copytree(kept, tmp_path / "w")
    record = json.loads((tmp_path / "w" / FILE).read_text())
    older = [sums[: 10 if version == 4 else 6] for sums in load_blocks(tmp_path / "w", record["blocks_sha256"])]
    (tmp_path / "w" / BLOCKS).write_bytes(packed(older))

    def as_it_was(r):
        r.update(format_version=version, blocks_sha256=blocks_sha256(older))
        r.pop("float_run")
        if version < 4:
            r.pop("uniform")
        if version == 2:
            r.pop("epsilon")

    forge_certificate(tmp_path / "w", as_it_was)
    if version == 2:
        forge_record(tmp_path / "w", lambda r: r["plan"].pop("epsilon"))
    assert te.verify(tmp_path / "w", opinions=1).holds
    assert len(load_certificate(tmp_path / "w").meaning()) == (2 if version == 4 else 1)
    te.load(tmp_path / "w").certificate.save(tmp_path / "w")  # as a certificate of this version that says no more
    assert te.verify(tmp_path / "w", opinions=1).holds


def test_another_p_was_not_asked_for(kept, tmp_path):
    shutil.copytree(kept, tmp_path / "w")
    assert te.certify(tmp_path / "w", p=2.0, opinions=1).epsilon is None
    assert te.verify(tmp_path / "w", opinions=1).holds


def test_the_normalised_distance_stands_beside(tmp_path):
    (tmp_path / "my.py").write_text("def f(X):\n    return abs(X)\n")
    asked = "my.py:f --n 2 --lipschitz 1 --domain -2 5 --delta 1/4 --p 2"
    plan = json.loads(ran(f"plan {asked} --json", cwd=tmp_path).stdout)
    assert plan["normalised"]["volume"] == 49
    assert plan["normalised"]["predicted"] == pytest.approx(plan["error"]["total"] / 7, rel=1e-6)
    assert "normalised" in ran(f"plan {asked}", cwd=tmp_path).stdout
    built = json.loads(ran(f"build {asked} --out w --json", cwd=tmp_path).stdout)
    assert built["certificate"]["normalised"] == pytest.approx(built["certificate"]["bound"] / 7, rel=1e-6)
    assert built["normalised"]["measured"] == pytest.approx(built["distance"]["estimate"] / 7, rel=1e-6)
    assert "normalised" in ran("show w", cwd=tmp_path).stdout
    assert "normalised" in str(te.report(tmp_path / "w"))


def test_the_volume_is_named_when_it_is_what_is_in_the_way(tmp_path):
    done = ran("build sort --n 2 --domain 0 1000 --epsilon 1", cwd=tmp_path)
    assert done.code == 2
    assert "volume" in done.stderr
    assert "normalised distance (d_1 over volume^(1/p)) of 1e-06" in done.stderr
