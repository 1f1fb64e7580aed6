"""``thereexists mixers``: the JSON that the documentation promises, and the table."""

import json
import sys

import pytest
from typer.testing import CliRunner

from thereexists.cli import app
from thereexists.core.errors import InvalidInput
from thereexists.mixers import MIXERS

KEYS = {
    "name",
    "formula",
    "parameters_base",
    "flops_per_token",
    "model_flops_per_token",
    "n",
    "cost",
    "permutation_equivariant",
    "fixed_length",
}


def run(*arguments):
    return CliRunner().invoke(app, ["mixers", *arguments])


def test_one_json_object():
    result = run("--json")
    assert result.exit_code == 0
    payload = json.loads(result.stdout)
    assert [row["name"] for row in payload["mixers"]] == [
        "attention",
        "average",
        "bproj",
        "sepconv",
        "sparse",
        "hybrid",
    ]
    assert all(set(row) == KEYS for row in payload["mixers"])
    assert set(MIXERS) == {row["name"] for row in payload["mixers"]}
    counts = {row["name"]: row["parameters_base"] for row in payload["mixers"]}
    assert counts["attention"] == counts["sparse"] == 109_482_240
    assert counts["sepconv"] < counts["hybrid"] < counts["attention"]


def test_cost_depends_on_the_length():
    short, long = (json.loads(run("--json", "--n", n).stdout)["mixers"] for n in ("128", "512"))
    grows = {a["name"]: b["flops_per_token"] - a["flops_per_token"] for a, b in zip(short, long, strict=True)}
    assert grows["attention"] == 12 * 4 * 384 * 768
    assert grows["bproj"] == 12 * 2 * 384 * 768
    assert grows["sepconv"] == 0
    assert grows["average"] < 0


def test_the_table_names_every_mixer():
    result = run()
    assert result.exit_code == 0
    for name, kind in MIXERS.items():
        assert name in result.stdout
        assert kind.formula.split(",")[0] in result.stdout
    assert "102.5M" in result.stdout


def test_bad_length():
    result = run("--n", "0")
    assert result.exit_code == 2
    assert result.stdout == ""


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "thereexists.mixers", None)
    with pytest.raises(InvalidInput, match=r"pip install 'thereexists\[train\]'"):
        CliRunner().invoke(app, ["mixers"], catch_exceptions=False)
