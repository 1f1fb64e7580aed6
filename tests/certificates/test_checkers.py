"""Every checker catches a planted fault. Here: ``verify``, against forgeries that all digests have been redone for."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

import thereexists as te
from tests.hostile import certified, forge_certificate, forge_record, forge_weights, weight
from thereexists.certificates import certificate as certificates
from thereexists.certificates.block_sums import blocks_sha256, load_blocks, packed
from thereexists.functions.targets import builtin
from thereexists.witness.verbs import certify as certify_function


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    for name in ("sort", "reverse", "distance-to-mean"):
        witness = te.build(builtin(name, n=2), delta=1 / 4)
        witness.save(folder / name)
        certify_function(witness, opinions=2).save(folder / name)
    return folder


@pytest.fixture
def copy(originals, tmp_path):
    return lambda name="sort": shutil.copytree(originals / name, tmp_path / name)


def recorded(part, **fields):
    def forge(folder):
        forge_record(folder, lambda r: r[part].update(**fields))

    return forge


def both_targets(**fields):
    def forge(folder):
        forge_record(folder, lambda r: r["target"].update(**fields))
        forge_certificate(folder, lambda r: r["target"].update(**fields))

    return forge


def swap_certificate(folder):
    (folder / certificates.FILE).write_bytes((folder.parent / "reverse" / certificates.FILE).read_bytes())


def drop_stage(folder):
    forge_record(folder, lambda r: r["structure"]["stages"].pop("context"))


def nearer_in_the_sums(folder):
    """The largest error of every core halved where it is stored, block by block, and in what follows from it."""
    record = json.loads((folder / certificates.FILE).read_text())
    blocks = np.array(load_blocks(folder, record["blocks_sha256"]))
    blocks[:, 6:] /= 2
    (folder / certificates.BLOCKS).write_bytes(packed(blocks.tolist()))
    most = {name: record["uniform"][name] / 2 for name in ("most", "most_distinct")}
    sha = blocks_sha256(blocks.tolist())
    forge_certificate(folder, lambda r: r.update(blocks_sha256=sha, uniform=r["uniform"] | most))


FAULTS = {
    # weights, every hash redone
    "a quantiser threshold moved": (weight("quantise.feed_forward.b_1", (2, 0), 0.03), "bound"),
    "a quantiser slope changed": (weight("quantise.feed_forward.W_2", (1, 0, 0), 0.5), "bound"),
    "a selective shift too weak": (weight("context.attention.W_O", (1, 0, 0, 0), -1.0), "bound"),
    "a shift threshold moved": (weight("context.attention.b_Q", (1, 0, 0), -10_000.0), "bound"),
    "a temperature too low": (weight("context.attention.W_Q", (3, 0, 0, 0), -32700.0), "bound"),
    "the global shift changed": (weight("context.attention.W_O", (-1, 0, 0, 0), 2.0), "bound"),
    "one value wrong": (weight("value.feed_forward.W_2", (5, 0, 0), 0.5), "bound"),
    "one value threshold moved": (weight("value.feed_forward.b_1", (7, 0), 5.0), "bound"),
    "the clamp opened": (weight("value.feed_forward.b_1", (-1, 3), -9.0), "output bound"),
    "the clamp removed": (weight("value.feed_forward.W_2", (-1, 0, 3), 1.0), "output bound"),
    "a positional encoding moved": (lambda f: forge_weights(f, lambda w: w["E"][1].add_(0.1)), "bound"),
    # weights, hashes not redone
    "weights changed, record redone only": (
        lambda f: (
            forge_weights(f, lambda w: w["stages.value.feed_forward.W_2"].mul_(1.5)),
            forge_certificate(f, lambda r: r.update(weights_sha256="0" * 64)),
        ),
        "weights",
    ),
    "a truncated file": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-9]),
        "files",
    ),
    # the certificate
    "a bound too small": (certified(bound=0.01), "bound"),
    "a bound too large": (certified(bound=7.0), "bound"),
    "a part too small": (
        lambda f: forge_certificate(f, lambda r: r["parts"].update(grid=r["parts"]["grid"] / 2)),
        "parts",
    ),
    "ramps left out": (lambda f: forge_certificate(f, lambda r: r["parts"].update(ramps=0.0)), "parts"),
    "single inputs too near": (
        lambda f: forge_certificate(f, lambda r: r["uniform"].update(most=0.01, most_distinct=0.01)),
        "single inputs",
    ),
    "too few inputs left out": (
        lambda f: forge_certificate(f, lambda r: r["uniform"].update(share=0.0)),
        "single inputs",
    ),
    "single inputs too near, in the sums too": (nearer_in_the_sums, "blocks"),
    "a wrong number of cells": (certified(cells=15), "cells"),
    "another p": (certified(p=2.0), "bound"),
    "an output bound too small": (certified(output_bound=[0.5]), "output bound"),
    "assumptions hidden": (certified(assumptions=[]), "assumptions"),
    "statistics sold as proof": (certified(kind="rigorous", confidence=0.9), "files"),
    "an unknown kind": (certified(kind="oracular"), "files"),
    "endless work asked for": (certified(splits=10**6), "splits"),
    "p below one": (certified(p=0.5), "target"),
    "p infinite": (certified(p=float("inf")), "files"),
    "p too large": (certified(p=1e6), "target"),
    "a target bound too small": (certified(target_bound=1e-9), "target bound"),
    "weights beyond the arithmetic": (
        lambda f: forge_weights(f, lambda w: w["stages.value.feed_forward.W_1"][-1, 2:].mul_(1e301)),
        "target",
    ),
    "cells outside the domain": (
        lambda f: (
            forge_record(f, lambda r: r["grid"].update(step=[0.5])),
            forge_certificate(f, lambda r: r["grid"].update(step=[0.5])),
        ),
        "grid",
    ),
    "sides that do not fit": (lambda f: forge_record(f, lambda r: r["grid"].update(step=[0.25, 0.25])), "files"),
    "weights in float32": (
        lambda f: forge_weights(f, lambda w: w.update({k: v.float() for k, v in w.items()})),
        "files",
    ),
    "a float error too small": (
        lambda f: forge_certificate(f, lambda r: r["float_error"].update(max=-1.0)),
        "float run",
    ),
    "a lower dtype claimed": (
        lambda f: forge_certificate(f, lambda r: r["float_error"].update(dtype="float32")),
        "float run",
    ),
    "the certificate of another witness": (swap_certificate, "weights"),
    "a certificate edited by hand": (
        lambda f: (f / certificates.FILE).write_text(
            (f / certificates.FILE).read_text().replace('"p": 1.0', '"p": 3.0')
        ),
        "files",
    ),
    # the record
    "another class claimed": (
        lambda f: forge_record(f, lambda r: r["class"].update(r=2)),
        "class",
    ),
    "layers miscounted": (lambda f: forge_record(f, lambda r: r["plan"]["layers"].update(value=1)), "layers"),
    "a stage left out": (drop_stage, "files"),
    "a smaller domain in the record": (recorded("target", high=[0.5]), "grid"),
    "another domain everywhere": (both_targets(high=[2.0]), "grid"),
    "another function": (both_targets(name="reverse", origin={"kind": "builtin", "reference": "reverse"}), "bound"),
    "a wrong modulus": (both_targets(lipschitz=0.1), "target"),
    "a falsely claimed symmetry": (both_targets(equivariant=True), "symmetry"),
    "a grid that does not cover the domain": (
        lambda f: (
            forge_record(f, lambda r: r["grid"].update(step=[0.2])),
            forge_certificate(f, lambda r: r["grid"].update(step=[0.2])),
        ),
        "grid",
    ),
}


def test_there_are_at_least_twenty_faults_and_none_in_the_originals(originals):
    assert len(FAULTS) >= 20
    for folder in originals.iterdir():
        assert te.verify(folder).holds


@pytest.mark.sampled(12)
@pytest.mark.parametrize("fault", FAULTS)
def test_verify_catches_and_names(copy, fault):
    folder = copy("sort")
    copy("reverse")
    forge, named = FAULTS[fault]
    forge(folder)
    verdict = te.verify(folder, opinions=1)
    assert verdict.holds is False
    failing = [check.name for check in verdict.evidence if not check.passed]
    assert named in failing, verdict.reasons


def test_a_symmetry_broken_by_the_function_is_caught(tmp_path):
    target = te.Target(lambda X: X / 2, n=2, equivariant=True, lipschitz=0.5, name="half")
    witness = te.build(target, delta=1 / 4)
    witness.save(tmp_path / "w")
    te.certify(witness).save(tmp_path / "w")
    assert te.verify(tmp_path / "w", target).holds
    liar = dataclasses.replace(target, f=lambda X: X * np.array([[0.5], [0.25]]))
    verdict = te.verify(tmp_path / "w", liar)
    assert any(reason.startswith("symmetry: half is not permutation equivariant") for reason in verdict.reasons)


def test_a_modulus_refuted_by_the_function_is_caught(tmp_path):
    target = te.Target(lambda X: np.sin(9 * X), n=2, lipschitz=9.0, name="wave")
    witness = te.build(target, delta=1 / 4)
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1).save(tmp_path / "w")
    both_targets(lipschitz=1.0)(tmp_path / "w")
    verdict = te.verify(tmp_path / "w", dataclasses.replace(target, lipschitz=1.0))
    with pytest.raises(te.ThereExistsError, match="not what it claims to be"):
        te.certify(witness, target=dataclasses.replace(target, lipschitz=1.0))
    assert any(reason.startswith("modulus: f changes by") for reason in verdict.reasons)


def test_own_code_must_be_given_again(tmp_path):
    witness = te.build(te.Target(lambda X: X / 2, n=2, lipschitz=0.5), delta=1 / 4)
    witness.save(tmp_path / "w")
    te.certify(witness).save(tmp_path / "w")
    assert any("not stored in a witness" in reason for reason in te.verify(tmp_path / "w").reasons)


def test_statistical_certificates_are_rechecked_too(tmp_path):
    target = te.Target(lambda X: np.round(X), n=2, bound=1.0)
    witness = te.build(target, delta=1 / 4)
    witness.save(tmp_path / "w")
    te.certify(witness, samples=500).save(tmp_path / "w")
    assert te.verify(tmp_path / "w", target).holds
    forge_certificate(tmp_path / "w", lambda r: r.update(bound=r["bound"] / 2))
    assert any(reason.startswith("bound") for reason in te.verify(tmp_path / "w", target).reasons)


def test_the_verifier_never_loads_the_builder(fresh):
    code = "import sys, thereexists.certificates; sys.exit(any('constructions' in m for m in sys.modules))"
    assert fresh("-c", code, warm=True).returncode == 0
