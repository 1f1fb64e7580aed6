"""A job's folder: resumable, and never a wrong, a missing or a doubled block. Every fault here is planted."""

import json
import sys
from contextlib import nullcontext

import pytest

from thereexists.core.errors import BadWitnessFile, InvalidInput
from thereexists.parallel import secret
from thereexists.parallel.job import ABOUT, CODE, JobFolder, _code, name_of, put
from thereexists.parallel.ranges import Range, missing
from thereexists.parallel.secret import _user_key, job_key

PARTS = [Range(0, 1), Range(1, 4), Range(4, 6)]


@pytest.fixture
def folder(tmp_path):
    job = JobFolder(tmp_path / "job", "key", 6)
    job.settle(3)
    for part in PARTS:
        put(job.path, "key", part, [10.0 * number for number in range(part.first, part.stop)], job.secret)
    return job.path


def change(file, redo=True, **fields):
    """``redo``: with the right code, which only this user could make; else with that of a stranger's key."""
    chunk = {**json.loads(file.read_text()), **fields}
    secret = job_key("key") if redo else b"guess"
    file.write_text(json.dumps({**chunk, CODE: _code(chunk, secret)}))


def test_results_come_in_the_order_of_the_blocks(folder):
    assert JobFolder(folder, "key", 6).results() == [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]
    assert JobFolder(folder, "key", 6).chunk == 3


FAULTS = {
    "missing chunk": lambda f: (f / name_of(PARTS[1])).unlink(),
    "altered chunk": lambda f: change(f / name_of(PARTS[1]), redo=False, results=[1.0, 2.0, 3.0]),
    "truncated chunk": lambda f: (f / name_of(PARTS[1])).write_text("{"),
    "too few results": lambda f: change(f / name_of(PARTS[1]), results=[10.0]),
    "chunk of another job": lambda f: change(f / name_of(PARTS[1]), job="other"),
    "range that is not its name's": lambda f: change(f / name_of(PARTS[1]), first=2, stop=5),
    "field that does not belong": lambda f: change(f / name_of(PARTS[1]), note="trust me"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_chunk_is_a_gap(folder, fault):
    FAULTS[fault](folder)
    job = JobFolder(folder, "key", 6)
    assert missing(job.finished(), 6) == [PARTS[1]]
    with pytest.raises(BadWitnessFile, match="blocks 1 to 4 of 6 are missing"):
        job.results()


def test_overlapping_chunks_are_refused_even_if_they_agree(folder):
    put(folder, "key", Range(3, 6), [30.0, 40.0, 50.0], job_key("key"))
    with pytest.raises(BadWitnessFile, match="counted once"):
        JobFolder(folder, "key", 6).results()


@pytest.mark.parametrize(("key", "total"), [("other", 6), ("key", 7)])
def test_another_jobs_folder_is_started_afresh(folder, key, total):
    assert JobFolder(folder, key, total).finished() == {}
    assert [file.name for file in folder.iterdir()] == [ABOUT]


def test_somebody_elses_folder_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InvalidInput, match="not a job's"):
        JobFolder(tmp_path, "key", 6)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


@pytest.mark.parametrize("file", [ABOUT, "000000000000-000000000003.json"])
def test_no_depth_of_a_strangers_file_is_an_error(folder, file):
    """Reading and writing take different depths: between them is one that can be read and not be written again."""
    for depth in range(sys.getrecursionlimit() - 150, sys.getrecursionlimit() + 20):
        (folder / file).write_text('{"code": "x", "a": ' + "[" * depth + "]" * depth + "}")
        with pytest.raises(InvalidInput, match="not a job's") if file == ABOUT else nullcontext():
            JobFolder(folder, "key", 6).finished()


@pytest.mark.parametrize("own", ['{"job": "of another program"}', "not JSON", None])
def test_a_users_own_job_file_is_left_alone(tmp_path, own):
    mine = tmp_path / ABOUT
    mine.mkdir() if own is None else mine.write_text(own)
    with pytest.raises(InvalidInput, match="not a job's"):
        JobFolder(tmp_path, "key", 6)
    assert mine.is_dir() if own is None else mine.read_text() == own


def test_a_users_own_notes_beside_the_chunks_are_left_alone(folder):
    (folder / "verify-2.json").write_text("precious")
    assert list(JobFolder(folder, "key", 6).finished())
    assert (folder / "verify-2.json").read_text() == "precious"


def test_a_users_own_parts_are_left_alone(tmp_path):
    (tmp_path / "first-part").mkdir()
    (tmp_path / "first-part" / "thesis.txt").write_text("precious")
    with pytest.raises(InvalidInput, match="not a job's"):
        JobFolder(tmp_path, "key", 6)
    assert (tmp_path / "first-part" / "thesis.txt").read_text() == "precious"


@pytest.mark.parametrize("of", [ABOUT, name_of(Range(0, 1))])
def test_what_a_killed_writer_left_is_thrown_away(tmp_path, of):
    left = tmp_path / f".{of}.abcd1234.thereexists-part"
    left.write_text("half")
    assert JobFolder(tmp_path, "key", 6).finished() == {}
    assert not left.exists()


def test_a_job_of_somebody_else_is_started_afresh(folder, tmp_path, monkeypatch):
    """The same files with another user's key: not one chunk is believed, and neither is the size of the chunks."""
    monkeypatch.setenv("THEREEXISTS_STATE", str(tmp_path / "another user"))
    job = JobFolder(folder, "key", 6)
    assert job.chunk is None
    assert job.finished() == {}


def test_a_key_that_others_could_have_read_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("THEREEXISTS_STATE", str(tmp_path))
    first = job_key("key")
    file = tmp_path / "job.key"
    assert file.stat().st_mode & 0o777 == 0o600
    _user_key.cache_clear()
    assert job_key("key") == first
    file.chmod(0o644)
    _user_key.cache_clear()
    assert job_key("key") != first
    assert file.stat().st_mode & 0o777 == 0o600


def test_of_two_processes_that_make_the_key_at_once_both_have_the_first_ones(tmp_path, monkeypatch):
    """The other one finishes between our look, which finds none, and our writing."""
    monkeypatch.setenv("THEREEXISTS_STATE", str(tmp_path))
    look = secret._ours_alone
    looks = []

    def look_then_lose(file):
        looks.append(look(file))
        if len(looks) == 1:
            file.write_bytes(b"theirs".ljust(32))
            file.chmod(0o600)
        return looks[-1]

    monkeypatch.setattr(secret, "_ours_alone", look_then_lose)
    assert _user_key(str(tmp_path)) == b"theirs".ljust(32) == (tmp_path / "job.key").read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["job.key"]


def test_without_a_place_for_the_key_nothing_is_resumed_and_nothing_fails(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("THEREEXISTS_STATE", str(tmp_path / "file"))
    assert job_key("key") == job_key("key")  # within this process
    first = job_key("key")
    _user_key.cache_clear()
    assert job_key("key") != first
