"""Device hours before a run: from what earlier runs of the same model were seen to take, or not at all."""

import json
from pathlib import Path

import pytest

from tests.experiments.runs import grid, how
from thereexists.core.errors import InvalidInput
from thereexists.experiments import forecast as forecasts
from thereexists.experiments.__main__ import main
from thereexists.experiments.forecast import device_of, forecast, known_speeds, sentence, speeds
from thereexists.experiments.grid import load, unfold
from thereexists.experiments.results import read
from thereexists.experiments.runner import run_all

ROOT = Path(__file__).parents[2]
H200 = "NVIDIA H200"


def test_the_speeds_of_the_package_are_those_of_the_records():
    """If not: python -m thereexists.experiments speeds docs/data/experiments --out src/.../experiments/speeds.json"""
    stored = known_speeds(Path("nowhere"))
    assert stored == speeds(read([ROOT / "docs/data/experiments"]))


def test_the_base_table_is_foretold_from_its_tokens_per_second():
    runs = unfold(load("table-a"), "base", 3, None)
    known = known_speeds(Path("nowhere"))
    made = {one.key: one for one in forecast(runs, known, H200)}
    assert len(made) == len(runs)
    one = made["table-a/base/attention-seed2"]
    model = dict(runs[0].stages[0].model)
    mlm, nli = (next(s for s in known if (s.model, s.task, s.device) == (model, t, H200)) for t in ("mlm", "nli"))
    assert one.tokens == runs[0].stages[0].budget.tokens
    expected = one.tokens / mlm.tokens_per_second + 2 * nli.tokens_per_epoch / nli.tokens_per_second
    assert one.seconds == pytest.approx(expected + mlm.evaluation_seconds + nli.evaluation_seconds)


def test_a_run_is_foretold_from_itself(data, cache, tmp_path):
    """The same settings take what they took; twice the steps twice as much."""
    quiet = {"say": lambda line: None}
    runs = grid("table-a", data, only="average", steps=4)
    (record,) = run_all(runs, how(tmp_path, cache), **quiet).records
    known = speeds([record])
    for factor in (1, 2):
        longer = grid("table-a", data, only="average", steps=4 * factor)
        (one,) = forecast(longer, known, "cpu")
        expected = sum(factor * s["seconds"] + s["evaluation_seconds"] for s in record["stages"].values())
        rounded = 0.01 * factor * len(record["stages"])  # to hundredths of a second they are stored, twice
        assert one.seconds == pytest.approx(expected, rel=0.05, abs=rounded)  # speeds are stored rounded, too
    (done,) = forecast(runs, known, "cpu", [runs[0].key])
    assert (done.seconds, done.done) == (0.0, True)
    assert "nothing is left to do" in sentence([done], "cpu", known)


def test_what_is_not_known_is_not_guessed(data):
    runs = grid("table-a", data)
    known = known_speeds(Path("nowhere"))
    made = forecast(runs, known, "cpu")
    assert {one.seconds for one in made} == {None}
    text = sentence(made, "cpu", known)
    assert "no figure is known for them on cpu" in text
    assert f"--on '{H200}'" in text
    # Another length, another model, another device: another run.
    (speed,) = [s for s in known if s.task == "mlm" and s.model.get("size") == "base" and "average" in str(s.model)]
    base = unfold(load("table-a"), "base", 1, None, "average", {"length": 64})
    assert forecast(base, [speed], H200)[0].seconds is None
    mixed = forecast(unfold(load("table-a"), "mini", 1, None, "average,attention"), known, H200)
    half = [mixed[0], forecasts.Forecast("x", "x", None, None, None, 1, False)]
    assert "no figure is known for 1 more" in sentence(half, H200, known)


def test_runs_alone_count_before_runs_in_company():
    stage = {"task": "copy", "settings": {"model": {"size": "tiny"}, "length": 8, "batch": 4, "budget": {"steps": 10}},
             "tokens_seen": 320, "steps": 10, "evaluation_seconds": 0.5, "device": "x"}  # fmt: skip
    alone = {"parallel": 1, "stages": {"copy": stage | {"tokens_per_second": 100}}}
    four = {"parallel": 4, "stages": {"copy": stage | {"tokens_per_second": 30}}}
    (speed,) = speeds([four])
    assert (speed.tokens_per_second, speed.shared) == (120, 4)  # a fourth of the device each
    (speed,) = speeds([four, alone, four])
    assert (speed.tokens_per_second, speed.shared, speed.runs) == (100, 1, 1)
    assert speed.tokens_per_sequence == 8


def test_the_device_may_be_named_in_short():
    known = known_speeds(Path("nowhere"))
    assert device_of(known, "h200") == H200
    with pytest.raises(InvalidInput, match="--on must name one device"):
        device_of(known, "abacus")


def test_dry_run_on_the_command_line(call, tmp_path):
    """Neither data nor a GPU is needed, and nothing is written."""
    asked = ["experiment", "table-a", "--size", "base", "--seeds", 3, "--dry-run", "--only", "[as]*"]
    shown = call(*asked, "--on", "h200")
    assert shown.exit_code == 0, shown.output
    assert "device hours" in " ".join(shown.output.split())
    report = json.loads(call(*asked, "--on", "h200", "--json").stdout)
    assert report["device"] == H200
    assert len(report["runs"]) == 9
    assert sum(run["seconds"] for run in report["runs"]) > 3 * 3 * 100
    assert "no figure is known" in json.loads(call(*asked, "--json").stdout)["summary"]
    assert list(tmp_path.iterdir()) == []


def test_dry_run_of_the_driver(capsys, tmp_path):
    assert main(["run", "table-a", "--size", "base", "--dry-run", "--on", "h200", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr()
    assert len(out.out.splitlines()) == 7
    assert "device hours" in out.err
