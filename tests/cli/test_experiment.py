"""The commands: good input, bad input, exactly one JSON object on request."""

import json
import shutil

import pytest

from tests.cli.in_process import ran
from thereexists.core.errors import ThereExistsError

SMALL = ["--size", "tiny", "--layers", "1", "--length", "16", "--batch", "8", "--steps", "2", "--device", "cpu"]


def test_from_pretraining_to_results(call, data, tmp_path):
    corpus = data / "wikipedia/wiki_train_1.txt"
    done = call(
        "train", "mlm", "--mixer", "sepconv", "--corpus", corpus, "--vocabulary", 200, *SMALL, "--out", "runs/a"
    )
    assert done.exit_code == 0, done.output
    assert "accuracy" in done.output
    small = [argument for argument in SMALL if argument not in ("--layers", "1", "--size", "tiny")]
    done = call("train", "nli", "--from", "runs/a", "--data", data / "mnli", *small, "--json")
    result = json.loads(done.stdout)
    assert result["metrics"]["examples"] == 64
    assert (tmp_path / "runs/a-nli/model.safetensors").is_file()


def test_copy_lm_and_mt(call, data):
    done = call("train", "copy", "--pattern", "strided", "--config", "union", *SMALL, "--symbols", 5, "--json")
    result = json.loads(done.stdout)
    assert result["out"] == "runs/copy-strided-union-1"
    assert result["metrics"]["accuracy_bound"] == 1.0
    corpus = data / "wikipedia/wiki_train_1.txt"
    done = call("train", "lm", "--pattern", "star", "--corpus", corpus, "--vocabulary", 200, *SMALL, "--json")
    assert json.loads(done.stdout)["metrics"]["perplexity"] > 1
    folder = data / "wmt_en_cs"
    done = call(
        "train", "mt", "--pattern", "fixed", "--option", "stride=4", "--data", folder, "--vocabulary", 150, *SMALL
    )
    assert done.exit_code == 0, done.output
    assert "newstest2015" in done.output


def test_an_experiment_and_its_results(call, tmp_path):
    done = call("experiment", "copying", "--steps", 1, "--only", "d*", "--device", "cpu", "--json")
    report = json.loads(done.stdout)
    assert (report["done"], report["failed"]) == (2, {})
    again = json.loads(call("experiment", "copying", "--steps", 1, "--only", "d*", "--resume", "--json").stdout)
    assert len(again["skipped"]) == 2
    shown = call("results", "runs", "--plots", "img", "--report", "page.md")
    assert "dense" in shown.output
    assert (tmp_path / "page.md").is_file()
    assert json.loads(call("results", "runs", "--json").stdout)["rows"]
    assert "plot: runs/plots/experiment-copying-tiny.png" in call("results", "runs").output
    assert (tmp_path / "runs/plots/experiment-copying-tiny.png").is_file()


BAD = [
    (["train", "mlm", "--corpus", "nothing.txt"], "There is no file nothing.txt"),
    (["train", "mlm", "--corpus", "empty.txt"], "empty.txt is empty"),
    (["train", "mlm", "--corpus", "x", "--steps", "1", "--tokens", "3k"], "exactly one"),
    (["train", "mlm", "--corpus", "x", "--tokens", "many"], "such as 300, 20k or 40M"),
    (["train", "mlm", "--corpus", "x", "--mixer", "sparse"], "needs a --pattern"),
    (["train", "lm", "--corpus", "x", "--mixer", "sepconv", "--pattern", "star"], "belongs to the mixer 'sparse'"),
    (["train", "copy", "--pattern", "star", "--option", "stride"], "must look like stride=16"),
    (["train", "copy", "--length", "7"], "even length"),
    (["train", "nli", "--from", "nowhere", "--data", "nothing"], "There is no folder nothing"),
    (["experiment", "nonsense"], "no experiment 'nonsense'"),
    (["experiment", "lm", "--data", "nothing"], "--data must name the folder"),
    (["experiment", "copying", "--on", "h200"], "goes with --dry-run only"),
    (["experiment", "copying", "--dry-run", "--on", "abacus"], "--on must name one device"),
    (["results", "nothing"], "There is no nothing"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_sentence(call, tmp_path, arguments, message):
    (tmp_path / "empty.txt").write_text("")
    done = call(*arguments)
    assert isinstance(done.exception, ThereExistsError)  # which main() prints, with exit code 2
    assert message in str(done.exception)


def test_a_report_reads_one_training_as_results_does(artefacts, tmp_path):
    shutil.copytree(artefacts / "r", tmp_path / "runs" / "a")
    for place in ("runs", "runs/a"):
        done = ran(f"report {place} --out {place.replace('/', '-')}.html", cwd=tmp_path)
        assert done.code == 0, done
        assert "Experiments" in done.stdout
        assert ran(f"results {place} --json", cwd=tmp_path).code == 0
