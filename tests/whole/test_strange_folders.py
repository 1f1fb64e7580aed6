"""A folder that somebody else made: links, pipes and devices under the names that we write and read."""

import json
import os
import threading

import pytest

import thereexists as te
from thereexists import program as P
from thereexists.core.atomic_files import is_part_of, parts_of, write_beside
from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import record_digest as digest
from thereexists.functions.targets import builtin
from thereexists.parallel.job import JobFolder, name_of, put
from thereexists.parallel.ranges import Range
from thereexists.patterns.configs import from_config
from thereexists.witness.verbs import certify

NAMES = ("certificate.json", "certificate.blocks.safetensors")


@pytest.fixture(scope="module")
def witnesses():
    return {"cells": te.build(builtin("sort", n=2), delta=1 / 2), "program": te.build(P.sort(P.tokens(3)))}


@pytest.fixture
def victim(tmp_path):
    file = tmp_path / "victim"
    file.write_text("mine")
    yield file
    assert file.read_text() == "mine"
    assert not file.is_symlink()


@pytest.mark.parametrize("kind", ["cells", "program"])
def test_a_link_in_the_folder_is_never_written_through(kind, witnesses, victim, tmp_path):
    folder = tmp_path / "w"
    witnesses[kind].save(folder)
    for name in NAMES:
        for place in (name, f".{name}.thereexists-part", f".{name}.{os.getpid()}.thereexists-part"):
            (folder / place).unlink(missing_ok=True)
            (folder / place).symlink_to(victim)
    made = certify(te.load(folder) if kind == "cells" else witnesses[kind])
    made.save(folder)
    assert not (folder / NAMES[0]).is_symlink()
    assert json.loads((folder / NAMES[0]).read_text())["bound"] == made.bound


@pytest.mark.parametrize("kind", ["cells", "program"])
def test_a_folder_where_the_certificate_goes_is_one_sentence(kind, witnesses, tmp_path):
    folder = tmp_path / "w"
    witnesses[kind].save(folder)
    made = certify(witnesses[kind])
    (folder / NAMES[0]).unlink(missing_ok=True)
    (folder / NAMES[0]).mkdir()
    with pytest.raises(InvalidInput, match="it is a folder"):
        made.save(folder)
    assert not list(folder.glob(".*"))


def test_no_word_of_the_old_certificate_is_kept(witnesses, tmp_path):
    folder = tmp_path / "w"
    witnesses["program"].save(folder)
    file = folder / NAMES[0]
    record = json.loads(file.read_text())
    record["reasons"] = {"float16": "call this number"}
    record["dtype"] = "call this number"
    record["digest"] = digest(record)
    file.write_text(json.dumps(record))
    loaded = te.load(folder)
    object.__setattr__(loaded, "made", te.certificates.certificate.load_certificate(folder))
    certify(loaded).save(folder)
    assert "call" not in file.read_text()


def test_the_writer_replaces_a_link_and_refuses_a_device(victim, tmp_path):
    (tmp_path / "a").symlink_to(victim)
    write_beside(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="no ordinary file"):
        write_beside(tmp_path / "pipe", "new")
    with pytest.raises(InvalidInput, match="Cannot write"):
        write_beside(tmp_path / "none" / "a", b"new")
    with pytest.raises(RuntimeError):
        write_beside(tmp_path / "a", _fails)
    assert sorted(os.listdir(tmp_path)) == ["a", "pipe", "victim"]


def _fails(stream):
    stream.write(b"half")
    raise RuntimeError


def test_only_files_of_our_own_naming_count_as_left_by_a_kill(victim, tmp_path):
    assert is_part_of(".a.json.x1_y2z3w.thereexists-part", "a.json")
    others = (".a.json.x.%", "a.json.%", ".a.json.x1y2z3wv", ".a.json.../../e.%", ".b.json.%", ".a.json.%")
    for other in (*(name.replace("%", "thereexists-part") for name in others), ".a.json.x1_y2z3w.part"):
        assert not is_part_of(other, "a.json")
    (tmp_path / ".a.json.thereexists-part").symlink_to(victim)
    assert parts_of(tmp_path / "a.json") == []


def test_a_job_that_is_a_link_is_not_emptied(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "job.json").write_text("{}")
    (tmp_path / "mine" / "thesis").write_text("all of it")
    (tmp_path / "job").symlink_to(tmp_path / "mine")
    with pytest.raises(InvalidInput, match="is a link"):
        JobFolder(tmp_path / "job", "k", 4)
    assert (tmp_path / "mine" / "thesis").read_text() == "all of it"


def _pipe(file):
    os.mkfifo(file)


def _zero(file):
    file.symlink_to("/dev/zero")


def _loop(file):
    file.symlink_to(file.name)


