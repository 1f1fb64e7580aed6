"""A certificate holds the figures of its kind, each compared, and no others."""

import shutil

import numpy as np
import pytest

import thereexists as te
from tests.hostile import forge_certificate


def half_sorted(**states):
    return te.Target(lambda X: 0.5 * np.sort(X, axis=1), n=2, name="half-sorted", **states)


TARGETS = {"rigorous": half_sorted(lipschitz=0.5), "statistical": half_sorted(bound=0.5)}


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folders = {}
    for kind, target in TARGETS.items():
        folders[kind] = tmp_path_factory.mktemp(kind) / "w"
        witness = te.build(target, delta=1 / 2)
        witness.save(folders[kind])
        certificate = te.certify(witness, opinions=1, samples=500)
        assert certificate.kind == kind
        certificate.save(folders[kind])
        assert te.verify(folders[kind], target, opinions=1).holds
    return folders


FALSE = {
    "a part more": ("rigorous", lambda c: c["parts"].update(anything=1e-30)),
    "a part of the other kind": ("rigorous", lambda c: c["parts"].update(sample=1e-30)),
    "samples": ("rigorous", lambda c: c.update(samples=10**9)),
    "a proof of the float run": ("rigorous", lambda c: c["float_error"].update(proved=0)),
    "a float error that says nothing": ("rigorous", lambda c: c["float_error"].update(max=1e300)),
    "more opinions than cubes": ("rigorous", lambda c: c["second_opinion"].update(cubes=10**9)),
    "an opinion more": ("rigorous", lambda c: c["second_opinion"].update(agreed="by all")),
    "opinions of another seed": ("rigorous", lambda c: c["second_opinion"].update(seed=7)),
    "opinions that disagree": ("rigorous", lambda c: c["second_opinion"].update(disagreeing=[1])),
    "cubes undecided that are not": ("rigorous", lambda c: c.update(undecided=1)),
    "an output bound of any size": ("rigorous", lambda c: c.update(output_bound=[1e300])),
    "a bound on f of any size": ("rigorous", lambda c: c.update(target_bound=1e300)),
    "a time": ("rigorous", lambda c: c.update(seconds=0.0)),
    "something about the target": ("rigorous", lambda c: c["target"].update(proved="by us")),
    "a confidence": ("rigorous", lambda c: c.update(confidence=0.999)),
    "parts of zero": ("statistical", lambda c: c.update(parts=dict.fromkeys(("grid", "ramps", "network"), 0.0))),
    "a part": ("statistical", lambda c: c.update(parts={"sample": c["bound"]})),
    "no number of samples": ("statistical", lambda c: c.pop("samples")),
    "undecided": ("statistical", lambda c: c.update(undecided=7)),
    "splits": ("statistical", lambda c: c.update(splits=3)),
    "sums": ("statistical", lambda c: c.update(blocks_sha256="0" * 64)),
    "opinions": ("statistical", lambda c: c["second_opinion"].update(cubes=10**9)),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("fault", FALSE)
def test_a_figure_that_is_false_or_unknown_is_refused(honest, tmp_path, fault):
    kind, change = FALSE[fault]
    shutil.copytree(honest[kind], tmp_path / "w")
    forge_certificate(tmp_path / "w", change)
    assert te.verify(tmp_path / "w", TARGETS[kind], opinions=1).holds is False
