"""The training loop: deterministic, resumable to the last bit, and careful with what is on disk."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from thereexists.core.errors import BadWitnessFile, InvalidInput, Recovered, ThereExistsError
from thereexists.experiments import checkpoint
from thereexists.experiments.files import RESULT
from thereexists.experiments.settings import Budget, Settings
from thereexists.experiments.tasks.copy import Copying
from thereexists.experiments.tasks.mlm import MaskedLM
from thereexists.experiments.training import Execution, Interrupted, train

STEPS = 8


@pytest.fixture
def settings(small):
    return Settings("copy", Budget(steps=STEPS), small, options={"symbols": 5}, length=12, batch=8, precision="fp32")


@pytest.fixture
def go(cache):
    def go(settings, out, resume=False, tensorboard=False):
        return train(settings, out, Execution("cpu", cache, tensorboard=tensorboard, quiet=True), resume)

    return go


def weights(out):
    return load_file(out / "model.safetensors")


def same_weights(a, b):
    assert a.keys() == b.keys()
    return all(torch.equal(a[name], b[name]) for name in a)


def interrupt_at(monkeypatch, step):
    """A real Ctrl-C while the given step is being prepared."""
    plain = Copying.batch

    def batch(self, number):
        if number == step:
            os.kill(os.getpid(), signal.SIGINT)
        return plain(self, number)

    monkeypatch.setattr(Copying, "batch", batch)


def test_an_unknown_device_is_refused_before_anything_is_made(settings, cache, tmp_path):
    with pytest.raises(InvalidInput, match="must be cpu or cuda, or left out for the best there is; got 'tpu'"):
        train(settings, tmp_path / "a", Execution("tpu", cache))
    assert not (tmp_path / "a").exists()


def test_the_same_seed_gives_the_same_numbers_and_another_does_not(settings, go, tmp_path):
    first, second = (go(settings, tmp_path / name) for name in "ab")
    assert first["metrics"] == second["metrics"]
    assert first["history"] == second["history"]
    assert same_weights(weights(tmp_path / "a"), weights(tmp_path / "b"))
    other = go(settings.with_(seed=1), tmp_path / "c")
    assert other["history"] != first["history"]
    assert json.loads((tmp_path / "a" / RESULT).read_text()) == first


def test_an_interrupted_run_ends_as_an_uninterrupted_one(settings, go, tmp_path, monkeypatch):
    whole = go(settings, tmp_path / "whole")
    with monkeypatch.context() as patch:
        interrupt_at(patch, 3)
        with pytest.raises(Interrupted, match="step 4"):
            go(settings, tmp_path / "parts")
    assert not (tmp_path / "parts" / RESULT).exists()
    assert (tmp_path / "parts" / "checkpoint").is_dir()
    resumed = go(settings, tmp_path / "parts", resume=True)
    assert resumed["metrics"] == whole["metrics"]
    assert resumed["steps"] == whole["steps"] == STEPS
    assert same_weights(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert not (tmp_path / "parts" / "checkpoint").exists()  # done, no longer needed
    assert go(settings, tmp_path / "parts", resume=True) == resumed  # and a finished run is not run again


@pytest.mark.parametrize("where", ["weights", "optimizer", "record"])
def test_a_save_that_fails_keeps_the_last_good_checkpoint(settings, go, tmp_path, monkeypatch, where):
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        interrupt_at(patch, 2)
        with pytest.raises(Interrupted):
            go(settings, out)
    good = {file.name: file.read_bytes() for file in (out / "checkpoint").iterdir()}

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    target = {"weights": "save_model", "optimizer": "torch.save", "record": "write_json"}[where]
    with monkeypatch.context() as patch:
        interrupt_at(patch, 5)
        patch.setattr(torch, "save", full) if target == "torch.save" else patch.setattr(checkpoint, target, full)
        with pytest.raises(ThereExistsError, match=r"No space left.*the last good one, of step 3, is kept"):
            go(settings, out, resume=True)
    assert {file.name: file.read_bytes() for file in (out / "checkpoint").iterdir()} == good
    assert [p.name for p in out.iterdir()] == ["checkpoint"]  # nothing half-written is left
    resumed = go(settings, out, resume=True)
    assert resumed["metrics"] == go(settings, tmp_path / "whole")["metrics"]


def test_a_kill_between_the_two_renames_leaves_a_checkpoint(settings, go, tmp_path, monkeypatch):
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        interrupt_at(patch, 2)
        with pytest.raises(Interrupted):
            go(settings, out)
    (out / ".checkpoint.abcdefg1.thereexists-old").mkdir()
    (out / "checkpoint").rename(out / ".checkpoint.abcdefg1.thereexists-old/previous")  # what such a kill leaves behind
    with pytest.warns(Recovered, match="has been put back"):
        resumed = go(settings, out, resume=True)
    assert resumed["history"][0][0] <= 3


def test_a_checkpoint_of_another_run_is_refused(settings, go, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_at(patch, 2)
        with pytest.raises(Interrupted):
            go(settings, tmp_path / "run")
    other = settings.with_(model={**settings.model, "mixer": "sepconv"})
    with pytest.raises(BadWitnessFile, match="another 'model'"):
        go(other, tmp_path / "run", resume=True)
    (tmp_path / "run/checkpoint/model.safetensors").write_bytes(b"rubbish")
    with pytest.raises(BadWitnessFile, match="cannot be read"):
        go(settings, tmp_path / "run", resume=True)


def test_a_full_disk_at_the_very_end_costs_little(settings, go, tmp_path, monkeypatch):
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        interrupt_at(patch, 5)
        with pytest.raises(Interrupted):
            go(settings, out)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("transformers.PreTrainedModel.save_pretrained", full)
        with pytest.raises(ThereExistsError, match="could not be written"):
            go(settings, out, resume=True)
    assert sorted(p.name for p in out.iterdir()) == [".unfinished", "checkpoint"]
    assert go(settings, out, resume=True)["metrics"] == go(settings, tmp_path / "whole")["metrics"]


def test_a_run_that_is_killed_after_its_result_leaves_nothing_for_ever(settings, go, tmp_path, monkeypatch):
    """Between the result and the end of its mark; the next call only returns the result, and tidies up."""
    out, whole = tmp_path / "run", tmp_path / "whole"
    go(settings, whole)

    class Killed(BaseException):
        pass

    def killed(file, *_, **__):
        if file.name == ".unfinished":
            raise Killed
        return unlink(file, *_, **__)

    unlink = Path.unlink
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(Killed):
            go(settings, out)
    assert (out / ".unfinished").is_file()
    (out / f".{RESULT}.abcd1234.thereexists-part").write_text("half")  # of another that was killed before
    before = (out / RESULT).read_bytes()
    go(settings, out, resume=True)
    assert (out / RESULT).read_bytes() == before
    assert {file.name for file in out.iterdir()} == {file.name for file in whole.iterdir()}


def test_other_data_are_noticed(small, data, go, tmp_path, monkeypatch):
    corpus = tmp_path / "c.txt"
    corpus.write_text((data / "wikipedia/wiki_valid.txt").read_text())
    settings = Settings("lm", Budget(steps=4), small, {"corpus": str(corpus)}, {"vocabulary": 200}, length=12, batch=8)
    from thereexists.experiments.tasks.lm import CausalLM

    plain = CausalLM.batch

    def batch(self, step):
        if step == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return plain(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(CausalLM, "batch", batch)
        with pytest.raises(Interrupted):
            go(settings, tmp_path / "run")
    corpus.write_text(corpus.read_text() + "\n\nbal bal bal")
    with pytest.raises(BadWitnessFile, match="The data are not those"):
        go(settings, tmp_path / "run", resume=True)


def test_nothing_is_written_over_without_being_asked(settings, go, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="not empty"):
        go(settings, tmp_path / "mine")
    with pytest.raises(InvalidInput, match="is a file"):
        go(settings, tmp_path / "mine/notes.txt")
    go(settings, tmp_path / "done")
    with pytest.raises(InvalidInput, match="another 'lr'"):
        go(settings.with_(lr=0.5), tmp_path / "done", resume=True)


def test_a_model_without_figures_says_so_and_leaves_nothing_to_resume(settings, go, tmp_path, monkeypatch):
    """The last step may be the one that breaks it: its own loss was finite."""
    monkeypatch.setattr(Copying, "evaluate", lambda self, model: {"accuracy": float("nan")})
    with pytest.raises(ThereExistsError, match="no finite figures; a smaller --lr"):
        go(settings, tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoint").exists()


def test_a_diverging_run_says_so(settings, go, tmp_path, monkeypatch):
    plain = Copying.objective

    class Broken(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, **batch):
            return self.inner(**batch) * float("nan")

    monkeypatch.setattr(Copying, "objective", lambda self, model: Broken(plain(self, model)))
    with pytest.raises(ThereExistsError, match="no longer finite at step 1; a smaller --lr"):
        go(settings, tmp_path / "run")


def test_a_budget_in_seconds_ends(settings, go, tmp_path):
    result = go(settings.with_(budget=Budget(seconds=0.3)), tmp_path / "run")
    assert result["steps"] >= 1
    assert result["seconds"] >= 0.3


def test_a_record_says_what_a_reader_needs(settings, go, tmp_path):
    result = go(settings, tmp_path / "run", tensorboard=True)
    assert result["tokens_seen"] == STEPS * 8 * 12
    assert result["parameters"] == sum(t.numel() for t in weights(tmp_path / "run").values())
    assert {"torch", "transformers", "accelerate", "thereexists"} <= result["versions"].keys()
    assert (result["device"], result["seed"], result["precision"]) == ("cpu", 0, "fp32")
    assert any((tmp_path / "run/tensorboard").iterdir())
    assert not any(".safetensors." in p.name or p.name.startswith(".") for p in (tmp_path / "run").iterdir())


@pytest.mark.slow  # two more processes import everything
def test_two_processes_train_the_same_model_as_one(settings, go, tmp_path):
    """torchrun halves the batch; what differs is the order in which float32 gradients are added."""
    settings = settings.with_(model=settings.model | {"hidden_dropout_prob": 0.0})  # every rank has its own dropout
    one = go(settings, tmp_path / "one")
    (tmp_path / "settings.json").write_text(json.dumps(settings.record()))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command += ["-m", "thereexists.experiments", "train", str(tmp_path / "settings.json")]
    subprocess.run([*command, "--out", str(tmp_path / "two"), "--device", "cpu"], check=True, timeout=300)
    two = json.loads((tmp_path / "two" / RESULT).read_text())
    assert two["device"] == "2 × cpu"
    assert two["tokens_seen"] == one["tokens_seen"]
    a, b = weights(tmp_path / "one"), weights(tmp_path / "two")
    # AdamW moves a weight by at most about the learning rate a step: an entry that rounding sends the other way in
    # every step is off by twice their sum; entries agree far better than that unless the batches differ.
    assert max((a[name] - b[name]).abs().max() for name in a) < 1e-3 * 2 * STEPS * settings.lr


def torchrun(*arguments):
    """The real command, on two processes that talk through gloo on loopback."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    subprocess.run([*command, "-m", "thereexists", *map(str, arguments)], check=True, timeout=300)


