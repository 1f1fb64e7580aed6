"""From a program to a saved, verified, exported witness, and what is refused on the way."""

import importlib
import json
import re

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

import thereexists as te
from tests.hostile import forge_record, forge_weights
from thereexists import program as P
from thereexists.cli import app
from thereexists.core.errors import BadWitnessFile

PROGRAM = """
import numpy as np
from thereexists import program as P

x = P.tokens(n=5)
smooth = 0.5 * x + 0.5 * P.mean(x) + P.apply(np.sin, x, epsilon=1e-2, curvature=1.0)
number = 3
"""


def smooth(n=5):
    x = P.tokens(n)
    return 0.5 * x + 0.5 * P.mean(x) + P.apply(np.sin, x, epsilon=1e-2, curvature=1.0)


def command(*arguments):
    found = CliRunner().invoke(app, list(arguments))
    if isinstance(found.exception, te.ThereExistsError):
        return 2, str(found.exception)  # what main() prints, with that exit code
    return found.exit_code, found.stdout


def test_sort_of_64_reals_is_certified_in_every_dtype():
    witness = te.build(P.sort(P.tokens(64)), dtype=torch.float32)
    bounds = witness.certificate.bounds
    assert witness.network.depth == 21
    assert witness.certificate.bound == bounds["float32"]["bound"] <= 2.0**-23
    assert bounds["bfloat16"]["bound"] <= 2.0**-7
    X = np.random.default_rng(0).random((8, 64, 1), dtype=np.float32).astype(np.float64)
    off = np.abs(witness.to("float32")(X) - np.sort(X, axis=1)).max()
    assert off <= bounds["float32"]["bound"]


@pytest.mark.slow
def test_sort_of_1024_reals_is_certified_and_verified(tmp_path):
    witness = te.build(P.sort(P.tokens(1024)), dtype="float32")
    assert witness.network.depth == 55
    assert witness.certificate.bound <= 2.0**-23
    assert "build with dtype='bfloat16'" in witness.certificate.reasons["bfloat16"]
    witness.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds


def test_epsilon_makes_splines_finer():
    witness = te.build(smooth(), epsilon=1e-4)
    assert witness.certificate.bound <= 1e-4
    X = np.random.default_rng(0).random((64, 5, 1))
    wanted = 0.5 * X + 0.5 * X.mean(axis=1, keepdims=True) + np.sin(X)
    assert np.abs(witness(X) - wanted).max() <= witness.certificate.bound
    assert set(witness.network.safe) == set(witness.certificate.bounds)


def test_what_cannot_be_certified_is_blamed_on_an_operation():
    with pytest.raises(
        te.ThereExistsError, match=r"bound in bfloat16 is .* more than epsilon = 0.0001.*rounding grows"
    ):
        te.build(smooth(), epsilon=1e-4, dtype="bfloat16")
    x = P.tokens(4)
    with pytest.raises(te.ThereExistsError, match="knots"):
        te.build(P.apply(np.sin, x, epsilon=1e-2, curvature=1.0), epsilon=1e-13)
    witness = te.build(smooth(), epsilon=1e-3)
    with pytest.raises(te.ThereExistsError, match="not certified in bfloat16: its bound"):
        witness.to("bfloat16")
    with pytest.raises(te.ThereExistsError, match="'epsilon' must be a positive number"):
        te.build(smooth(), epsilon=-1.0)
    with pytest.raises(te.ThereExistsError, match="'delta' is not an option of Compiling"):
        te.build(smooth(), delta=1 / 8)
    with pytest.raises(te.ThereExistsError, match="'dtype' is not an option of Faithful"):
        te.build(te.targets.builtin("sort", n=2), delta=1 / 2, dtype="float32")


def test_a_function_of_the_users_own_is_an_assumption():
    def f(x):
        return x**3 / 6

    witness = te.build(P.apply(f, P.tokens(2), epsilon=1e-2, curvature=1.0))
    assert any("as its author states" in text for text in witness.certificate.assumptions)
    assert not any("as its author states" in text for text in te.build(smooth()).certificate.assumptions)


