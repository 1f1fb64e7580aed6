"""A run in pieces, on tokens made elsewhere, on a machine with little installed: the record is that of a plain run."""

import json
import lzma
import math
import sys
import time
from itertools import pairwise

import pytest

from tests.experiments.runs import grid, how
from thereexists.core.errors import InvalidInput
from thereexists.experiments import prepared, training
from thereexists.experiments.__main__ import main
from thereexists.experiments.runner import run_all, write_prepared
from thereexists.experiments.settings import Budget, Settings
from thereexists.experiments.tokens import corpus_tokenizer, stream
from thereexists.experiments.training import Execution, OutOfTime, curve_steps, train

STEPS = 230  # more than the hundred fetches, so that a run can be stopped between two of them


def settings_of(small, data, steps=STEPS):
    paths = {"corpus": str(data / "wikipedia/wiki_train_1.txt"), "valid": str(data / "wikipedia/wiki_valid.txt")}
    options = {"vocabulary": 200, "evaluate": 16}
    return Settings("mlm", Budget(steps=steps), small, paths, options, length=12, batch=4, precision="fp32")


def go(settings, out, cache, resume=False, stop_at=None):
    return train(settings, out, Execution("cpu", cache, stop_at=stop_at, tensorboard=False, quiet=True), resume)


def without_times(result):
    times = {"seconds", "evaluation_seconds", "tokens_per_second"}
    return {name: value for name, value in result.items() if name not in times}


@pytest.mark.slow
def test_a_run_in_pieces_leaves_the_record_of_a_run_in_one(small, data, cache, tmp_path, monkeypatch):
    settings = settings_of(small, data)
    whole = go(settings, tmp_path / "whole", cache)
    clock, steps = time.time, []

    def stop_here(self, step):  # after the first step the time of this piece is over
        steps.append(step)
        monkeypatch.setattr(training.time, "time", lambda: math.inf if step in (60, 151) else clock())
        return plain(self, step)

    plain = training.create(settings, training._processes("cpu")[1], cache).__class__.batch
    monkeypatch.setattr("thereexists.experiments.tasks.mlm.MaskedLM.batch", stop_here)
    for at in (61, 152):
        with pytest.raises(OutOfTime, match=f"step {at}"):
            go(settings, tmp_path / "parts", cache, resume=True, stop_at=clock() + 3600)
    resumed = go(settings, tmp_path / "parts", cache, resume=True)
    assert steps == list(range(STEPS))  # no step twice
    assert without_times(resumed) == without_times(whole)
    assert len(whole["history"]) >= 100


@pytest.mark.slow
def test_held_out_figures_are_taken_along_the_way(small, data, cache, tmp_path):
    result = go(settings_of(small, data), tmp_path / "a", cache)
    curve = result["curve"]
    tokens = [point["tokens"] for point in curve]
    assert [point["step"] for point in curve] == sorted({*curve_steps(STEPS), STEPS})
    assert tokens[-1] == result["tokens_seen"]
    assert (curve[-1]["loss"], curve[-1]["accuracy"]) == (result["metrics"]["loss"], result["metrics"]["accuracy"])
    assert curve[0]["loss"] > curve[-1]["loss"]
    # Steps are whole: with a budget of thousands the points are even in the logarithm.
    steps = sorted(curve_steps(6714) | {6714})
    ratios = [math.log(b / a) for a, b in pairwise(steps)]
    assert len(steps) == 12
    assert max(ratios) - min(ratios) < 2 * 0.5 / steps[0] * 2  # each end is off by half a step at most


def test_looking_changes_nothing(small, data, cache, tmp_path, monkeypatch):
    settings = settings_of(small, data, steps=20)
    looked = go(settings, tmp_path / "a", cache)
    monkeypatch.setattr(training, "curve_steps", lambda steps: frozenset())
    blind = go(settings, tmp_path / "b", cache)
    assert looked["metrics"] == blind["metrics"]
    assert looked["history"] == blind["history"]
    assert "curve" in looked
    assert "curve" not in blind


def test_one_process_needs_no_accelerate(small, data, cache, tmp_path, monkeypatch):
    settings = settings_of(small, data, steps=12)
    usual = go(settings, tmp_path / "a", cache)
    monkeypatch.setitem(sys.modules, "accelerate", None)
    assert without_times(go(settings, tmp_path / "b", cache)) == without_times(usual)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InvalidInput, match="Several processes need the package accelerate"):
        go(settings, tmp_path / "c", cache)


def test_an_experiment_whose_time_is_over_goes_on_later(data, cache, tmp_path):
    runs, quiet = grid("copying", data, only="d*"), {"say": lambda line: None}
    late = run_all(runs, how(tmp_path, cache, stop_at=time.time() - 1), **quiet)
    assert late.not_started == [run.key for run in runs]

    def in_the_first_step():
        return how(tmp_path, cache, resume=True, stop_at=Once())

    class Once(float):  # passes when the run is begun, and is over in its first step
        def __new__(cls):
            made = super().__new__(cls, 0.0)
            made.asked = 0
            return made

        def __lt__(self, now):
            self.asked += 1
            return self.asked > 1

    stopped = run_all(runs[:1], in_the_first_step(), **quiet)
    assert (stopped.stopped, stopped.failed) == ([runs[0].key], {})
    done = run_all(runs, how(tmp_path, cache, resume=True), **quiet)
    assert len(done.records) == 2


