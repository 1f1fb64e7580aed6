"""Checkpoints, results and experiments that are torn, forged or mistyped: one sentence, and nothing is trained."""

import errno
import io
import json
import os
import pickle
import shutil
import zipfile

import pytest
import torch

from tests.cli.fuzz import ctrl_c_after
from tests.cli.in_process import ran
from thereexists.experiments import run_folder

RUN = "train copy --mixer average --size tiny --length 8 --batch 2 --steps 4 --out r"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that was stopped after a step."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("THEREEXISTS_CACHE", str(folder / "cache"))
        patch.setattr("thereexists.experiments.training._evaluated", interrupted)
        assert ran(RUN, cwd=folder).code == 130
    assert (folder / "r/checkpoint/progress.json").is_file()
    return folder


def interrupted(*_):
    raise KeyboardInterrupt


def changed(**progress):
    return lambda record: record["progress"].update(progress)


RECORDS = {
    "no settings": lambda record: record.pop("settings"),
    "settings a list": lambda record: record.update(settings=[]),
    "no progress": lambda record: record.pop("progress"),
    "progress a list": lambda record: record.update(progress=[1]),
    "a key more": changed(zork=1),
    "a step in words": changed(step="x"),
    "half a step": changed(step=1.5),
    "a huge step": changed(step=1e300),
    "no seconds": changed(seconds=None),
    "history of nothing": changed(history=[[]]),
    "history a number": changed(history=5),
    "history in words": changed(history=[["a", "b"]]),
    "pending in words": changed(pending="x"),
    "curve a number": changed(curve=5),
    "curve of numbers": changed(curve=[5]),
    "history of the future": changed(history=[[99, 1.0]]),
    "a pending loss without end": changed(pending=1e308),
    "a pending loss of many digits": changed(pending=10**60),
    "seconds below 0": changed(seconds=-1.0),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("what", RECORDS)
def test_a_checkpoint_with_another_record(stopped, what):
    file = stopped / "r/checkpoint/progress.json"
    good = file.read_text()
    record = json.loads(good)
    RECORDS[what](record)
    file.write_text(json.dumps(record))
    done = ran(f"{RUN} --resume", cwd=stopped)
    file.write_text(good)
    assert done.code == 2, done
    assert "cannot be read" in done.stderr
    assert done.stderr.count("\n") == 1


OPTIMIZERS = {"empty": b"", "bytes": b"garbage", "pickle": pickle.dumps({"a": 1}), "list": None}


@pytest.mark.parametrize("content", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_a_checkpoint_with_another_optimizer(stopped, content):
    file = stopped / "r/checkpoint/optimizer.pt"
    good = file.read_bytes()
    file.write_bytes(content) if content is not None else torch.save([1], file)
    done = ran(f"{RUN} --resume", cwd=stopped)
    file.write_bytes(good)
    assert done.code == 2, done
    assert "cannot be read" in done.stderr


def test_a_pending_loss_that_is_a_whole_number_is_one(stopped, tmp_path):
    folder = shutil.copytree(stopped, tmp_path / "s")
    file = folder / "r/checkpoint/progress.json"
    record = json.loads(file.read_text())
    changed(pending=0)(record)
    file.write_text(json.dumps(record))
    done = ran(f"{RUN} --resume", cwd=folder)
    assert done.code == 0, done


def moved(state, **changes):
    state["param_groups"][0].update(changes)


STATES = {
    "a moment of another shape": lambda state: state["state"][0].update(exp_avg=torch.zeros(3)),
    "a moment less": lambda state: state["state"][0].pop("exp_avg_sq"),
    "no eps": lambda state: state["param_groups"][0].pop("eps"),
    "amsgrad": lambda state: moved(state, amsgrad=True),
    "one beta": lambda state: moved(state, betas=(0.9,)),
    "a step before the first": lambda state: state["state"][0].update(step=torch.tensor(-1e30)),
    "a moment of few": lambda state: state["state"][0].update(exp_avg=state["state"][0]["exp_avg"].to_sparse()),
    "moments that are one number": lambda state: state["state"][0].update(
        exp_avg=torch.zeros(1).expand(state["state"][0]["exp_avg"].shape)
    ),
    "moments that are one tensor": lambda state: state["state"][0].update(exp_avg_sq=state["state"][0]["exp_avg"]),
    "a step of eight bits": lambda state: state["state"][0].update(step=torch.tensor(1.0).to(torch.float8_e4m3fn)),
    "an endless rate": lambda state: moved(state, lr=float("inf")),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", STATES)
def test_a_checkpoint_with_another_state_of_the_optimizer(stopped, what):
    file = stopped / "r/checkpoint/optimizer.pt"
    good = file.read_bytes()
    state = torch.load(file, weights_only=True)
    STATES[what](state)
    torch.save(state, file)
    done = ran(f"{RUN} --resume", cwd=stopped)
    file.write_bytes(good)
    assert done.code == 2, done
    assert "cannot be read" in done.stderr


def test_an_optimizer_that_unpacks_to_more_is_not_unpacked(stopped):
    file = stopped / "r/checkpoint/optimizer.pt"
    good = file.read_bytes()
    with zipfile.ZipFile(io.BytesIO(good)) as there, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        for entry in there.infolist():
            bomb.writestr(entry.filename, there.read(entry))
    done = ran(f"{RUN} --resume", cwd=stopped)
    file.write_bytes(good)
    assert done.code == 2, done
    assert "it is compressed" in done.stderr


def test_a_run_goes_on_on_another_kind_of_device(stopped, tmp_path):
    """The optimizer of a GPU's checkpoint is fused and recorded; this machine's is not."""
    shutil.copytree(stopped / "r", tmp_path / "r")
    file = tmp_path / "r/checkpoint/optimizer.pt"
    state = torch.load(file, weights_only=True)
    for group in state["param_groups"]:
        group.update(fused=True, capturable=True)
    torch.save(state, file)
    done = ran(f"{RUN} --resume", cwd=tmp_path)
    assert done.code == 0, done


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.pt"])
def test_a_pipe_does_not_make_a_run_wait(stopped, name):
    file = stopped / "r/checkpoint" / name
    good = file.read_bytes()
    file.unlink()
    os.mkfifo(file)
    with ctrl_c_after(30):
        done = ran(f"{RUN} --resume", cwd=stopped)
    file.unlink()
    file.write_bytes(good)
    assert done.code == 2, done
    assert "a pipe" in done.stderr


def test_a_checkpoint_beyond_the_budget(stopped):
    file = stopped / "r/checkpoint/progress.json"
    good = file.read_text()
    record = json.loads(good)
    record["progress"]["step"] = 1 << 52
    file.write_text(json.dumps(record))
    done = ran(f"{RUN} --resume", cwd=stopped)
    file.write_text(good)
    assert done.code == 2, done
    assert "of 4; give another --out" in done.stderr


def test_a_model_of_somebody_elses_is_no_run_to_go_on_with(tmp_path):
    (tmp_path / "r").mkdir()
    for name in ("model.safetensors", "config.json"):
        (tmp_path / "r" / name).write_text("mine")
    for more in ("", " --resume"):
        done = ran(f"{RUN}{more}", cwd=tmp_path)
        assert done.code == 2
        assert "holds no run that could be continued" in done.stderr
    assert {file.read_text() for file in (tmp_path / "r").iterdir()} == {"mine"}


@pytest.mark.parametrize("result", [{"settings": []}, {"settings": None}, {"settings": {}, "metrics": {}}])
def test_a_result_that_is_none(tmp_path, result):
    (tmp_path / "r").mkdir()
    (tmp_path / "r/result.json").write_text(json.dumps(result))
    done = ran(f"{RUN} --resume", cwd=tmp_path)
    assert done.code == 2
    assert "is not the result of a run" in done.stderr


GOOD = """stages = ["copy"]
[sizes.tiny.copy]
steps = 2
batch = 2
length = 16
[[runs]]
name = "a"
[runs.model]
mixer = "average"
"""
AXIS = '[[axes]]\nlabel = "l"\nfield = "num_hidden_layers"\n'
EXPERIMENTS = {
    "stages a number": GOOD.replace('["copy"]', "5"),
    "stages of numbers": GOOD.replace('["copy"]', "[5]"),
    "an unknown stage": GOOD.replace('["copy"]', '["zz"]'),
    "no settings": GOOD.replace("sizes.tiny.copy", "sizes.tiny.mlm"),
    "sizes a number": 'stages = ["copy"]\nsizes = 5\nruns = []\n',
    "sizes a list": 'stages = ["copy"]\nsizes = ["tiny"]\nruns = []\n',
    "runs a number": 'stages = ["copy"]\nruns = 5\n[sizes.tiny.copy]\nsteps = 2\n',
    "no model": GOOD.split("[runs.model]")[0],
    "no name": GOOD.replace('name = "a"', ""),
    "a name that is a number": "name = 5\n" + GOOD,
    "an unknown setting": GOOD.replace("batch = 2", "zork = 2"),
    "a batch in words": GOOD.replace("batch = 2", 'batch = "x"'),
    "steps in words": GOOD.replace("steps = 2", 'steps = "x"'),
    "a rate in words": GOOD.replace("batch = 2", 'batch = 2\nlr = "x"'),
    "an axis without a field": GOOD + '[[axes]]\nlabel = "l"\n',
    "an axis of a number": GOOD + AXIS + "values = 5\n",
    "endless steps": GOOD.replace("steps = 2", "steps = inf"),
    "a date": GOOD.replace("batch = 2", "batch = 2020-01-01"),
    "a model that is a list": GOOD.replace('[runs.model]\nmixer = "average"', "model = [1]"),
    "a seed": GOOD.replace("batch = 2", "batch = 2\nseed = 3"),
}


def test_the_good_experiment(tmp_path):
    (tmp_path / "ex.toml").write_text(GOOD)
    assert ran("experiment ex.toml --size tiny --dry-run", cwd=tmp_path).code == 0


@pytest.mark.parametrize("what", EXPERIMENTS)
def test_an_experiment_that_is_none(tmp_path, what):
    (tmp_path / "ex.toml").write_text(EXPERIMENTS[what])
    done = ran("experiment ex.toml --size tiny --dry-run", cwd=tmp_path)
    assert done.code == 2, done
    assert done.stderr.count("\n") == 1


def test_a_full_disk_ends_the_curves_in_a_sentence_and_not_the_run(tmp_path, monkeypatch, capsys):
    import tensorboard.summary.writer.record_writer as record_writer

    def full(self, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(record_writer.RecordWriter, "write", full)
    done = ran(RUN, cwd=tmp_path)
    assert done.code == 0, done
    assert done.stderr.count("No TensorBoard curves from here on") == 1
    assert "Traceback" not in done.stderr + capsys.readouterr().err


def test_a_run_that_was_killed_while_its_model_was_written_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "write_json", interrupted)
    stopped = ran(f"{RUN} --checkpoint-seconds 0", cwd=tmp_path)
    assert (stopped.code, stopped.stderr.splitlines()[-1]) == (130, "Interrupted.")
    monkeypatch.undo()
    assert (tmp_path / "r/model.safetensors").exists()
    done = ran(f"{RUN} --resume", cwd=tmp_path)
    assert done.code == 0, done
    assert sorted(file.name for file in (tmp_path / "r").iterdir() if file.name.startswith(".")) == []


def test_a_checkpoint_that_is_a_link_is_replaced(stopped, tmp_path):
    shutil.copytree(stopped / "r", tmp_path / "r")
    (tmp_path / "r/checkpoint").rename(tmp_path / "elsewhere")
    (tmp_path / "r/checkpoint").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "r/.checkpoint.abcdefg1.thereexists-new").mkdir()  # a killed writer's
    done = ran(f"{RUN} --resume", cwd=tmp_path)
    assert done.code == 0, done
    assert (tmp_path / "elsewhere/progress.json").exists()
    assert not [file.name for file in (tmp_path / "r").iterdir() if "checkpoint" in file.name]


def test_what_a_user_keeps_beside_a_run_stays(tmp_path):
    assert ran(RUN, cwd=tmp_path).code == 0
    (tmp_path / "r/notes.txt").write_text("mine")
    run_folder.remove_run(tmp_path / "r")
    assert [file.name for file in (tmp_path / "r").iterdir()] == ["notes.txt"]
    (tmp_path / "r/notes.txt").unlink()
    run_folder.remove_run(tmp_path / "r")
    assert not (tmp_path / "r").exists()
