"""Every command line of the issue, good input and bad."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz
from typer.testing import CliRunner

from thereexists.cli import app, main

FIT_KEYS = {
    "length",
    "k",
    "gamma",
    "method",
    "hidden_size",
    "theorem_hidden_size",
    "leakage",
    "ratio_error",
    "max_logit",
    "dtype_needed",
    "seconds",
}


def run(*arguments):
    return CliRunner().invoke(app, ["heads", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "target.npz"
    assert run("random", "--length", 48, "--k", 2, "--gamma", 2, "--out", path).exit_code == 0
    return path


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["auto", "projection", "corrected", "moments", "convex"])
def test_fit_prints_one_json_object_with_the_promised_keys(target, tmp_path, method):
    done = run("fit", target, "--method", method, "--eps1", 1e-3, "--eps2", 1e-2, "--out", tmp_path / "h", "--json")
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert set(report) >= FIT_KEYS
    assert report["holds"] is True
    assert report["leakage"] < 1e-3
    checked = run("verify", tmp_path / "h", "--json")
    assert checked.exit_code == 0
    assert json.loads(checked.stdout)["holds"] is True


def test_verify_fails_with_exit_code_one_on_a_stricter_demand(target, tmp_path):
    run("fit", target, "--out", tmp_path / "h")
    done = run("verify", tmp_path / "h", "--eps1", 1e-9, "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["holds"] is False


def test_bound_and_study_speak_json(tmp_path):
    done = run("bound", "--length", 4096, "--k", 4, "--gamma", 2, "--eps1", 1e-3, "--eps2", 1e-2, "--json")
    assert json.loads(done.stdout)["moments_hidden_size"] == 16
    done = run(
        "study", "--lengths", "16..64", "--k", "1,2", "--methods", "moments", "--out", tmp_path / "s.json", "--json"
    )
    assert len(json.loads(done.stdout)["table"]) == 6
    assert json.loads((tmp_path / "s.json").read_text())["command"].startswith("thereexists")


def test_people_get_tables_and_pipes_columns(target, monkeypatch):
    for arguments in (
        ("fit", target),
        ("bound", "--length", 64, "--k", 2),
        ("study", "--lengths", "16,32", "--k", 1, "--methods", "moments"),
    ):
        done = run(*arguments)
        assert done.exit_code == 0
        assert "│" not in done.stdout, "a pipe: no box, and no line is broken"
        monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
        done = run(*arguments)
        monkeypatch.delenv("FORCE_COLOR")
        assert "│" in done.stdout


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "missing.npz"],
        ["fit", "{target}", "--method", "magic"],
        ["fit", "{target}", "--eps1", "0"],
        ["fit", "{target}", "--eps2", "-1"],
        ["fit", "{target}", "--dtype", "int8"],
        ["fit", "{target}", "--hidden-size", "2", "--method", "corrected"],
        *(["fit", "{target}", "--hidden-size", str(10**k), "--method", m] for k, m in ((6, "descent"), (20, "auto"))),
        ["fit", "{negative}"],
        ["fit", "{empty_row}"],
        ["fit", "{wide}"],
        ["fit", "{nan}"],
        ["fit", "{dense}"],
        ["fit", "{target}", "--device", "cuda:9"],
        ["random", "--length", "4", "--k", "9", "--out", "x.npz"],
        ["bound", "--length", "4", "--k", "9"],
        ["bound", "--length", "4"],
        ["bound", "--target", "{target}", "--k", "1"],
        ["study", "--lengths", "9..2"],
        ["study", "--lengths", "many"],
        ["study", "--methods", "magic"],
        ["study", "--longest", "convex"],
        ["verify", "nowhere"],
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(arguments, target, tmp_path, monkeypatch, capsys):
    one = np.eye(4)
    matrices = {
        "negative": one - 0.5,
        "empty_row": np.diag([1.0, 0, 1, 1]),
        "nan": one * np.nan,
        "wide": np.ones((2, 3)),
    }
    for name, matrix in matrices.items():
        save_npz(tmp_path / f"{name}.npz", csr_array(matrix))
    np.savez(tmp_path / "dense.npz", one)
    files = {n: str(tmp_path / f"{n}.npz") for n in (*matrices, "dense")} | {"target": str(target)}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["thereexists", "heads", *(a.format(**files) for a in arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert "Traceback" not in said


def test_help_imports_nothing_heavy():
    code = (
        "import sys, thereexists.cli; "
        "sys.exit(bool({'torch', 'numba', 'scipy', 'matplotlib', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