def _surrogate(file):
    file.write_text(json.dumps({"job": "k", "blocks": 4, "chunk": 2, "code": "\ud800"}))


def _words(file):
    file.write_text(json.dumps({"job": "k", "code": "é"}))


def _large(file):
    with file.open("wb") as stream:
        stream.truncate(1 << 40)


STRANGE = [_pipe, _zero, _loop, _large]


@pytest.mark.parametrize("plant", [*STRANGE, _surrogate, _words, os.mkdir])
def test_a_job_throws_away_what_is_no_chunk(plant, tmp_path):
    job = JobFolder(tmp_path / "job", "k", 4)
    job.settle(2)
    put(job.path, "k", Range(0, 2), [1, 2], job.secret)
    plant(job.path / name_of(Range(2, 4)))
    (job.path / "a-b.json").write_text("{}")
    assert job.count() == (2, 4)
    assert list(within_seconds(job.finished)) == [Range(0, 2)]
    (job.path / "a-b.json").unlink()  # it is somebody's, and stays where it is
    (job.path / "job.json").unlink()
    plant(job.path / "job.json")
    if plant is _surrogate:  # as somebody else's job would have it
        assert within_seconds(lambda: JobFolder(tmp_path / "job", "k", 4).chunk) is None
    else:
        with pytest.raises(InvalidInput, match="not a job's"):
            within_seconds(lambda: JobFolder(tmp_path / "job", "k", 4))
        assert os.path.lexists(job.path / "job.json")


def within_seconds(work, seconds=20):
    """The result; a call that waits for ever fails the test instead of stopping it."""
    found = []

    def keep():
        try:
            found.append((work(), None))
        except BaseException as error:
            found.append((None, error))

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it does not end"
    if found[0][1] is not None:
        raise found[0][1]
    return found[0][0]


def _memory(file):
    file.symlink_to("/proc/self/mem")


@pytest.mark.parametrize("plant", [*STRANGE, _memory, os.mkdir])
@pytest.mark.parametrize("name", ["witness.json", "model.safetensors", NAMES[0]])
def test_a_witness_with_a_strange_file_is_one_sentence(plant, name, witnesses, tmp_path):
    from thereexists.reports import report

    if plant is _large and name == "model.safetensors":
        return  # weights may be long: their hash takes as long as they are
    folder = tmp_path / "w"
    witnesses["cells"].save(folder)
    (folder / name).unlink(missing_ok=True)
    plant(folder / name)
    readers = [report] if name == NAMES[0] else [report, te.load]
    for read in [*readers, te.certificates.certificate.load_certificate]:
        if name != NAMES[0] and read not in readers:
            continue
        with pytest.raises(te.ThereExistsError):
            within_seconds(lambda read=read: read(folder))


@pytest.mark.parametrize("plant", STRANGE)
def test_pairs_inputs_and_records_are_ordinary_files(plant, tmp_path):
    from thereexists.cli._input import read_sequences
    from thereexists.experiments.results import read
    from thereexists.functions.pairs import read_jsonl
    from thereexists.patterns.configs import load_config
    from thereexists.reports import report

    (tmp_path / "runs").mkdir()
    plant(tmp_path / "runs" / "a.jsonl")
    file = tmp_path / "runs" / "a.jsonl"
    for work in (
        lambda: read_jsonl(file),
        lambda: read([file]),
        lambda: read([tmp_path / "runs"]),
        lambda: report(tmp_path / "runs"),
        lambda: load_config(file),
        lambda: read_sequences(str(file.rename(tmp_path / "a.csv")), 2, 1),
    ):
        with pytest.raises(te.ThereExistsError):
            within_seconds(work)


def test_a_walk_ends(tmp_path):
    from thereexists.core.regular_files import files_below

    for i in range(4):
        (tmp_path / f"{i}" / "a").mkdir(parents=True)
        (tmp_path / f"{i}" / "a" / "run.json").write_text("{}")
    (tmp_path / "0" / "again").symlink_to(tmp_path)
    assert len(list(files_below(tmp_path))) == 4
    with pytest.raises(InvalidInput, match="more than 5 files"):
        list(files_below(tmp_path, 5))


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": ["a"]},
        {"model_type": {}},
        {"model_type": "gpt_neo", "attention_types": [[["global", "local"], 99999999999]], "window_size": 1},
        {"model_type": "gpt_neo", "attention_types": [[["global"], [1]]]},
        {"model_type": "mistral", "sliding_window": 4, "num_hidden_layers": 10**9},
        {"model_type": "big_bird", "block_size": 0, "num_hidden_layers": 2},
        {"model_type": "modernbert", "global_attn_every_n_layers": 0, "num_hidden_layers": 2},
    ],
)
def test_a_hostile_config_is_one_sentence(config):
    with pytest.raises(InvalidInput):
        from_config(config, 16)
