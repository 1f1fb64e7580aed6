"""A save that is killed between any two of its calls to the file system leaves the old artefact or the new one.

Python tells an audit hook of every such call before it happens; from the chosen one on, all of them fail, as those of a
process that is no more.
"""

import errno
import json
import os
import shutil
import sys
import tempfile
import warnings

import pytest

import thereexists as te
from thereexists.certificates import certificate as certificates
from thereexists.core import storage
from thereexists.core.atomic_files import filled_beside, write_beside
from thereexists.core.errors import Recovered
from thereexists.core.one_writer import one_writer
from thereexists.core.replaced_folders import fresh_beside
from thereexists.core.storage import reserved
from thereexists.core.whole_folders import appears, check_free
from thereexists.experiments.files import write_json
from thereexists.functions.targets import builtin
from thereexists.witness.verbs import certify

WRITING = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link", "shutil.rmtree", "tempfile.mkdtemp"}
left = [None]  # calls that still succeed; None: no kill is planned


class Killed(BaseException):
    pass


def _hook(event, arguments):
    if left[0] is None or not (event in WRITING or (event == "open" and _writes(arguments))):
        return
    if left[0] == 0:
        raise Killed
    left[0] -= 1


def _writes(arguments):
    return len(arguments) > 2 and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)


sys.addaudithook(_hook)


def killed_after(calls, work):
    """Whether the work was killed at this call; False once it makes no more calls than that."""
    left[0] = calls
    try:
        work()
        return False
    except Killed:
        return True
    finally:
        left[0] = None


@pytest.fixture(scope="module")
def witnesses():
    return [te.build(builtin(name, n=2), delta=1 / 2) for name in ("sort", "reverse")]


def test_a_killed_save_leaves_the_old_or_the_new_witness(witnesses, tmp_path):
    old, new = witnesses
    calls, seen = 0, set()
    while True:
        folder = tmp_path / f"{calls}" / "w"
        old.save(folder)
        if not killed_after(calls, lambda folder=folder: new.save(folder)):
            break
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            seen.add((te.load(folder).target.name, any(w.category is Recovered for w in told)))
        assert te.load(folder).target.name in ("sort", "reverse")
        new.save(folder)  # nothing that was left behind is in the way
        assert te.load(folder).target.name == "reverse"
        assert not [*folder.parent.glob(".w.*.thereexists-old"), *folder.parent.glob(".w.*.thereexists-new")]
        calls += 1
    assert calls >= 5
    assert seen == {("sort", False), ("sort", True), ("reverse", False)}  # one kill hid the old one: it came back


@pytest.mark.parametrize("write", [lambda file: write_beside(file, "text"), lambda file: write_json(file, {})])
def test_the_next_writer_of_a_file_removes_what_a_killed_one_left(tmp_path, write):
    calls = 0
    while True:
        file = tmp_path / f"{calls}" / "r.html"
        file.parent.mkdir()
        if not killed_after(calls, lambda file=file: write(file)):
            break
        write(file)
        assert [place.name for place in file.parent.iterdir()] == ["r.html"]
        calls += 1
    assert calls >= 3


def test_the_next_writer_of_a_folder_removes_what_a_killed_trial_left(tmp_path):
    calls = 0
    while True:
        folder = tmp_path / f"{calls}" / "w"
        folder.parent.mkdir()
        if not killed_after(calls, lambda folder=folder: storage.check_place(folder)):
            break
        with fresh_beside(folder):
            pass
        assert not list(folder.parent.iterdir())
        calls += 1
    assert calls >= 2


def test_what_a_living_writer_holds_or_somebody_else_wrote_is_not_removed(tmp_path):
    file = tmp_path / "r.html"
    others = [".r.html.abcdefgh.part", ".r.html.DOWNLOAD.part", ".r.html.abcdefgh.thereexists-partly"]
    others += [f".{name}.thereexists-part" for name in ("r.html", "r.html.abc", "s.html.abcdefgh")]
    for name in others:
        (tmp_path / name).write_text("precious")
    (tmp_path / ".r.html.abcdefgh.thereexists-part").mkdir()
    (tmp_path / ".r.html.ijklmnop.thereexists-part").symlink_to(tmp_path / others[0])
    (tmp_path / ".r.html.qrstuvwx.thereexists-part").write_text("half")
    there = {place.name for place in tmp_path.iterdir()} - {".r.html.qrstuvwx.thereexists-part"}
    with filled_beside(file, "first") as beside:
        write_beside(file, "second")
        assert beside.read_text() == "first"
        assert {place.name for place in tmp_path.iterdir()} == there | {file.name, beside.name}
    assert file.read_text() == "first"
    assert {place.name for place in tmp_path.iterdir()} == there | {file.name}


