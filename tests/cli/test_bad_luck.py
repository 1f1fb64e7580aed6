"""A full disk, a folder that nobody may write, a file that is in the way, somebody else at work, Ctrl-C."""

import multiprocessing
import resource
import shutil
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

import thereexists as te
import thereexists.__main__ as entry
from tests.cli import fuzz
from tests.cli.in_process import ran
from thereexists.core.errors import Obstructed
from thereexists.core.one_writer import one_writer
from thereexists.experiments import training
from thereexists.functions.targets import builtin

FOLDERS = {  # commands that write a folder
    "build": "build sort --n 2 --delta 1/4 --no-certify --out {}",
    "program": "build p.py:p --out {}",
    "automaton": "build 'regex:(ab)*' --alphabet ab --n 4 --out {}",
    "table": "build table.csv --out {}",
    "memorise": "memorise pairs.jsonl --out {}",
    "export": "export m --to torch --out {}",
    "head": "heads fit t.npz --method corrected --out {}",
}
ONE_FILE = {  # and those that write a file
    "random": "heads random --length 99 --k 2 --out {}.npz",
    "study": "heads study --lengths 8 --k 1 --methods corrected --out {}.json",
    "plot": "heads fit t.npz --method corrected --plot {}.png",
    "draw": "pattern draw star --n 8 --out {}.svg",
    "picture": "pattern check star --n 8 --picture {}.png",
    "path": "pattern check star --n 99 --path-out {}.npy",
    "report": "report w --out {}.html",
    "run": "run w --input many.npy --out {}.npy",
    "results": "results r --report {}.md",
}
EVERY = FOLDERS | ONE_FILE


@pytest.fixture(scope="module")
def folder(artefacts):
    (artefacts / "table.csv").write_text("x1,y1\n0,1\n1,0\n")
    np.save(artefacts / "many.npy", np.full((99, 2, 1), 0.25))
    return artefacts


@contextmanager
def full_disk():
    """No file longer than 100 bytes: the write fails as on a full disk, with another number."""
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, most[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)


def listed(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("what", EVERY)
def test_a_full_disk(folder, what):
    before = listed(folder)
    with full_disk():
        done = ran(EVERY[what].format("new"), cwd=folder)
    assert done.code == 2, done
    assert done.stderr.startswith("Error: Cannot write new")
    assert done.stderr.count("\n") == 1
    assert listed(folder) == before


@pytest.mark.sampled(4)
@pytest.mark.parametrize("what", EVERY)
def test_a_folder_that_nobody_may_write(folder, what):
    before = listed(folder)
    done = ran(EVERY[what].format("/proc/new"), cwd=folder)
    assert done.code == 2, done
    assert "/proc" in done.stderr
    assert done.stderr.count("\n") == 1
    assert listed(folder) == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", [*ONE_FILE, "memorise", "export"])
def test_folders_that_are_missing_are_made_and_no_file_is_replaced_unasked(folder, tmp_path, what):
    line, place = EVERY[what], tmp_path / "some" / "where" / "new"
    assert ran(line.format(place), cwd=folder).code == 0
    (made,) = place.parent.iterdir()
    if what not in ONE_FILE:
        return
    made.write_text("mine")
    done = ran(line.format(place), cwd=folder)
    assert done.code == 2, done
    assert "exists; add --force" in done.stderr
    assert made.read_text() == "mine"
    assert ran(line.format(place) + " --force", cwd=folder).code == 0
    assert made.read_bytes() != b"mine"


@pytest.mark.parametrize("line", ["show {}", "verify {}", "run {} --input '0 0'", "report {}", "heads verify {}"])
@pytest.mark.parametrize("place", ["/proc/self/mem", "no-such", "/proc/self/fd"])
def test_what_cannot_be_read(folder, line, place):
    done = ran(line.format(place), cwd=folder)
    assert done.code == 2, done
    assert (done.stderr + done.stdout).strip()


def hold(path, held):
    with one_writer(path):
        held.set()
        time.sleep(60)


@contextmanager
def another_process_writes(path):
    """Until the end of the block; then it is killed."""
    context = multiprocessing.get_context("fork")
    held = context.Event()
    process = context.Process(target=hold, args=(path, held))
    process.start()
    assert held.wait(30)
    try:
        yield
    finally:
        process.kill()
        process.join()


@pytest.fixture
def somebody(folder):
    with another_process_writes(folder / "new"):
        yield


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", [name for name in FOLDERS if name != "export"])
def test_somebody_else_writes_the_same_folder(folder, what, somebody):
    before = listed(folder)
    done = ran(FOLDERS[what].format("new"), cwd=folder)
    assert done.code == 2, done
    assert "Another process is writing new" in done.stderr
    assert listed(folder) == before


def test_two_trainings_into_one_folder(folder, somebody):
    (folder / "new").mkdir()
    done = ran(f"train copy --pattern star --layers 1 {fuzz.SMALL}", cwd=folder)
    (folder / "new").rmdir()
    assert done.code == 2, done
    assert "Another process is writing new" in done.stderr


def test_a_killed_writer_blocks_nobody(tmp_path):
    with another_process_writes(tmp_path / "w"), pytest.raises(Obstructed), one_writer(tmp_path / "w"):
        pass
    with one_writer(tmp_path / "w"):
        pass
    assert listed(tmp_path) == []


def test_a_failed_training_does_not_block_its_correction(folder, monkeypatch):
    line = f"train copy --pattern star --layers 1 {fuzz.SMALL}"
    with monkeypatch.context() as patch:
        patch.setattr(training, "_loop", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ran(line, cwd=folder)
    assert ran(line, cwd=folder).code == 0
    shutil.rmtree(folder / "new")


def interrupted(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("line", "inner"),
    [
        ("verify w", "thereexists.core.storage.read"),
        ("build sort --n 2 --delta 1/4 --out new", "thereexists.core.storage.save_tensors"),
        ("report w --out new.html", "thereexists.reports.html.Page.save"),
        ("pattern check star --n 8", "thereexists.patterns.check"),
    ],
)
def test_ctrl_c_is_130_and_leaves_nothing(folder, line, inner, monkeypatch):
    before = listed(folder)
    monkeypatch.setattr(inner, interrupted)
    assert ran(line, cwd=folder).code == 130
    assert listed(folder) == before


def test_saving_to_a_full_disk_from_python(tmp_path):
    witness = te.build(builtin("sort", n=2), delta=1 / 2)
    with full_disk(), pytest.raises(te.ThereExistsError, match="Cannot write"):
        witness.save(tmp_path / "w")
    assert listed(tmp_path) == []


def test_ctrl_c_while_python_still_imports(monkeypatch, capsys):
    with monkeypatch.context() as patched:
        patched.delitem(sys.modules, "thereexists.cli", raising=False)
        patched.setattr(sys, "meta_path", [_Interrupting()])
        with pytest.raises(SystemExit) as ended:
            entry.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Interrupted.\n"


class _Interrupting:
    def find_spec(self, *_):
        raise KeyboardInterrupt
