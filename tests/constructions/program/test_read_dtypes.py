"""The dtypes of a program that was read from a file are proved before anything runs in them."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import thereexists as te
from tests.hostile import forge_certificate, forge_weights
from thereexists import program as P
from thereexists.cli import app

LOW = ("bfloat16", "float16")


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """Safe in float64 and float32 for epsilon; in bfloat16 the inputs alone are off by 2."""
    folder = tmp_path_factory.mktemp("program") / "w"
    witness = te.build(P.sort(P.tokens(n=2, low=0, high=1000.0)), epsilon=1e-2)
    assert not set(LOW) & set(witness.network.safe)
    witness.save(folder)
    return folder


@pytest.fixture
def forged(honest, tmp_path):
    """Says that it is safe in every dtype, with bounds that are too good."""
    te.load(honest).save(tmp_path / "w")

    def claim(certificate):
        certificate["bounds"] |= {name: {"rounding": 0.0, "bound": 1e-3} for name in LOW}
        certificate["reasons"] = {}

    forge_weights(tmp_path / "w", record=lambda r: r["structure"].update(safe=["float64", "float32", *LOW]))
    forge_certificate(tmp_path / "w", claim)
    return tmp_path / "w"


@pytest.mark.parametrize("dtype", LOW)
def test_a_false_dtype_is_refused_by_load_to_and_export(forged, dtype, tmp_path):
    with pytest.raises(te.ThereExistsError, match=f"not proved safe in {dtype}"):
        te.load(forged, dtype=dtype)
    with pytest.raises(te.ThereExistsError, match=f"not proved safe in {dtype}"):
        te.load(forged).to(dtype)
    with pytest.raises(te.ThereExistsError, match=f"not proved safe in {dtype}"):
        te.export(te.load(forged), "torch", tmp_path / "out", dtype=dtype)
    assert not (tmp_path / "out").exists()
    assert te.load(forged).verdicts()[dtype].holds is None


def test_a_bound_below_its_own_rounding_is_refused(forged):
    forge_certificate(forged, lambda c: c["bounds"].update(bfloat16={"rounding": 1e6, "bound": 1e-3}))
    with pytest.raises(te.ThereExistsError, match="not proved safe in bfloat16"):
        te.load(forged, dtype="bfloat16")


def test_an_export_is_not_compared_with_a_forged_allowance(forged, tmp_path):
    forge_certificate(forged, lambda c: c["bounds"]["float64"].update(rounding=0.0))
    with pytest.raises(te.ThereExistsError, match="not proved safe in float64"):
        te.export(te.load(forged), "torch", tmp_path / "out", dtype="float64")


def test_show_gives_the_dtypes_as_their_authors_word(forged):
    shown = json.loads(CliRunner().invoke(app, ["show", str(forged), "--json"]).stdout)
    assert {"safe", "bound", "bounds", "bound_dtype"} <= set(shown["as_its_author_says"])


def test_an_honest_dtype_is_proved(honest):
    X = 83.0 * np.arange(12)[::-1].reshape(6, 2, 1)
    witness = te.load(honest, dtype="float32")
    assert np.abs(witness(X) - np.sort(X, axis=1)).max() <= witness.certificate.bounds["float32"]["bound"]
    assert te.load(honest).verdicts()["float32"].holds
    assert witness.safe() == ("float32",)