@pytest.mark.parametrize("made", ["mkstemp", "mkdtemp"])
def test_a_place_that_was_removed_before_it_was_held_is_made_again(tmp_path, monkeypatch, made):
    """By another writer, to whom nothing said that anybody was alive there."""
    true, seen = getattr(tempfile, made), []

    def raced(*words, **options):
        found = true(*words, **options)
        seen.append(found)
        if len(seen) == 1:
            os.unlink(found[1]) if made == "mkstemp" else os.rmdir(found)
        return found

    monkeypatch.setattr(tempfile, made, raced)
    with filled_beside(tmp_path / "r", "text") if made == "mkstemp" else fresh_beside(tmp_path / "r") as beside:
        assert beside.exists()
    assert len(seen) == 2


def test_a_killed_save_leaves_a_certificate_that_verifies(witnesses, tmp_path):
    witness = witnesses[0]
    first, second = (certify(witness, p=p, opinions=1) for p in (1.0, 2.0))
    statistical = certify(witness, opinions=1, samples=16, target=_bounded())
    assert statistical.kind == "statistical"
    for number, after in enumerate((second, statistical)):
        calls, seen = 0, set()
        while True:
            folder = tmp_path / f"{number}-{calls}" / "w"
            witness.save(folder)
            first.save(folder)
            if not killed_after(calls, lambda folder=folder, after=after: after.save(folder)):
                break
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Recovered)
                made = certificates.load_certificate(folder)
                seen.add(made.p if made.kind == "rigorous" else made.kind)
                if made.kind == "rigorous":
                    assert made.sums() == (first if made.p == 1 else second).sums()
            storage.check_writable(folder)  # leftovers are ours: a rebuild goes ahead
            witness.save(folder)
            assert {file.name for file in folder.iterdir()} == {"witness.json", "model.safetensors"}
            calls += 1
        assert calls >= 3
        assert 1.0 in seen
        assert len(seen) == 2


def _bounded():
    import numpy as np

    return te.Target(lambda X: np.sort(X, axis=1), n=2, bound=1.0, name="sort")


