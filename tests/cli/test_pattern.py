"""The command: the JSON that the documentation promises, and one clear sentence for bad input."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from thereexists.cli import app
from thereexists.core.errors import ThereExistsError
from thereexists.patterns import REGISTRY, build

KEYS = {
    "name",
    "n",
    "cycle",
    "connections",
    "sparsity",
    "self_loops",
    "hamiltonian_path",
    "receptive_depth",
    "universal",
    "causal",
    "seconds",
}


def run(*arguments):
    result = CliRunner().invoke(app, ["pattern", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def as_json(*arguments):
    return json.loads(run(*arguments, "--json"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", REGISTRY)
def test_check_prints_one_json_object_with_the_documented_keys(name):
    out = as_json("check", name, "--n", 16)
    assert set(out) >= KEYS
    assert out["connections"] == list(build(name, 16).connections)
    assert out["hamiltonian_path"]["status"] in ("found", "impossible")
    assert run("check", name, "--n", 16)


def test_check_takes_sizes_configurations_and_causality():
    assert as_json("check", "strided", "--n", 1024, "--stride", 32)["receptive_depth"] == 2
    assert as_json("check", "strided", "--n", 64, "--stride", 8, "--config", "union")["cycle"] == 1
    many = as_json("check", "strided", "--n", 64, "--stride", 8, "--config", "multihead", "--heads", 4)
    assert (many["config"], many["universal"]) == ("multihead", True)
    causal = as_json("check", "fixed", "--n", 64, "--causal")
    assert causal["universal"] is False
    assert causal["causal"]["sees_all_earlier_tokens"] is True
    assert causal["causal"]["covered_by_theorem"] is False
    assert as_json("check", "dilated", "--n", 9, "--dilation", 1, "--dilation", 2)["cycle"] == 2
    assert as_json("check", "longformer", "--n", 9, "--window", 1, "--globals", 0)["receptive_depth"] == 8
    assert as_json("check", "block_local", "--n", 9, "--block", 3, "--shifted")["universal"] is True


def test_certificates_reach_the_json():
    out = as_json("check", "block_local", "--n", 9, "--block", 3)
    assert out["universal"] is False
    assert out["receptive_depth"] is None
    assert out["never_connected"] == [0, 8]
    assert out["hamiltonian_path"]["certificate"]["kind"] == "incomparable"


def test_check_reads_masks_and_writes_the_path_and_the_picture(tmp_path):
    np.savez(tmp_path / "mask.npz", mask=build("star", 12).mask())
    path, picture = tmp_path / "path.npy", tmp_path / "p.png"
    out = as_json("check", tmp_path / "mask.npz", "--path-out", path, "--picture", picture)
    assert out["universal"] is True
    assert np.load(path).tolist() == out["hamiltonian_path"]["path"]
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert sorted(f.name for f in tmp_path.iterdir()) == ["mask.npz", "p.png", "path.npy"]


def test_check_reads_configs(tmp_path):
    config = {"model_type": "mistral", "num_hidden_layers": 4, "sliding_window": 3, "max_position_embeddings": 50}
    (tmp_path / "config.json").write_text(json.dumps(config))
    out = as_json("check", tmp_path / "config.json")
    assert (out["n"], out["layers"], out["full_within_layers"]) == (50, 4, False)
    assert "4 layers" in run("check", tmp_path / "config.json", "--n", 8)


def test_compare_lists_every_pattern():
    out = as_json("compare", "--n", 64)
    assert [p["name"] for p in out["patterns"]] == list(REGISTRY)
    assert as_json("compare", "--n", 12)["refused"].keys() == {"butterfly"}
    assert "left out butterfly" in run("compare", "--n", 12)


def test_list_and_draw(tmp_path):
    assert {p["name"] for p in as_json("list")["patterns"]} == set(REGISTRY)
    assert "strided" in run("list")
    assert as_json("draw", "window", "--n", 4, "--set", "window=1")["picture"].splitlines()[1] == "██▄"
    run("draw", "strided", "--n", 300, "--out", tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "strided"), "needs a number of tokens"),
        (("check", "nonsense", "--n", 4), "neither a pattern"),
        (("check", "strided", "--n", 0), "whole number from 1"),
        (("check", "strided", "--n", 8, "--block", 2), "no parameter 'block'"),
        (("check", "butterfly", "--n", 12), "power of two"),
        (
            (
                "check",
                "no.npz",
            ),
            "no file",
        ),
        (
            (
                "check",
                "no.json",
            ),
            "no file",
        ),
        (("check", "no.npz", "--n", 4), "has its own sizes"),
        (("check", "no.json", "--block", 4), "has its own 'block'"),
        (("check", "block_local", "--n", 9, "--block", 3, "--path-out", "p.npy"), "no path"),
        (("check", "window", "--n", 9, "--path-out", "p.txt"), "must end in .npy"),
        (("draw", "window", "--n", 100), "n ≤ 64"),
        (("draw", "window", "--n", 100, "--out", "p.bmp"), ".png or .svg"),
        (("draw", "window", "--n", 8, "--set", "window"), "name=value"),
    ],
)
def test_bad_input_raises_one_clear_sentence(arguments, message):
    with pytest.raises(ThereExistsError, match=message):
        run(*arguments)


def test_bad_input_exits_with_2_and_no_stack_trace(fresh):
    done = fresh("-m", "thereexists", "pattern", "check", "axial", "--n", 10, "--columns", 4, warm=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Error: axial needs n")
