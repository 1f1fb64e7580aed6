"""Folders that hold more than ours, files that never end, shapes and settings that nothing of ours has."""

import itertools
import json
import os
import shutil

import pytest
import torch

import thereexists as te
from tests.cli.in_process import ran
from tests.hostile import forge_certificate, forge_weights
from thereexists import program as P
from thereexists.cli import certificate as commands
from thereexists.experiments import grid

COPYING = (grid.Path(grid.__file__).parent / "configs" / "copying.toml").read_text()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    te.build(te.targets.builtin("sort", n=2), delta=1 / 2, construction="compact").save(folder / "k")
    te.build(P.sort(P.tokens(3))).save(folder / "p")
    te.build(te.targets.builtin("sort", n=2), delta=1 / 2).save(folder / "f")
    te.certify(te.load(folder / "f")).save(folder / "f")
    assert ran("export k --to torch --out t", cwd=folder).code == 0
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "here")


def refused(line, cwd, words):
    done = ran(line, cwd=cwd)
    assert done.code == 2, (line, done)
    assert words in done.stderr, (line, done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["export ../k --to torch", "suite verifier --count 1", "build sort --n 2"])
@pytest.mark.parametrize("out", [".", "..", "../t"])
def test_the_folder_one_is_in_is_not_replaced(command, out, folder):
    (folder / "t" / "notes.txt").write_text("precious")
    before = sorted(folder.rglob("*"))
    refused(f"{command} --out {out}", folder / "t", "is the folder you are in, or around it")
    assert sorted(folder.rglob("*")) == before


def test_an_experiment_of_gigabytes_is_not_read(tmp_path):
    with (tmp_path / "big.toml").open("wb") as stream:
        stream.truncate(1 << 40)
    refused("experiment big.toml --dry-run", tmp_path, "bytes")


def test_an_export_replaces_itself_and_nothing_more(folder):
    assert ran("export k --to torch --out t", cwd=folder).code == 0
    assert ran("export k --to onnx --out t", cwd=folder).code == 0
    assert list(json.loads((folder / "t" / "thereexists_export.json").read_text())["files"]) == ["model.onnx"]
    (folder / "t" / "home").mkdir()
    (folder / "t" / "home" / "thesis.tex").write_text("precious")
    refused("export k --to torch --out t", folder, "also holds home/thesis.tex; it is left alone")
    (folder / "t" / "thereexists_export.json").write_text("{}")
    refused("export k --to torch --out t", folder, "does not list its files and their SHA-256; it is left alone")
    assert (folder / "t" / "home" / "thesis.tex").read_text() == "precious"


def test_a_witness_that_takes_the_place_of_another_gets_no_certificate_of_that(folder, monkeypatch):
    given = itertools.chain(["before"], itertools.repeat("after"))
    before = (folder / "f" / "certificate.json").read_bytes()
    monkeypatch.setattr(commands, "_identity", lambda _: next(given))
    refused("certify f --p 2", folder, "was replaced while it was certified")
    assert (folder / "f" / "certificate.json").read_bytes() == before


@pytest.mark.parametrize("name", ["W_in", "W_out", "E"])
@pytest.mark.parametrize("change", [torch.Tensor.flatten, lambda x: x[None], lambda x: x[:, :, None]])
def test_arrays_of_another_rank_are_refused(name, change, folder):
    changed = {}

    def reshape(weights):
        weights[name] = changed[name] = change(weights[name]).contiguous()

    def described(record):
        if name == "E":
            record["structure"]["E"] = list(changed["E"].shape)

    (folder / "p" / "certificate.json").unlink()
    forge_weights(folder / "p", reshape, described)
    for line in ("show p", "run p --input '0.1 0.2 0.3'", "trace p --input '0.1 0.2 0.3'", "certify p"):
        refused(line, folder, f"{name} must be a matrix")


TOML = {
    "deep": ("x = " + "[" * 3000, "nested too deeply"),
    "long": ("x = " + "9" * 5000, "not valid TOML"),
    "no stages": ("stages = []\nruns = [1]\n[sizes.tiny]", "'stages'"),
    "a date": (COPYING.replace("norm_first = true", "norm_first = 2020-01-01"), "not valid TOML for an experiment"),
    "a field": (COPYING.replace('field = "num_hidden_layers"', "field = 0"), "its 'axes.0.field' must be a text"),
}


@pytest.mark.parametrize("case", TOML)
def test_experiments_that_are_none(case, tmp_path):
    text, words = TOML[case]
    (tmp_path / "x.toml").write_text(text)
    refused("experiment x.toml --dry-run", tmp_path, words)


def test_a_suite_has_at_most_a_million(tmp_path):
    refused("suite verifier --out s --count 1000001", tmp_path, "at most 1,000,000")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/proc/self/pagemap"), reason="a file of Linux")
def test_a_file_that_states_no_size_is_read_to_no_end(folder):
    (folder / "f" / "model.safetensors").unlink()
    (folder / "f" / "model.safetensors").symlink_to("/proc/self/pagemap")
    done = ran("verify f", cwd=folder)
    assert done.code == 1
    assert "SHA-256" in done.stdout


def test_what_is_proved_of_the_float64_run_is_not_understated(folder):
    forge_certificate(folder / "f", lambda c: c["float_error"].update(max=5e-324))
    done = ran("verify f", cwd=folder)
    assert done.code == 1
    assert "float proof" in next(line for line in done.stdout.splitlines() if "FAILED" in line)


def test_a_report_draws_no_more_than_it_can(tmp_path):
    """300 dense patterns of 4,096 tokens: 5·10⁹ connections, of which it would make every one again."""
    done = ran("pattern compare --n 64 --json", cwd=tmp_path)
    record = json.loads(done.stdout)
    one = next(p for p in record["patterns"] if p["name"] == "random")
    one |= {"n": 4096, "parameters": {"degree": 4000, "seed": 0}, "connections": [4096 * 4000]}
    (tmp_path / "c.json").write_text(json.dumps(record | {"n": 4096, "patterns": [one] * 300}))
    assert ran("report c.json --out c.html", cwd=tmp_path).code == 0


def test_a_file_without_records_has_no_results(tmp_path):
    (tmp_path / "c.json").write_text("{}")
    done = ran("results c.json", cwd=tmp_path)
    assert done.code == 2
    assert "There is no record of a run in c.json" in done.stderr
