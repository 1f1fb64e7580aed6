"""Certificates: never below the truth, close to it, resumable; statistical ones cover as often as they say."""

import dataclasses
import sys

import numpy as np
import pytest

import thereexists as te
from tests.cases import CASES, IDS
from thereexists.certificates import cubes
from thereexists.certificates.statistical import bernstein
from thereexists.core.errors import InvalidInput, NotProved
from thereexists.core.storage import JOB
from thereexists.functions.targets import BUILTINS, builtin


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BUILTINS)
@pytest.mark.parametrize("p", [1.0, pytest.param(2.0, marks=pytest.mark.slow)])
def test_bound_is_above_the_truth_for_every_target(name, p):
    witness = te.build(builtin(name, n=2), delta=1 / 8)
    certificate = te.certify(witness, p=p, opinions=1)
    estimate = witness.estimate_distance(p=p, samples=4096)
    assert certificate.kind == "rigorous"
    assert certificate.undecided == 0
    assert certificate.bound >= estimate.low
    assert certificate.bound <= 1.5 * estimate.high or witness.target.lipschitz > 2
    total = sum(certificate.parts[k] ** p for k in ("grid", "equal_columns", "ramps")) ** (1 / p)
    assert certificate.bound >= total + certificate.parts["network"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            marks=pytest.mark.slow if case.N ** (case.n * case.d) > 1000 or case.name == "softmax-attention" else (),
        )
        for case in CASES
    ],
    ids=IDS,
)
def test_every_case_certifies_and_the_plan_was_right_to_promise(case):
    witness = te.build(case.target(), delta=1 / case.N)
    certificate = te.certify(witness, opinions=1)
    assert certificate.cells == case.N ** (case.n * case.d)
    assert certificate.second_opinion["disagreeing"] == []
    assert certificate.bound <= witness.plan.error.total * (1 + 1e-5)


@pytest.mark.slow
def test_sort_on_the_fine_grid_is_within_one_and_a_half_of_the_estimate():
    witness = te.build(builtin("sort", n=3), delta=1 / 16)
    certificate, estimate = te.certify(witness, opinions=1), witness.estimate_distance(samples=1024)
    assert estimate.low <= certificate.bound <= 1.5 * estimate.high


def test_equal_columns_are_charged_honestly():
    witness = te.build(builtin("distance-to-mean", n=3), delta=1 / 8)
    certificate = te.certify(witness, opinions=1)
    assert certificate.parts["equal_columns"] > certificate.parts["grid"]
    assert witness.grid.equal_column_share() == pytest.approx(1 - 7 * 6 / 64, abs=1e-15)


def test_a_box_and_values_of_any_size():
    target = te.Target(
        lambda X: 1000 * np.sort(X, axis=1), n=2, domain=(-1.0, float(np.pi)), lipschitz=1000.0, name="large"
    )
    witness = te.build(target, delta=1 / 8)
    assert te.certify(witness, opinions=1).bound >= witness.estimate_distance().low


def test_interval_extension_alone_is_enough():
    def f(X):
        return np.sqrt(np.sort(X, axis=1))

    target = te.Target(f, n=2, interval=lambda low, high: (f(low) - 1e-12, f(high) + 1e-12))
    witness = te.build(target, delta=1 / 8)
    certificate = te.certify(witness, opinions=1)
    assert certificate.kind == "rigorous"
    assert certificate.bound >= witness.estimate_distance().low


def test_a_network_without_clamp_gets_no_finite_bound():
    witness = te.build(builtin("sort", n=2), delta=1 / 4)
    witness.network.stages["value"].feed_forward.W_2.data[-1, 0, 2:] = 0.0
    with pytest.raises(NotProved, match=r"Not proved: no finite bound .* \(the part ramps has no finite bound\)"):
        te.certify(witness, opinions=1)


def test_black_boxes_get_a_labelled_statistical_certificate():
    target = te.Target(lambda X: np.round(3 * X) / 3, n=2, bound=1.0)
    witness = te.build(target, delta=1 / 8)
    certificate = te.certify(witness, confidence=0.95, samples=5000)
    assert certificate.kind == "statistical"
    assert certificate.confidence == 0.95
    assert certificate.bound >= witness.estimate_distance().low
    with pytest.raises(te.ThereExistsError, match="state one of them"):
        te.certify(witness, target=dataclasses.replace(target, bound=None))
    with pytest.raises(te.ThereExistsError, match=r"claims \|f\| ≤ 0.5, but reaches 1"):
        te.certify(witness, target=dataclasses.replace(target, bound=0.5))


