"""The commands ``attention explain`` and ``attention bench``."""

import json

import pytest
from typer.testing import CliRunner

from thereexists.cli import app
from thereexists.core.errors import InvalidInput

runner = CliRunner()


def run(*words):
    return runner.invoke(app, ["attention", *words])


def test_explain_prints_the_plan():
    done = run("explain", "strided", "--n", "4096", "--device", "cuda")
    assert done.exit_code == 0
    assert "residue classes mod 64" in done.stdout
    done = run("explain", "strided", "--n", "4096", "--config", "sequential", "--json")
    assert [p["n"] for p in json.loads(done.stdout)["ways"]] == [4096, 4096]
    done = run("explain", "strided", "--n", "4096", "--config", "multihead", "--heads", "6", "--json")
    (way,) = json.loads(done.stdout)["ways"]
    assert [h["heads"] for h in way["heads"]] == [[0, 3], [3, 6]]


GEMMA = {"model_type": "gemma3_text", "num_hidden_layers": 8, "sliding_window": 64, "max_position_embeddings": 256}


def test_explain_uses_the_layers_of_a_model(tmp_path):
    """Five layers slide, the sixth sees everything: not their union, which is dense."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps(GEMMA))
    done = run("explain", str(file), "--json")
    assert done.exit_code == 0, done.exception
    ways = json.loads(done.stdout)["ways"]
    assert [way["layers"] for way in ways] == [[0, 1, 2, 3, 4, 6, 7], [5]]
    connections = [way["heads"][0]["connections"] for way in ways]
    assert connections == [sum(min(k + 1, 64) for k in range(256)), 256 * 257 // 2]
    shown = run("explain", str(file)).stdout
    assert "gemma3_text, layers 0–4, 6–7, n = 256" in shown
    assert "gemma3_text, layer 5, n = 256" in shown
    (whole,) = json.loads(run("explain", str(file), "--config", "union", "--json").stdout)["ways"]
    assert whole["heads"][0]["connections"] == 256 * 257 // 2


def test_bench_measures_all_contenders():
    done = run(
        "bench", "--n", "256", "--patterns", "stride,fixed, summary,axial", "--no-flex", "--json", "--repetitions", "1"
    )
    assert done.exit_code == 0, done.exception
    report = json.loads(done.stdout)
    assert [row["pattern"] for row in report["rows"]] == ["stride", "fixed, summary", "axial"]
    for row in report["rows"]:
        assert row["ours_ms"] > 0
        assert row["dense_ms"] > 0
        assert row["times_faster_than_dense"] == pytest.approx(row["dense_ms"] / row["ours_ms"])
    done = run("bench", "--n", "256", "--patterns", "window", "--causal", "--backward", "--repetitions", "1")
    assert done.exit_code == 0
    assert "FlexAttention has no backward on the CPU" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("explain", "nonsense", "--n", "8"), "neither a pattern"),
        (("explain", "window"), "needs a number of tokens"),
        (("bench", "--patterns", "nonsense"), "no pattern 'nonsense'"),
        (("bench", "--dtype", "int8"), "'dtype' must be"),
    ],
)
def test_bad_input_is_one_sentence(words, message):
    done = run(*words)
    assert isinstance(done.exception, InvalidInput)
    assert message in str(done.exception)
    assert done.stdout == ""
