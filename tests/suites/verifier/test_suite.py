"""A small suite, one instance of every family: its files, and its own check, which must catch what is planted."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest

from tests.suites.verifier.forging import mended, only, planted, told
from thereexists.core.errors import InvalidInput
from thereexists.suites import checked, scored
from thereexists.suites.folders import MARK
from thereexists.suites.verifier import onnx_files, vnnlib
from thereexists.suites.verifier.families import FAMILIES
from thereexists.suites.verifier.interval import interval_verdict, outputs
from thereexists.suites.verifier.make import TRUTH, make_verifier
from thereexists.suites.verifier.score import floor

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "verifiers.py"


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite") / "vnn"
    made = make_verifier(folder, count=9)
    assert made["count"] == 9
    assert made["sat"] >= 3
    assert made["unsat"] >= 3
    return folder


@pytest.fixture(scope="module")
def truth(suite):
    return {entry["family"]: entry for entry in json.loads((suite / TRUTH).read_text())["instances"]}


def test_the_files_are_what_the_schemas_and_the_page_say(suite, truth):
    assert set(truth) == set(FAMILIES)
    for name in ("suite", "truth"):
        record = suite / ("suite.json" if name == "suite" else TRUTH)
        schema = json.loads((suite / f"{name}.schema.json").read_text())
        jsonschema.validate(json.loads(record.read_text()), schema)
    for line in (suite / "instances.csv").read_text().splitlines():
        network, text, seconds = line.split(",")
        model = onnx.load(suite / network)
        onnx.checker.check_model(model, full_check=True)
        assert {node.op_type for node in model.graph.node} <= set(onnx_files.OPERATORS)
        assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 1
        assert int(seconds) > 0
        assert (suite / text).is_file()


def test_the_same_seed_gives_the_same_bytes(suite, tmp_path):
    make_verifier(tmp_path / "again", count=3)
    files = [file for file in (tmp_path / "again").rglob("*-1-*") if file.is_file()]
    assert len(files) == 6
    for file in files:
        assert file.read_bytes() == (suite / file.relative_to(tmp_path / "again")).read_bytes()


def test_the_suite_holds(suite):
    found = checked(suite)
    assert found.problems == ()
    assert found.instances == 9


def refused(folder):
    found = checked(folder)
    assert not found.holds
    return " ".join(found.problems)


def test_a_wrong_verdict_is_caught(suite, truth, tmp_path):
    """Both ways, with every hash mended."""
    for family, entry in truth.items():
        folder = only(suite, tmp_path / family, entry["name"])
        other = "unsat" if entry["verdict"] == "sat" else "sat"
        point = [0.0] * 8 if other == "sat" else None
        assert "proved" in refused(told(folder, verdict=other, counterexample=point))


def test_a_moved_limit_is_caught(suite, truth, tmp_path):
    entry = truth["sort"]
    folder = only(suite, tmp_path / "s", entry["name"])
    file = folder / "vnnlib" / f"{entry['name']}.vnnlib"
    sign = re.search(r"\((>=|<=) Y_\d+ \S+?\)", file.read_text())
    value = "9.0" if (sign[1] == ">=") == (entry["verdict"] == "sat") else "-9.0"
    inputs, _, limits = file.read_text().partition("; unsafe")
    file.write_text(inputs + "; unsafe" + re.sub(r"(Y_\d+) \S+?\)", rf"\1 {value})", limits))
    assert "proved" in refused(mended(folder))


def test_a_changed_network_is_caught(suite, truth, tmp_path):
    entry = truth["spline"]
    folder = only(suite, tmp_path / "s", entry["name"])
    file = folder / "onnx" / f"{entry['name']}.onnx"
    model = onnx.load(file)
    weight = next(w for w in model.graph.initializer if w.name.endswith("W_2"))
    array = onnx.numpy_helper.to_array(weight).copy()
    array.flat[np.flatnonzero(array)[0]] += 2.0**-20
    weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
    file.write_bytes(model.SerializeToString(deterministic=True))
    assert "network is not the one" in refused(mended(folder))
    next(node for node in model.graph.node if node.op_type == "Relu").op_type = "Sigmoid"
    file.write_bytes(model.SerializeToString(deterministic=True))
    assert "operators" in refused(mended(folder))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("change", ["counterexample", "margin", "bound", "params", "hash"])
def test_other_lies_are_caught(suite, truth, tmp_path, change):
    entry = next(e for e in truth.values() if e["verdict"] == "sat" and e["family"] != "compact")
    folder = only(suite, tmp_path / "s", entry["name"])
    if change == "hash":
        (folder / "README.md").write_text("another page")
        assert "SHA-256" in refused(folder)
        return
    lies = {
        "counterexample": [0.0 for _ in entry["counterexample"]],
        "margin": entry["margin"] / 2,
        "bound": 1e-3,
        "params": entry["params"] | {"n": entry["params"]["n"] * 2},
    }
    refused(told(folder, **{change: lies[change]}))


def test_a_float32_figure_is_no_less_than_what_is_measured(suite, truth, tmp_path):
    """9.5e-6 here. Up to half of what is measured is left to other machines."""
    folder = only(suite, tmp_path / "s", truth["table"]["name"])
    assert truth["table"]["float32"] == 1e-5
    assert "away from the function here" in refused(told(folder, float32=1e-6))


def test_trouble_of_this_machine_is_no_problem_of_the_suite(suite, truth, tmp_path, monkeypatch):
    """A network that may not be read, and memory that is short while one is parsed."""
    folder = only(suite, tmp_path / "s", truth["sort"]["name"])
    true = os.open

    def denied(path, *more):
        if str(path).endswith(".onnx"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return true(path, *more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", denied)
        found = checked(folder)
    assert (found.holds, found.obstacle) == (None, f"{next(folder.glob('onnx/*'))} cannot be read: Permission denied.")

    def too_much(parts):
        raise MemoryError

    monkeypatch.setattr(onnx_files, "written", too_much)
    with pytest.raises(MemoryError):
        onnx_files.read(next(folder.glob("onnx/*")))
    assert "more memory" in checked(folder).obstacle


def test_parameters_that_break_the_proof_are_caught(suite, tmp_path):
    """A spike in f, which should increase; heads with negative outputs. No sampled point sees it."""
    n = 8
    spike = {"level": 1, "n": n, "signs": [1] * n, "alpha": 0.125, "f": [0.0] + [0.125] * 31 + [1.0] + [0.1875] * 32}
    box = np.full((n, 1), 0.25), np.full((n, 1), 0.75)
    asked = vnnlib.Property((box,), (vnnlib.Limit(0, 1, 0.875),), n)
    lies = {"verdict": "unsat", "margin": 0.6875, "extremes": [0.1875]}
    params = spike | {"g": None, "neighbour": False}
    assert "assumes that f" in refused(planted(suite, tmp_path / "a", "spline", params, asked, **lies))
    params = {"level": 1, "n": n, "sharpness": [1.0] * 4, "outputs": [0.25, -1.0, -1.0, -1.0]}
    box = np.zeros((n, 8)), np.ones((n, 8))
    asked = vnnlib.Property((box,), (vnnlib.Limit(0, 1, 0.875),), n)
    lies = {"verdict": "unsat", "margin": 2.625, "extremes": [-1.75]}
    assert "assumes that 0 < o_h" in refused(planted(suite, tmp_path / "b", "softmax", params, asked, **lies))


def test_no_suite_is_said_in_a_sentence(tmp_path, suite):
    with pytest.raises(InvalidInput, match="holds no suite"):
        checked(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    with pytest.raises(InvalidInput, match="not a suite"):
        make_verifier(tmp_path / "mine", count=1)
    record = json.loads((suite / MARK).read_text())
    assert record["format"] == "thereexists verifier suite"


def test_answers_are_scored(suite, truth, tmp_path):
    lines = [f"onnx/{e['name']}.onnx,vnnlib/{e['name']}.vnnlib,{e['verdict']},1.5" for e in truth.values()]
    file = tmp_path / "answers.csv"
    file.write_text("\n".join(lines))
    assert scored(suite, file)["total"] | {"seconds": 0} == {
        "instances": 9, "right": 9, "unknown": 0, "timeout": 0, "error": 0, "wrong": 0, "unanswered": 0, "seconds": 0,
        "disputed": 0, "shown": 0,
        "right_sat": sum(e["verdict"] == "sat" for e in truth.values()),
        "right_unsat": sum(e["verdict"] == "unsat" for e in truth.values()),
    }  # fmt: skip
    flipped = {"sat": "unsat", "unsat": "sat"}[truth["sort"]["verdict"]]
    file.write_text(f"onnx/x.onnx,vnnlib/{truth['sort']['name']}.vnnlib,{flipped},1")
    found = scored(suite, file)
    assert [found["total"][name] for name in ("wrong", "unanswered")] == [1, 8]
    long = f"o,{'x' * 200_000}.vnnlib,sat,1"
    for bad in ("a,b", "o,vnnlib/nobody.vnnlib,sat,1", f"o,{truth['sort']['name']}.vnnlib,maybe,1", long, "\0"):
        file.write_text(bad)
        with pytest.raises(InvalidInput):
            scored(suite, file)


def test_counterexamples_are_run(suite, truth, tmp_path):
    """Who says sat with an input is taken at that input, whatever the truth is."""
    file, point = tmp_path / "answers.csv", tmp_path / "point.txt"
    entries = {entry["verdict"]: entry for entry in truth.values()}

    def outcome(entry, X):
        lines = [f"(X_{i} {x!r})" for i, x in enumerate(X)]
        point.write_text("sat\n(" + "\n ".join([*lines, "(Y_0 0.0)"]) + ")\n")
        file.write_text(f"onnx/x.onnx,vnnlib/{entry['name']}.vnnlib,sat,1,point.txt")
        found = scored(suite, file)
        return [name for name in ("right", "wrong", "disputed", "shown") if found["total"][name]], found["wrong"]

    true = entries["sat"]["counterexample"]
    assert outcome(entries["sat"], true) == (["right", "shown"], [])
    assert "outside" in outcome(entries["sat"], [true[0] + 2.0, *true[1:]])[1][0]["why"]
    boxes = vnnlib.parse(
        (suite / "vnnlib" / f"{entries['unsat']['name']}.vnnlib").read_text(), shape_of(suite, entries["unsat"])
    ).boxes
    named, why = outcome(entries["unsat"], boxes[0][0].ravel().tolist())
    assert named == ["wrong"]
    assert "safe" in why[0]["why"]
    for bad in ([0.0], [float("nan")] * len(true)):
        with pytest.raises(InvalidInput, match="finite number"):
            outcome(entries["sat"], bad)
    point.unlink()
    with pytest.raises(InvalidInput, match="cannot be read"):
        scored(suite, file)
    os.mkfifo(point)  # nobody writes to it: whoever opens it waits for ever
    for answers in (file, point):
        with pytest.raises(InvalidInput, match="an ordinary file is wanted"):
            scored(suite, answers)


def test_a_safe_input_is_no_counterexample_of_a_false_property(suite, truth, tmp_path):
    """The word is right, the input is not: wrong."""
    entry = next(e for e in truth.values() if e["verdict"] == "sat" and e["family"] in ("sort", "softmax", "spline"))
    asked = vnnlib.parse((suite / "vnnlib" / f"{entry['name']}.vnnlib").read_text(), shape_of(suite, entry))
    run = onnx_files.runner(onnx_files.read(suite / "onnx" / f"{entry['name']}.onnx")[1])
    low, high = asked.boxes[0]
    X = np.stack([low, high, (low + high) / 2])
    safe = X[int(np.argmin(asked.depth(run(X))))]
    assert asked.depth(run(safe[None]))[0] < -1e-3
    (tmp_path / "p.txt").write_text(" ".join(f"(X_{i} {x!r})" for i, x in enumerate(safe.ravel().tolist())))
    (tmp_path / "a.csv").write_text(f"o,{entry['name']}.vnnlib,sat,1,p.txt")
    assert scored(suite, tmp_path / "a.csv")["total"]["wrong"] == 1


def shape_of(suite, entry):
    dims = onnx.load(suite / "onnx" / f"{entry['name']}.onnx").graph.input[0].type.tensor_type.shape.dim
    return tuple(size.dim_value for size in dims)[1:]


def test_intervals_hold_the_outputs_and_never_lie(suite, truth, tmp_path):
    rng = np.random.default_rng(0)
    for entry in truth.values():
        graph = onnx.load(suite / "onnx" / f"{entry['name']}.onnx").graph
        shape = tuple(size.dim_value for size in graph.input[0].type.tensor_type.shape.dim)[1:]
        text = (suite / "vnnlib" / f"{entry['name']}.vnnlib").read_text()
        asked = vnnlib.parse(text, shape)
        low, high = asked.boxes[0]
        least, most = outputs(graph, low[None], high[None])
        X = low + rng.random((50, *shape)) * (high - low)
        Y = onnx_files.runner(onnx_files.read(suite / "onnx" / f"{entry['name']}.onnx")[1], np.float64)(X)
        assert (least <= Y).all()
        assert (most >= Y).all()
        assert interval_verdict(suite / "onnx" / f"{entry['name']}.onnx", text)[0] in ("unknown", entry["verdict"])
    floor(suite, tmp_path / "floor.csv")
    assert scored(suite, tmp_path / "floor.csv")["total"]["wrong"] == 0


@pytest.mark.slow
def test_outside_verifiers_agree(tmp_path):
    """pip install maraboupy, or auto_LiRPA, into this environment, or name another Python by THEREEXISTS_VERIFIERS."""
    import importlib.util
    import os

    asked = os.environ.get("THEREEXISTS_VERIFIERS", "")
    pythons = dict(part.split("=", 1) for part in asked.split(",") if part)  # marabou=/path/python,crown=/path/python
    for tool, package in (("marabou", "maraboupy"), ("crown", "auto_LiRPA")):
        if importlib.util.find_spec(package) is not None:
            pythons.setdefault(tool, sys.executable)
    if not pythons:
        pytest.skip("neither maraboupy nor auto_LiRPA is installed")
    make_verifier(tmp_path / "vnn", count=2 * len(FAMILIES))  # levels 1 and 2
    for tool, python in pythons.items():
        command = [python, "-W", "ignore", str(SCRIPT), tool, str(tmp_path / "vnn"), str(tmp_path / "a.csv")]
        subprocess.run([*command, "--seconds", "20"], check=True, timeout=900)
        found = scored(tmp_path / "vnn", tmp_path / "a.csv")
        print(tool, found["total"])
        assert found["total"]["right"] >= 5
        assert found["wrong"] == []
        assert found["total"]["shown"] == found["total"]["right_sat"] > 0  # every sat with its input, and it was run