def test_empirical_bernstein_covers():
    """In 300 repetitions at α = 10 % the bound may miss the mean 30 times on average; the inequality is far safer."""
    rng = np.random.default_rng(0)
    draws = (rng.random((300, 200)) < 0.05).astype(float)
    misses = sum(bernstein(row, R=1.0, alpha=0.1) < 0.05 for row in draws)
    assert misses <= 30
    normal = sum(row.mean() + 1.2816 * row.std(ddof=1) / np.sqrt(200) < 0.05 for row in draws)
    assert normal > misses  # the normal approximation at the same level misses more often


def test_an_interrupted_certification_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(cubes, "CUBES", 16)
    witness = te.build(builtin("sort", n=2), delta=1 / 8)
    whole = te.certify(witness, opinions=1)
    done = []

    def interrupt(at, total):
        done.append(at)
        if at == 32:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        te.certify(witness, opinions=1, folder=tmp_path, progress=interrupt)
    evaluated, block_sums = [], cubes.block_sums

    def counting(encloser, target, problem, numbers):
        evaluated.append(len(numbers))
        return block_sums(encloser, target, problem, numbers)

    monkeypatch.setattr(cubes, "block_sums", counting)
    resumed = te.certify(witness, opinions=1, folder=tmp_path)
    assert sum(evaluated) == 64 - 32
    assert resumed.bound == whole.bound
    assert [file.name for file in tmp_path.iterdir()] == [JOB]  # until the certificate is saved, its work is kept
    resumed.save(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["certificate.blocks.safetensors", "certificate.json"]


def test_what_is_no_job_stays_where_a_job_would_be(tmp_path):
    (tmp_path / JOB).mkdir()
    (tmp_path / JOB / "diary.txt").write_text("mine")
    witness = te.build(te.Target(lambda X: np.sort(X, axis=1), n=2, bound=1.0), delta=1 / 4)
    te.certify(witness, folder=tmp_path, samples=100).save(tmp_path)  # statistical: there is no job
    te.certify(te.build(builtin("sort", n=2), delta=1 / 4), opinions=1).save(tmp_path)
    assert (tmp_path / JOB / "diary.txt").read_text() == "mine"


@pytest.mark.slow
def test_a_ledger_of_another_job_is_not_believed(tmp_path, monkeypatch):
    monkeypatch.setattr(cubes, "CUBES", 64)

    def interrupt(at, total):
        if at == 128:
            raise KeyboardInterrupt

    sort, reverse = (te.build(builtin(name, n=2), delta=1 / 16) for name in ("sort", "reverse"))
    with pytest.raises(KeyboardInterrupt):
        te.certify(sort, opinions=1, folder=tmp_path, progress=interrupt)
    assert te.certify(reverse, opinions=1, folder=tmp_path).bound == te.certify(reverse, opinions=1).bound


def test_modified_networks_are_refused():
    with pytest.raises(te.ThereExistsError, match="standard class"):
        te.certify(te.build(builtin("sort", n=2), delta=1 / 4, modified=True))


def test_the_float_run_is_measured_on_cubes_that_nobody_knew(tmp_path, monkeypatch):
    """Weights may be tuned so that their float run is right on the certificate's own cubes, and on those alone."""
    module = sys.modules["thereexists.certificates.certify_function"]  # its name is also the function's
    witness = te.build(builtin("sort", n=2), delta=1 / 32, construction="compact")
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1, seed=7).save(tmp_path / "w")
    assert te.verify(tmp_path / "w", opinions=1).holds
    grid, right = witness.grid, module.run
    numbers = np.random.default_rng(7).choice(grid.cells, 256, replace=False)
    known = {row.tobytes() for row in grid.centre(grid.cube(numbers))}

    def tuned(network, X):
        wrong = np.array([row.tobytes() not in known for row in X])
        return right(network, X) + 1e-3 * wrong[:, None, None]

    monkeypatch.setattr(module, "run", tuned)
    verdict = te.verify(tmp_path / "w", opinions=1)
    assert [reason.split(":")[0] for reason in verdict.reasons] == ["float run"]


