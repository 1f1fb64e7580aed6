"""Certificates on domains that are no box: never below a quadrature, f asked inside alone, planted faults caught."""

import dataclasses
import json
import shutil
from unittest.mock import patch

import numpy as np
import pytest
import torch

import thereexists as te
from tests.hostile import FUNCTION, forge_certificate, forge_record, forge_weights
from thereexists.certificates.block_sums import blocks_sha256, load_blocks, packed
from thereexists.certificates.certificate import BLOCKS
from thereexists.certificates.variation import largest_on_ramps
from thereexists.core.errors import InvalidInput, Obstructed
from thereexists.functions.domains.stored import from_file, given_again
from thereexists.functions.target import from_file as function_from_file

D = te.domains
POINTS = 401  # a side, of a quadrature


def heart(x):
    """Not convex: a disc less another one."""
    near = (x - [0.9, 0.5]) ** 2
    return np.maximum(((x - 0.5) ** 2).sum(axis=1) - 0.2, 0.06 - near.sum(axis=1))


# The domain, and the same by formulas of our own: points of sequences (m, 2, 1) or (m, 1, 3), and what each stands for.
def square():
    x = (np.arange(POINTS) + 0.5) / POINTS
    X = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    return X, np.full(len(X), POINTS**-2.0)


def in_ball():
    X, w = square()
    keep = ((X - 0.5) ** 2).sum(axis=1) <= 0.09
    return X[keep][:, :, None], w[keep]


def in_heart():
    X, w = square()
    keep = heart(X) <= 0
    return X[keep][:, :, None], w[keep]


def in_simplex():
    X, w = square()
    keep = X.sum(axis=1) <= 1
    X = np.column_stack([X[keep], 1 - X[keep].sum(axis=1)])
    return X[:, None, :], w[keep]


DOMAINS = {
    "ball": (D.Ball([0.5, 0.5], 0.3), 2, 1, in_ball),
    "simplex": (D.Simplex(), 1, 3, in_simplex),
    "implicit": (D.Implicit(heart, 0, 1, lipschitz=4.0, whole=True), 2, 1, in_heart),
}


def waves(seed, n, d):
    """A sum of waves of all entries, and a Lipschitz constant of it."""
    rng = np.random.default_rng(seed)
    a, w, phase = rng.normal(size=(3, n, d)), rng.normal(size=(3, n * d, n * d)) * 3, rng.uniform(0, 6, (3, n * d))

    def f(X):
        flat = X.reshape(len(X), -1)
        return sum(a[k] * np.sin(flat @ w[k] + phase[k]).reshape(X.shape) for k in range(3))

    slope = sum(np.abs(a[k]).reshape(-1) * np.abs(w[k]).sum(axis=0) for k in range(3))
    return f, float(slope.max())


def check_against_quadrature(name, seed, construction, p):
    domain, n, d, points = DOMAINS[name]
    f, slope = waves(seed, n, d)
    X, weights = points()

    def asked(Y):
        assert target.contains(Y).all(), "f was asked outside its domain"
        return f(Y)

    target = te.Target(asked, n=n, d=d, lipschitz=slope, domain=domain)
    witness = te.build(target, delta=1 / 4, construction=construction)
    bound = te.certify(witness, p, opinions=1).bound
    gap = np.abs(f(X) - witness.run(X)) ** p
    quadrature = float((gap.sum(axis=(1, 2)) * weights).sum()) ** (1 / p)
    assert quadrature <= bound
    assert bound <= 12 * quadrature  # and it says something: the slope of waves is stated far too large
    assert witness.exactness(500).max_error <= 1e-6
    estimate = witness.estimate_distance(p, 1024)
    assert estimate.low * 0.9 <= quadrature <= estimate.high * 1.1
    return bound, quadrature