def test_what_was_put_in_order_is_said_in_one_sentence(witnesses, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "w"
    witnesses[0].save(folder)
    (tmp_path / ".w.abcdefg1.thereexists-old").mkdir()
    shutil.move(folder, tmp_path / ".w.abcdefg1.thereexists-old" / "previous")
    from thereexists import cli

    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(sys, "argv", ["thereexists", "run", str(folder), "--input", "0.3 0.1"])
    with warnings.catch_warnings():
        warnings.simplefilter("default", Recovered)
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert ended.value.code == 0
    assert capsys.readouterr().err == (
        f"Note: A save to {folder} was interrupted; the witness that was there before has been put back.\n"
    )


def test_a_link_is_not_put_back(witnesses, tmp_path):
    """Only what a save has left aside is: a folder, not a way to another one."""
    witnesses[0].save(tmp_path / "elsewhere")
    (tmp_path / ".w.abcdefg1.thereexists-old").mkdir()
    (tmp_path / ".w.abcdefg1.thereexists-old" / "previous").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(te.ThereExistsError, match="no saved witness"):
        te.load(tmp_path / "w")


def test_a_killed_export_leaves_the_old_or_the_new_folder_and_nothing_beside_it(tmp_path):
    def export(folder, word):
        content = json.dumps({"files": [], "word": word})
        appears(folder, "mark.json", "an export", lambda place: (place / "mark.json").write_text(content))

    calls, seen = 0, set()
    while True:
        folder = tmp_path / f"{calls}" / "e"
        export(folder, "old")
        if not killed_after(calls, lambda folder=folder: export(folder, "new")):
            break
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            check_free(folder, "mark.json", "an export")
        word = json.loads((folder / "mark.json").read_text())["word"]
        seen.add((word, any(w.category is Recovered for w in told)))
        export(folder, "again")
        beside = [file for file in folder.parent.iterdir() if file != folder]
        assert not any(any(file.iterdir()) for file in beside)  # at most the empty folder of a try to write
        calls += 1
    assert calls >= 5
    assert seen == {("old", False), ("old", True), ("new", False)}


def test_a_folder_that_is_being_filled_is_left_alone(tmp_path):
    with fresh_beside(tmp_path / "e") as ours:
        (ours / "file").write_text("half")
        with fresh_beside(tmp_path / "e") as theirs:
            assert theirs != ours
            assert (ours / "file").read_text() == "half"
    assert not list(tmp_path.iterdir())


def test_folders_of_longer_names_are_not_taken_for_leftovers(witnesses, tmp_path):
    """``.w.old.backup`` is a user's, ``.w.old.xxxxxxxx.…`` belong to ``w.old``: no save to ``w`` touches them."""
    users = (".w.old.backup", ".w.mybackup.old", ".w.my_notes.new", ".w.old.abcdefgh")
    kept = [tmp_path / name for name in (*users, ".w.old.abcdefgh.thereexists-old")]
    for folder in kept:
        folder.mkdir()
        (folder / "thesis.txt").write_text("three years of work")
    witnesses[0].save(tmp_path / "w.old")
    shutil.move(tmp_path / "w.old", kept[-1] / "previous")
    with pytest.raises(te.ThereExistsError, match="no saved witness"):
        te.load(tmp_path / "w")
    with fresh_beside(tmp_path / "w.old.v1") as filled:
        for witness in witnesses:
            witness.save(tmp_path / "w")
        assert filled.is_dir()
    assert all((folder / "thesis.txt").is_file() for folder in kept)
    with pytest.warns(Recovered):
        assert te.load(tmp_path / "w.old").target.name == "sort"


def _links(folder):
    (folder.parent / "real").mkdir()
    (folder / "my data").symlink_to("../real")


def _notes(folder):
    (folder / "src/__pycache__").mkdir(parents=True)
    (folder / "src/__pycache__/notes.txt").write_text("precious")


def _bytecode_alone(folder):
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/only.pyc").write_text("precious")


@pytest.mark.parametrize("fill", [_links, _notes, _bytecode_alone])
def test_a_folder_with_anything_in_it_is_not_empty(fill, tmp_path):
    folder = tmp_path / "__pycache__" / "e"  # whatever its own path is called
    folder.mkdir(parents=True)
    fill(folder)
    with pytest.raises(te.ThereExistsError, match="left alone"):
        check_free(folder, "mark.json", "an export")


def test_a_folder_under_a_name_of_ours_is_somebody_elses(witnesses, tmp_path):
    witnesses[0].save(tmp_path / "w")
    (tmp_path / "w/certificate.json").mkdir()
    (tmp_path / "w/certificate.json/mine").write_text("precious")
    with pytest.raises(te.ThereExistsError, match="left alone"):
        witnesses[0].save(tmp_path / "w")
    assert (tmp_path / "w/certificate.json/mine").read_text() == "precious"


def test_a_job_under_way_is_ours(witnesses, tmp_path):
    """A certification that was killed must not bar the same build for good."""
    witnesses[0].save(tmp_path / "w")
    (tmp_path / "w/.certify.job").mkdir()
    (tmp_path / "w/.certify.job/job.json").write_text("{}")
    witnesses[0].save(tmp_path / "w")
    assert te.load(tmp_path / "w").grid == witnesses[0].grid


def test_what_has_come_to_the_place_meanwhile_stays(witnesses, tmp_path):
    """A suite takes minutes: somebody may have put something where it is to appear."""

    def fill(beside):
        (beside / "mark.json").write_text('{"files": []}')
        with pytest.raises(te.ThereExistsError, match="Another process is writing"), reserved(tmp_path / "e"):
            pass
        (tmp_path / "e").mkdir()
        (tmp_path / "e/notes.txt").write_text("precious")

    with pytest.raises(te.ThereExistsError, match="left alone"):
        appears(tmp_path / "e", "mark.json", "a suite", fill)
    assert (tmp_path / "e/notes.txt").read_text() == "precious"


def test_a_lock_file_that_holds_something_is_somebody_elses(tmp_path):
    mine = tmp_path / ".w.lock"
    mine.write_text("precious")
    with pytest.raises(te.ThereExistsError, match="holds something"), reserved(tmp_path / "w"):
        pass
    assert mine.read_text() == "precious"


def test_what_a_killed_writer_of_another_kind_has_set_aside_stays(witnesses, tmp_path):
    witnesses[0].save(tmp_path / ".w.abcdefg1.thereexists-old" / "previous")
    appears(tmp_path / "w", "mark.json", "a suite", lambda place: (place / "mark.json").write_text('{"files": []}'))
    assert te.load(tmp_path / ".w.abcdefg1.thereexists-old" / "previous").grid == witnesses[0].grid


def test_a_folder_may_be_written_whose_surroundings_may_not(tmp_path, monkeypatch):
    def denied(*given, **more):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("thereexists.core.one_writer.os.open", denied)
    with one_writer(tmp_path / "w"):
        pass
    (tmp_path / ".w.lock").write_text("")  # another user's, who is writing there
    with pytest.raises(PermissionError), one_writer(tmp_path / "w"):
        pass