def test_a_function_of_ones_own_may_have_the_name_of_a_built_in(tmp_path):
    halves = te.Target(lambda X: X / 2, n=2, d=1, name="sort", lipschitz=0.5)
    te.build(halves, delta=1 / 2).save(tmp_path / "w")
    te.certify(tmp_path / "w", target=halves)
    assert te.verify(tmp_path / "w", target=halves).holds
    assert te.verify(tmp_path / "w").holds is None, "and it is not taken for the built-in one"
    assert not te.verify(tmp_path / "w", target=builtin("sort", n=2)).holds


def of_others(f):
    """Functions of other sequences than sort's on [0, 1], n = 2, each with the word that tells."""
    own = {"lipschitz": 1.0, "name": "sort"}
    return {
        "other n": (builtin("sort", n=3), "n = 3 in place of 2"),
        "other d": (builtin("sort", n=2, d=2), "d = 2 in place of 1"),
        "other box": (builtin("sort", n=2, domain=(0, 2)), r"high = \[2.0\] in place of \[1.0\]"),
        "narrower box": (builtin("sort", n=2, domain=(0, 0.5)), "high"),
        "ball": (te.Target(f, n=2, domain=te.domains.Ball([0.5, 0.5], 0.5), **own), "domain = {'kind': 'ellipsoid'"),
        "support": (te.Target(f, n=2, compact_support=True, **own), "compact_support = True in place of False"),
        "symmetry": (te.Target(np.zeros_like, n=2, equivariant=True, **own), "equivariant = True in place of False"),
        "no target": (np.sort, "must be a te.Target; got"),
    }


@pytest.fixture(scope="module")
def of_sort(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sort") / "w"
    witness = te.build(builtin("sort", n=2), delta=1 / 2)
    witness.save(folder)
    te.certify(witness, opinions=1).save(folder)
    return folder


@pytest.mark.parametrize("what", of_others(np.sort))
def test_a_function_of_other_sequences_is_refused_before_any_work(what, of_sort):
    """It was summed over the cubes of the witness's own domain, and called proved."""

    def never(X):
        raise AssertionError("no question may be asked")

    target, says = of_others(never)[what]
    before = (of_sort / "certificate.json").read_bytes()
    for verb in (te.certify, te.certificates.predict, te.report):
        given = te.load(of_sort) if verb is te.certificates.predict else of_sort
        with pytest.raises(InvalidInput, match=says):
            verb(given, target=target)
    assert (of_sort / "certificate.json").read_bytes() == before
    if what == "no target":
        with pytest.raises(InvalidInput, match=says):
            te.verify(of_sort, target)
    else:
        verdict = te.verify(of_sort, target, opinions=1)
        assert verdict.holds is False
        assert not any("cannot be checked" in reason for reason in verdict.reasons)


def test_a_domain_may_not_be_exchanged_for_another_or_for_a_box():
    ball, other = (te.domains.Ball([0.5, 0.5], radius) for radius in (0.5, 0.25))
    target = te.Target(lambda X: X, n=2, lipschitz=1.0, domain=ball)
    witness = te.build(target, delta=1 / 2)
    for domain in (other, (0.0, 1.0)):
        with pytest.raises(InvalidInput, match="shape, domain and symmetry of its own"):
            te.certify(witness, target=dataclasses.replace(target, domain=domain))
    assert te.certify(witness, target=dataclasses.replace(target), opinions=1).bound > 0


@pytest.mark.parametrize("certify", [te.certify, te.certificates.predict])
@pytest.mark.parametrize("change", [{"domain": (0.0, 2.0)}, {"domain": (0.25, 1.0)}, {"equivariant": False}])
def test_a_witness_of_another_function_than_its_grid_is_for_is_refused(certify, change):
    witness = te.build(builtin("distance-to-mean", n=2), delta=1 / 4, construction="compact")
    other = dataclasses.replace(witness, target=dataclasses.replace(witness.target, **change))
    with pytest.raises(InvalidInput, match="not the function that this witness was built for"):
        certify(other)