@pytest.mark.parametrize(
    ("name", "construction"), [("ball", "compact"), ("simplex", "compact"), ("implicit", "faithful")]
)
def test_no_bound_is_below_a_quadrature_over_the_domain(name, construction):
    check_against_quadrature(name, 1, construction, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_no_bound_of_40_functions_is_below_a_quadrature(seed):
    name = list(DOMAINS)[seed % 3]
    check_against_quadrature(name, seed, ("compact", "faithful")[seed // 3 % 2], (1.0, 2.0)[seed // 6 % 2])


def test_values_on_ramps_alone_are_bounded_too():
    """The simplex touches cubes at their upper corners, where they have no value; |f| may be largest there."""

    def peak(X):
        return np.maximum(0.0, 1 - 100 * np.abs(X - 0.25).max(axis=2, keepdims=True)) * np.ones_like(X)

    target = te.Target(peak, n=1, d=4, lipschitz=100.0, domain=D.Simplex())
    grid = te.Grid.for_target(target, "1/4")
    edges = grid.edge_cubes()
    assert [0, 0, 0, 0] in edges[:, 0].tolist()  # it meets the simplex in (1/4, 1/4, 1/4, 1/4) alone
    assert [0, 0, 0, 0] not in grid.cube(np.arange(grid.cells))[:, 0].tolist()
    assert largest_on_ramps(target, grid) >= 1.0


@pytest.mark.parametrize("end", [0.45, 0.7])
def test_points_at_the_end_of_the_domain_are_on_no_core(end):
    """The last core stops before the end of the domain, which need be no edge of a cell: there a network may do as it
    likes. One unit of the quantiser, which has no other use, makes it wrong at the last point alone."""
    points = np.array([x for x in (0.05, 0.2, 0.45, 0.7) if x <= end])[:, None]
    domain = D.Points(points) & D.Box([0.0], [end])
    forged = te.build(te.targets.builtin("copy-first", n=1, d=1, domain=domain), delta=1 / 4)
    layers = next(iter(forged.network.stages.values())).feed_forward
    gap = float(forged.grid.ramp[0]) * 2.0**-11
    with torch.no_grad():
        layers.W_1[0, 3, 0], layers.b_1[0, 3], layers.W_2[0, 0, 3] = (
            1.0,
            gap - (end - forged.grid.origin[0]),
            -end / gap,
        )
    error = np.abs(forged(points[:, None]) - points[:, None]).sum()
    assert te.certify(forged).bound >= error > end / 2


def test_an_input_outside_is_refused_by_name():
    witness = te.build(te.targets.builtin("sort", n=2, domain=D.Ball([0.5, 0.5], 0.3)), delta=1 / 4)
    assert witness([[0.5], [0.4]]).shape == (2, 1)
    with pytest.raises(InvalidInput, match=r"ball of radius 0\.3 around"):
        witness([[0.75], [0.75]])
    with pytest.raises(InvalidInput, match="domain"):
        witness([[np.nan], [0.5]])


def test_theorem_1_statistics_and_patterns_on_a_domain(tmp_path):
    """Equivariant functions on a set of tokens; bounds from samples; sparse attention: all over the domain."""
    target = te.targets.builtin("distance-to-mean", n=2, d=2, domain=D.Simplex())
    equivariant = te.build(target, delta=1 / 4, construction="compact")
    deep = te.build(target, delta=1 / 4)
    for witness in (equivariant, deep):
        assert witness.plan.theorem == 1
        assert witness.exactness(500).max_error <= 1e-9
    disc = te.Target(lambda X: X**2, n=2, bound=1.0, domain=D.Ball([0.5, 0.5], 0.3))
    witness = te.build(disc, delta=1 / 4, pattern=te.patterns.star(n=2))
    certificate = te.certify(witness, samples=4000, opinions=1)
    assert certificate.kind == "statistical"
    assert witness.estimate_distance().high <= certificate.bound <= 2 * witness.estimate_distance().high
    witness.save(tmp_path / "w")
    certificate.save(tmp_path / "w")
    assert te.verify(tmp_path / "w", disc, opinions=1).holds


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("domains")
    for name, radius in (("w", 0.3), ("smaller", 0.15)):
        witness = te.build(te.targets.builtin("sort", n=2, domain=twelve_sided(radius)), delta=1 / 4)
        witness.save(folder / name)
        te.certify(witness, opinions=1).save(folder / name)
    return folder


def twelve_sided(radius):
    """All of them in one and the same box, so that a smaller one has the same grid."""
    x = np.linspace(0, 2 * np.pi, 13)[:-1]
    A = np.column_stack([np.cos(x), np.sin(x)])
    return D.Polytope(A, A @ [0.5, 0.5] + radius, [0.0, 0.0], [1.0, 1.0])


def both(folder, change):
    forge_record(folder, change)
    forge_certificate(folder, change)


def smaller_domain(folder, other):
    """The record and the certificate speak of a smaller domain than the network was built for; all else is that of an
    honest certificate of the smaller one."""
    described = json.loads((other / "witness.json").read_text())["target"]["domain"]
    stolen = json.loads((other / "certificate.json").read_text())
    shutil.copy(other / BLOCKS, folder / BLOCKS)
    forge_record(folder, lambda r: r["target"].update(domain=described))
    keep = ("weights_sha256", "output_bound", "digest")
    forge_certificate(folder, lambda c: c.update({k: v for k, v in stolen.items() if k not in keep}))


def only_the_record(folder, other):
    described = json.loads((other / "witness.json").read_text())["target"]["domain"]
    forge_record(folder, lambda r: r["target"].update(domain=described))


def a_cube_left_out(folder, other):
    """A cube that does meet the domain is dropped: from the count, from the sums, and (its layers) from the network."""
    blocks = load_blocks(folder, json.loads((folder / "certificate.json").read_text())["blocks_sha256"])
    blocks[0][0] *= 0.98
    (folder / BLOCKS).write_bytes(packed(blocks))

    def fewer(certificate):
        certificate["cells"] -= 1
        certificate["float_error"]["cubes"] -= 1
        certificate["blocks_sha256"] = blocks_sha256(blocks)
        certificate["parts"]["grid"] *= 0.98
        certificate["bound"] *= 0.98

    def layers(record):
        for part in (record["plan"]["layers"], record["structure"]["stages"]["value"]):
            key = "value" if "value" in part else "depth"
            part[key] -= 2
        record["plan"]["layers"]["total"] -= 2

    def cut(weights):
        for name in [name for name in weights if name.startswith("stages.value")]:
            weights[name] = weights[name][2:].clone()

    forge_weights(folder, cut, layers)
    forge_certificate(folder, fewer)


def the_domain_taken_out(folder, other):
    both(folder, lambda r: r["target"].pop("domain"))


def another_kind(folder, other):
    both(folder, lambda r: r["target"].update(domain={"kind": "blob"}))


def other_ends(folder, other):
    both(folder, lambda r: r["target"].update(low=[0.25]))


FAULTS = {
    "a smaller domain": (smaller_domain, "domain"),
    "a smaller domain in the record alone": (only_the_record, "target"),
    "a cube left out": (a_cube_left_out, "domain"),
    "no domain any more": (the_domain_taken_out, "cells"),
    "a domain of no kind": (another_kind, "files"),
    "ends that are not those of the domain": (other_ends, "files"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_of_a_domain_are_caught(fault, originals, tmp_path):
    plant, caught_by = FAULTS[fault]
    shutil.copytree(originals / "w", tmp_path / "w")
    plant(tmp_path / "w", originals / "smaller")
    verdict = te.verify(tmp_path / "w", opinions=1)
    assert verdict.holds is False
    assert caught_by in {check.name for check in verdict.evidence if check.passed is False}, verdict.reasons


def test_an_honest_one_holds(originals):
    verdict = te.verify(originals / "w", opinions=1)
    assert verdict.holds, verdict.reasons
    assert "domain" in {check.name for check in verdict.evidence}


@pytest.mark.parametrize("given", ["the record's", "a box"])
def test_nothing_is_summed_over_cubes_that_the_network_has_no_layers_for(given, originals, tmp_path):
    """A few layers may state any number of cubes, and each takes time: the check of the domain ends it."""
    shutil.copytree(originals / "w", tmp_path / "w")
    a_cube_left_out(tmp_path / "w", originals)
    target = None if given == "the record's" else te.targets.builtin("sort", n=2)
    with patch("thereexists.certificates.verify_bound.sums_over_cubes", side_effect=AssertionError("summed")):
        verdict = te.verify(tmp_path / "w", target, opinions=1)
    assert verdict.holds is False
    assert (verdict.evidence[-1].name, verdict.evidence[-1].passed) == ("domain", False), verdict.reasons


CODE = """
import thereexists as te
from pathlib import Path

with Path({mark!r}).open("a") as file:
    file.write("run")
domain = te.domains.Implicit(lambda x: ((x - 0.5) ** 2).sum(axis=1) - 0.09, 0, 1, lipschitz=2.0, whole=True)
twin = te.domains.Implicit(lambda x: ((x - 0.5) ** 2).sum(axis=1) - 0.0901, 0, 1, lipschitz=2.0, whole=True)
"""


def test_the_code_of_a_domain_is_never_taken_from_a_folder(tmp_path):
    """It is given again by whoever verifies; what a record says of its file is text."""
    mark, file = tmp_path / "mark", tmp_path / "my.py"
    file.write_text(CODE.format(mark=str(mark)) + FUNCTION)
    domain = from_file(f"{file}:domain")
    target = function_from_file(f"{file}:f", n=2, lipschitz=1.0, domain=domain)
    witness = te.build(target, delta=1 / 4)
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1).save(tmp_path / "w")
    shutil.copy(file, tmp_path / "w" / "my.py")
    both(
        tmp_path / "w", lambda r: r["target"]["domain"]["origin"].update(reference=f"{tmp_path / 'w' / 'my.py'}:domain")
    )
    ran = len(mark.read_text())
    verdict = te.verify(tmp_path / "w", opinions=1)
    assert verdict.holds is None
    assert "--domain" in verdict.reasons[0]
    with pytest.raises(Obstructed, match="--domain"):
        te.load(tmp_path / "w")([[0.5], [0.5]])
    assert len(mark.read_text()) == ran
    assert te.verify(tmp_path / "w", target, opinions=1).holds
    assert te.load(tmp_path / "w").knowing(target)([[0.5], [0.5]]).shape == (2, 1)
    twin = dataclasses.replace(target, domain=from_file(f"{file}:twin"))  # another set, of the same file
    verdict = te.verify(tmp_path / "w", twin, opinions=1)
    assert verdict.holds is False
    assert any("domain" in reason for reason in verdict.reasons)
    with pytest.raises(InvalidInput, match="built from domain of that file"):
        given_again(domain, f"{file}:twin")
    shutil.copy(file, tmp_path / "moved.py")
    assert given_again(domain, f"{tmp_path / 'moved.py'}:domain").codes
    smaller = dataclasses.replace(domain, h=domain.h, lipschitz=1.0)
    other = dataclasses.replace(target, domain=smaller)
    assert te.verify(tmp_path / "w", other, opinions=1).holds is False