def test_save_load_verify(tmp_path):
    witness = te.build(smooth(), epsilon=1e-2)
    witness.save(tmp_path / "w")
    loaded = te.load(tmp_path / "w")
    X = np.random.default_rng(0).random((4, 5, 1))
    assert np.array_equal(loaded(X), witness(X))
    assert np.array_equal(loaded(X[0]), witness(X)[0])
    assert loaded.certificate == witness.certificate
    assert te.verify(tmp_path / "w").holds
    assert te.load(tmp_path / "w", "float32").network.dtype == torch.float32
    te.certify(loaded).save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds
    assert "mean" in loaded.listing()


@pytest.mark.parametrize("to", ["torch", "hf"])
def test_exports_keep_their_bound(to, tmp_path):
    pytest.importorskip("transformers")
    witness = te.build(P.flip(smooth()))
    done = te.export(witness, to, tmp_path / "e", "float32")
    assert done["of"] == "random inputs"
    assert done["compared"] >= 256
    with pytest.raises(te.ThereExistsError, match="not certified"):
        te.export(te.build(smooth(), epsilon=1e-3), to, tmp_path / "b", "bfloat16")


def test_onnx_keeps_its_bound(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    witness = te.build(P.flip(smooth()))
    te.export(witness, "onnx", tmp_path / "e", "float32")
    session = onnxruntime.InferenceSession(str(tmp_path / "e" / "model.onnx"), providers=["CPUExecutionProvider"])
    X = np.random.default_rng(0).random((1000, 5, 1), dtype=np.float32)
    (found,) = session.run(None, {"features": X})
    wanted = witness.interpret(X.astype(np.float64))
    assert np.abs(found - wanted).max() <= witness.certificate.bounds["float32"]["bound"]


def test_an_export_with_another_query_is_refused(tmp_path, monkeypatch):
    honest = importlib.import_module("thereexists.exports.stock").stock_state

    def forged(network):
        state = honest(network)
        state["blocks.0.query.weight"] *= -1
        return state

    monkeypatch.setattr(importlib.import_module("thereexists.exports.torch_format"), "stock_state", forged)
    with pytest.raises(te.ThereExistsError, match="does not agree"):
        te.export(te.build(P.flip(P.tokens(5))), "torch", tmp_path / "e", "float32")
    assert not (tmp_path / "e").exists()


def test_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text(PROGRAM)
    planned = json.loads(command("plan", "prog.py:smooth", "--json")[1])
    built = json.loads(command("build", "prog.py:smooth", "--epsilon", "1e-2", "--out", "w", "--json")[1])
    assert planned["blocks"] == built["blocks"] == 1
    assert built["bound"] <= 1e-2
    shown = command("show", "w")[1]
    assert "mean → row" in shown
    assert "attention" in shown
    ran = json.loads(command("run", "w", "--input", "0 0.25 0.5 0.75 1", "--json")[1])
    X = np.linspace(0, 1, 5)
    assert np.abs(np.ravel(ran["output"]) - (0.5 * X + 0.25 + np.sin(X))).max() <= ran["bound"]
    code, verified = command("verify", "w", "--json")
    assert code == 0
    assert json.loads(verified)["holds"]
    traced = json.loads(command("trace", "w", "--input", "0 0.25 0.5 0.75 1", "--json")[1])
    means = next(step for step in traced["steps"] if step["operation"] == "mean")
    assert means["values"] == [0.5] * 5
    assert json.loads(command("report", "w", "--out", "r.html", "--json")[1])["kind"] == "program"
    assert command("export", "w", "--to", "torch")[0] == 0
    for bad, sentence in [
        (("build", "prog.py:number"), "is a int"),
        (("build", "prog.py:nothing"), "has no program"),
        (("build", "nofile.py:smooth"), "There is no file"),
        (("build", "prog.py:smooth", "--delta", "1/8"), "other options are for functions"),
        (("build", "prog.py:smooth", "--no-certify"), "always certified"),
        (("plan", "prog.py:smooth", "--epsilon", "1e-4", "--dtype", "bfloat16"), "rounding grows most in"),
        (("run", "w", "--input", "0 0 0 0 2"), "between 0.0 and 1.0"),
        (("run", "w", "--input", "0 0 0 0 0", "--dtype", "bfloat16"), "not certified in bfloat16"),
        (("verify", "w", "--function", "prog.py:smooth"), "something else"),
    ]:
        code, text = command(*bad)
        assert code == 2, bad
        assert sentence in text
    assert not (tmp_path / "number-witness").exists()


def test_what_rounds_most_is_no_share_of_the_bound():
    """The output reads a quarter of what the spline rounds: its row is off by more than the whole bound."""
    x = P.tokens(n=4)
    smooth = 0.5 * x + 0.25 * P.mean(x) + 0.25 * P.apply(np.sin, x, epsilon=1e-3)
    with pytest.raises(te.ThereExistsError) as refused:
        te.plan(smooth, epsilon=1e-9, dtype="float16")
    bound, grown = re.findall(r"is ([\d.]+), more.* by ([\d.]+) in a row itself", str(refused.value))[0]
    assert float(grown) > float(bound)
    assert "contributes" not in str(refused.value)


def test_a_shorter_sequence_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text("from thereexists import program as P\ns = P.sort(P.tokens(4, shorter=True))\n")
    assert command("build", "prog.py:s", "--out", "w")[0] == 0
    ran = json.loads(command("run", "w", "--input", "0.75 0.25 0.5", "--json")[1])
    assert np.ravel(ran["output"]).tolist() == [0.25, 0.5, 0.75]
    assert te.verify("w").holds
    assert te.export(te.load("w"), "torch", tmp_path / "e", "float32")["compared"] >= 256


@pytest.mark.parametrize(("low", "high"), [(1e-6, 2e-6), (-1e-4, 1e6), (0.1, 0.3)])
def test_ends_of_the_range_that_are_no_short_numbers(low, high):
    """Units that stay open at the very end of the range: the bias is a float64, so the verifier sees no bend there."""
    x = P.tokens(5, low=low, high=high)
    assert te.build(P.prefix_mean(x), dtypes=("float64",)).certificate.parts["approximation"] == 0.0
    assert te.build(P.scale(P.minimum(x, low / 2 + high / 2), np.arange(1.0, 6.0)), dtypes=("float64",)).certificate


def test_a_crafted_program_is_not_loaded_and_says_why(tmp_path):
    te.build(P.roll(P.tokens(3), 1)).save(tmp_path / "w")

    def beyond(record):
        (take,) = (node for node in record["program"]["nodes"] if node["operation"] == "take")
        take["settings"]["source"] = [0, 1, 99]

    forge_record(tmp_path / "w", beyond)
    with pytest.raises(BadWitnessFile, match="its arrays do not have n rows"):
        te.load(tmp_path / "w")


def test_a_mask_on_some_blocks_only_is_not_exported_as_a_mask_on_all(tmp_path):
    """Proved block by block, and stock networks have one mask for all: the export would be another function."""
    x = P.tokens(3)
    te.build(P.interp(x[0] + x, [0, 0.7, 0.8, 2], [0, 0, 1, 0])[::-1] + x * 0.0).save(tmp_path / "w")
    stages = json.loads((tmp_path / "w/witness.json").read_text())["structure"]["stages"]
    with_heads = [name for name in load_file(tmp_path / "w/model.safetensors") if name.endswith("attention.W_Q")]
    assert len(with_heads) >= 2
    masked = with_heads[0].split(".")[1]
    assert masked in stages

    def mask(weights):
        weights[f"stages.{masked}.attention.pattern"] = torch.ones(3, 3, dtype=torch.bool).tril()[None]

    forge_weights(tmp_path / "w", mask, lambda record: record["structure"]["stages"][masked].update(pattern=True))
    with pytest.raises(te.ThereExistsError, match="in all blocks with heads, or in none"):
        te.export(te.load(tmp_path / "w"), "torch", tmp_path / "e", "float64")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_an_export_is_compared_at_numbers_of_its_dtype(dtype):
    """Else one run may round an input once and the other twice, to another number, and no bound holds both together."""
    witness = te.build(P.tokens(3, low=-3.0, high=1 / 3) * 2.0, dtype=dtype)
    for inputs, _ in witness.to(dtype).samples().parts:
        X = torch.from_numpy(inputs)
        assert torch.equal(X.to(witness.to(dtype).network.dtype).double(), X.double())
