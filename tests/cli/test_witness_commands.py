"""The command, used as a newcomer would: good input, bad input, files."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.cli.in_process import ran
from tests.command import thereexists
from thereexists._version import __version__


def test_the_installed_command_runs():
    done = subprocess.run(
        [sys.executable, "-m", "thereexists", "--version"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == __version__


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    thereexists("build", "sort", "--n", 3, "--delta", "1/4", "--out", "w", cwd=folder)
    (folder / "my.py").write_text("def f(X):\n    return X[:, ::-1]\n")
    (folder / "bad.py").write_text("def f(X):\n    raise RuntimeError('no')\n")
    np.save(folder / "batch.npy", np.array([[[0.9], [0.1], [0.6]], [[0.1], [0.1], [0.1]]]))
    (folder / "batch.csv").write_text("0.9, 0.1, 0.6\n0.1 0.1 0.1\n")
    (folder / "ragged.csv").write_text("0.9, 0.1, 0.6\n0.1 0.1\n")
    (folder / "empty.csv").write_text("\n")
    return folder


def test_a_modified_network_is_told_as_what_it_is(folder):
    built = thereexists("build", "sort", "--n", 2, "--delta", "1/4", "--modified", "--out", "modified", cwd=folder)
    shown = thereexists("show", "modified", cwd=folder)
    for told in (built.stdout, shown.stdout):
        assert "class T_P^{2,1,1}, 572 parameters" in told


def test_build_json_has_what_is_promised(folder):
    done = thereexists("build", "my.py:f", "--n", 2, "--d", 2, "--epsilon", 0.9, "--lipschitz", 1,
                       "--out", "own", "--json", cwd=folder)  # fmt: skip
    summary = json.loads(done.stdout)
    assert {"witness", "target", "n", "d", "delta", "theorem", "layers", "parameters", "id_bits", "distance"} <= set(
        summary
    )
    assert set(summary["layers"]) == {"quantise", "context", "value", "total"}
    assert set(summary["distance"]) >= {"p", "estimate", "low", "high", "samples", "confidence"}
    assert summary["theorem"] == 2
    assert summary["distance"]["high"] <= 0.9
    plan = json.loads(
        thereexists("plan", "my.py:f", "--n", 2, "--d", 2, "--delta", summary["delta"], "--json", cwd=folder).stdout
    )
    assert plan["layers"] == summary["layers"]


def test_a_witness_that_cannot_be_certified_says_why(folder):
    done = thereexists("build", "sort", "--n", 2, "--delta", "1/2", "--p", 99, "--out", "p99", "--json", cwd=folder)
    summary = json.loads(done.stdout)
    assert summary["certificate"] is None
    assert "'p' must be a number from 1 to 64" in summary["not_certified"]


@pytest.mark.parametrize("source", ["0.9 0.1 0.6", "0.9, 0.1, 0.6", "0.9; 0.1; 0.6"])
def test_run_on_numbers(folder, source):
    done = thereexists("run", "w", "--input", source, "--json", cwd=folder)
    assert json.loads(done.stdout)["output"] == [[[0.125], [0.625], [0.875]]]


@pytest.mark.parametrize("engine", ["auto", "reference", "fused", "skip"])
def test_run_by_any_engine_says_which(folder, engine):
    summary = json.loads(
        thereexists("run", "w", "--input", "0.9 0.1 0.6", "--engine", engine, "--json", cwd=folder).stdout
    )
    assert summary["output"] == [[[0.125], [0.625], [0.875]]]
    assert summary["engine"]["asked"] == engine
    assert summary["engine"]["used"] == ("skip" if engine == "auto" else engine)


@pytest.mark.parametrize("source", ["batch.npy", "batch.csv"])
def test_run_on_files(folder, source):
    done = thereexists("run", "w", "--input", source, "--out", "y.npy", "--force", "--json", cwd=folder)
    output = json.loads(done.stdout)["output"]
    assert np.array_equal(np.load(folder / "y.npy"), np.array(output))
    assert np.shape(output) == (2, 3, 1)


def test_show_trace_targets_and_plan_speak_to_people_and_to_programs(folder):
    for command in (
        ("show", "w"),
        ("trace", "w", "--input", "0.9 0.1 0.6"),
        ("targets",),
        ("plan", "sort", "--n", 3, "--delta", "1/8"),
    ):
        assert thereexists(*command, cwd=folder).stdout.strip()
        assert isinstance(json.loads(thereexists(*command, "--json", cwd=folder).stdout), dict)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("build", "nonsense", "--n", 2, "--delta", "1/4"), "no built-in target"),
        (("build", "sort", "--n", 0, "--delta", "1/4"), "'n' of a target"),
        (("build", "sort", "--n", 2, "--delta", "0.3"), "'delta' must divide 1"),
        (("build", "sort", "--n", 2), "either 'delta'"),
        (("build", "sort", "--n", 9, "--delta", "1/8"), "bits"),
        (("build", "sort", "--n", 3, "--delta", "1/4", "--equivariant"), "not permutation equivariant"),
        (("build", "bad.py:f", "--n", 2, "--delta", "1/4"), "RuntimeError: no"),
        (("build", "absent.py:f", "--n", 2, "--delta", "1/4"), "There is no file"),
        (("build", "my.py:f", "--n", 2, "--epsilon", 0.1), "--lipschitz"),
        (("build", "sort", "--n", 2, "--delta", "1/4", "--out", "my.py"), "left alone"),
        (("run", "w", "--input", "0.1 0.2 0.3", "--engine", "warp"), "'engine' must be auto or one of"),
        (("run", "w", "--input", "0.1 0.2"), "3 tokens of 1 numbers, 3 in all; got 2"),
        (("run", "w", "--input", "0.1 x 0.2"), "got 'x'"),
        (("run", "w", "--input", ""), "got 0"),
        (("run", "w", "--input", "0.1 nan 0.2"), "is nan"),
        (("run", "w", "--input", "0.1 7 0.2"), "domain"),
        (("run", "w", "--input", "ragged.csv"), "got 2 in sequence 1"),
        (("run", "w", "--input", "empty.csv"), "is empty"),
        (("run", "w", "--input", "absent.npy"), "cannot be read"),
        (("run", "absent", "--input", "0.1"), "no saved witness"),
        (("trace", "w", "--input", "batch.csv"), "one sequence"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(folder, arguments, message):
    before = sorted(p.name for p in folder.iterdir())
    done = thereexists(*arguments, cwd=folder, code=2)
    assert message in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(p.name for p in folder.iterdir()) == before


def test_a_single_token_with_a_dense_pattern(tmp_path):
    thereexists("build", "sort", "--n", 1, "--delta", "1/2", "--pattern", "dense", "--out", "w", cwd=tmp_path)
    assert "holds" in thereexists("verify", "w", cwd=tmp_path).stdout


def test_a_large_function_at_a_high_power(tmp_path):
    (tmp_path / "big.py").write_text("def f(X):\n    return 1e40 * X\n")
    arguments = ("big.py:f", "--n", 2, "--delta", "1/2", "--lipschitz", 1e40, "--out", "w")
    thereexists("build", *arguments, cwd=tmp_path)
    thereexists("certify", "w", "--function", "big.py:f", "--p", 16, cwd=tmp_path)
    done = thereexists("verify", "w", "--function", "big.py:f", cwd=tmp_path)
    assert "holds" in done.stdout


def test_the_limit_of_the_id_bits_is_the_one_that_is_kept(tmp_path):
    from thereexists.constructions.faithful.plan import MAX_ID_BITS

    assert f" of {MAX_ID_BITS}" in ran("plan sort --n 2 --delta 1/4", cwd=tmp_path).stdout