def test_tokens_made_elsewhere_leave_the_same_record(data, cache, tmp_path):
    runs = grid("table-a", data, only="average", steps=2)
    plain = run_all(runs, how(tmp_path / "text", cache), say=lambda line: None)
    (tmp_path / "carried").mkdir()
    (tmp_path / "carried/mnli").symlink_to(data / "mnli")
    written = write_prepared(runs, data, tmp_path / "carried", cache)
    assert sorted(path.name for path in written) == ["wiki_train_1.tokens.xz", "wiki_valid.tokens.xz"]
    there = grid("table-a", tmp_path / "carried", only="average", steps=2)
    carried = run_all(there, how(tmp_path / "tokens", tmp_path / "fresh"), say=lambda line: None)
    assert (plain.failed, carried.failed) == ({}, {})
    for task in ("mlm", "nli"):
        a, b = (outcome.records[0]["stages"][task] for outcome in (plain, carried))
        assert without_times(a) == without_times(b)
    assert not (tmp_path / "carried/wikipedia/wiki_train_1.txt").exists()


def test_a_corpus_of_two_files_is_one_stream(data, cache, tmp_path):
    one, two = data / "wikipedia/wiki_train_1.txt", data / "wikipedia/wiki_valid.txt"
    tokenizer, _ = corpus_tokenizer([one, two], 200, cache)
    both = stream([one, two], tokenizer, cache)
    parts = [stream(path, tokenizer, cache).tokens.tolist() for path in (one, two)]
    assert both.tokens.tolist() == parts[0] + parts[1]
    record = both.record()
    assert record["name"] == "wikipedia/wiki_train_1.txt + wikipedia/wiki_valid.txt"
    assert [file["sha256"] for file in record["files"]] == [
        stream(path, tokenizer, cache).record()["sha256"] for path in (one, two)
    ]
    assert corpus_tokenizer([one], 200, cache)[1] == corpus_tokenizer(one, 200, cache)[1]


def rewritten(path, change):
    """The file with its head changed."""
    with lzma.open(path) as file:
        head, _, body = file.read().partition(b"\n")
    with lzma.open(path, "wb") as file:
        file.write(json.dumps(change(json.loads(head))).encode() + b"\n" + body)


BAD_TOKENS = {
    "another version": (lambda head: head | {"thereexists_tokens": 2}, "not a file of tokens of this version"),
    "no source": (lambda head: {k: v for k, v in head.items() if k != "source"}, "not a file of tokens"),
    "another count": (lambda head: head | {"count": head["count"] - 1}, "does not hold the tokens"),
    "another hash": (lambda head: head | {"sha256": "0" * 64}, "does not hold the tokens"),
    "another vocabulary": (lambda head: head | {"vocabulary": 77}, "vocabulary of 77"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", BAD_TOKENS)
def test_a_bad_file_of_tokens_is_refused(data, cache, tmp_path, case):
    change, message = BAD_TOKENS[case]
    runs = grid("table-a", data, only="average")
    path = next(p for p in write_prepared(runs, data, tmp_path, cache) if "train" in p.name)
    rewritten(path, change)
    with pytest.raises(InvalidInput, match=message):
        stream(path, corpus_tokenizer(path, 150, tmp_path / "cache")[0], tmp_path / "cache")


def test_tokens_of_two_tokenizers_do_not_mix(data, cache, tmp_path):
    one, two = data / "wikipedia/wiki_train_1.txt", data / "wikipedia/wiki_valid.txt"
    for path in (one, two):
        tokenizer, _ = corpus_tokenizer(path, 200, cache)
        target = tmp_path / prepared.prepared_name(path).name
        prepared.write(target, stream(path, tokenizer, cache).tokens, stream(path, tokenizer, cache).sources[0], 200,
                       tokenizer)  # fmt: skip
    files = [tmp_path / "wiki_train_1.tokens.xz", tmp_path / "wiki_valid.tokens.xz"]
    tokenizer, _ = corpus_tokenizer(files, 200, cache)
    with pytest.raises(InvalidInput, match="another tokenizer"):
        stream(files, tokenizer, tmp_path / "cache")
    with pytest.raises(InvalidInput, match="holds text, and another file"):
        corpus_tokenizer([files[0], two], 200, cache)
    files[0].write_bytes(files[0].read_bytes()[:-30])
    with pytest.raises(InvalidInput, match="cannot be read"):
        stream(files[:1], tokenizer, tmp_path / "empty cache")


def test_prepare_on_the_command_line(data, cache, tmp_path, capsys):
    args = ["prepare", "table-a", "--size", "tiny", "--only", "average", "--data", str(data), "--cache", str(cache)]
    assert main([*args, "--out", str(tmp_path)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["bytes"] for line in lines} == {p.stat().st_size for p in tmp_path.rglob("*.tokens.xz")}