@pytest.mark.slow  # four more processes import everything
def test_torchrun_gives_the_loss_curve_of_one_process_and_resumes_its_run(data, cache, go, tmp_path, monkeypatch):
    """How far may the curves differ? Only the order of float32 sums differs. What that does is measured beside it.

    A run whose batches have their rows reversed is the same run in exact arithmetic, summed in another order. The
    first loss, before any update, is a mean of k positive terms: two orders differ by at most 2k·2^-24 of it.
    """
    monkeypatch.setenv("THEREEXISTS_CACHE", str(cache))
    corpus = data / "wikipedia/wiki_train_1.txt"
    asked = {"steps": STEPS, "length": 16, "batch": 8, "lr": 1e-3}
    options = [part for name, value in asked.items() for part in (f"--{name}", value)]
    options += ["--mixer", "attention", "--size", "tiny", "--corpus", corpus, "--vocabulary", 200]
    options += ["--precision", "fp32", "--device", "cpu", "--json"]
    model = {"size": "tiny", "mixer": "attention", "norm_first": True}
    model |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    settings = Settings(
        "mlm", Budget(steps=STEPS), model, {"corpus": str(corpus)}, {"vocabulary": 200},
        length=16, batch=8, lr=1e-3, precision="fp32",
    )  # fmt: skip
    one = go(settings, tmp_path / "one")["history"]
    with monkeypatch.context() as patch:
        plain = MaskedLM.batch
        patch.setattr(MaskedLM, "batch", lambda self, step: {k: v.flip(0) for k, v in plain(self, step).items()})
        reversed_rows = go(settings, tmp_path / "reversed")["history"]

    torchrun("train", "mlm", *options, "--out", tmp_path / "two")
    two = json.loads((tmp_path / "two" / RESULT).read_text())
    assert two["device"] == "2 × cpu"
    terms = 8 * round(0.15 * 14)
    assert abs(two["history"][0][1] - one[0][1]) <= 2 * terms * 2.0**-24 * one[0][1]
    allowed = 16 * max(abs(a[1] - b[1]) for a, b in zip(one, reversed_rows, strict=True)) + 2 * terms * 2.0**-24
    assert allowed < 1e-3  # far below what another mask or another batch does to a loss
    assert [step for step, _ in two["history"]] == [step for step, _ in one]
    assert max(abs(a[1] - b[1]) for a, b in zip(one, two["history"], strict=True)) <= allowed

    with monkeypatch.context() as patch:
        plain = MaskedLM.batch

        def stop_at_four(self, step):
            if step == 3:
                os.kill(os.getpid(), signal.SIGINT)
            return plain(self, step)

        patch.setattr(MaskedLM, "batch", stop_at_four)
        with pytest.raises(Interrupted):
            go(settings, tmp_path / "parts")
    torchrun("train", "mlm", *options, "--out", tmp_path / "parts", "--resume")
    resumed = json.loads((tmp_path / "parts" / RESULT).read_text())
    assert (resumed["device"], resumed["steps"]) == ("2 × cpu", STEPS)
    assert max(abs(a[1] - b[1]) for a, b in zip(one, resumed["history"], strict=True)) <= allowed
