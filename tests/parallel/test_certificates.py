"""One witness, one certificate: the same bytes whoever computes it, and however often somebody is killed meanwhile."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

import thereexists as te
from thereexists.certificates import certificate as certificates
from thereexists.certificates import cubes
from thereexists.certificates.block_sums import blocks_sha256
from thereexists.certificates.rigorous import rigorous_bound
from thereexists.core.errors import InvalidInput
from thereexists.core.storage import JOB
from thereexists.functions.targets import builtin
from thereexists.parallel import Workers, pools
from thereexists.parallel import job as job_module
from thereexists.parallel import map as parallel_map
from thereexists.parallel.job import ABOUT
from thereexists.parallel.secret import job_key
from thereexists.witness.verbs import certify


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A witness of 16 cubes, in blocks of one, with the certificate that one process makes."""
    folder = tmp_path_factory.mktemp("scale") / "w"
    te.build(builtin("sort", n=2), delta=1 / 4).save(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cubes, "CUBES", 1)
        certify(te.load(folder), opinions=1, folder=folder).save(folder)
    return folder


@pytest.fixture
def many_chunks(monkeypatch):
    """Small blocks, small chunks, and workers even for so short a job."""
    monkeypatch.setattr(cubes, "CUBES", 1)
    monkeypatch.setattr(parallel_map, "CHUNK_SECONDS", 0.0)
    monkeypatch.setattr(parallel_map, "WORTH_STARTING", 0.0)


@pytest.fixture
def again(saved, tmp_path):
    """The same witness in a folder of its own, and its certificate by other workers, as bytes."""
    folder = tmp_path / "w"
    te.load(saved).save(folder)

    def make(workers):
        certify(te.load(folder), opinions=1, folder=folder, workers=workers).save(folder)
        return (folder / certificates.FILE).read_bytes(), (folder / certificates.BLOCKS).read_bytes()

    make.folder = folder
    return make


def stored(folder):
    return (folder / certificates.FILE).read_bytes(), (folder / certificates.BLOCKS).read_bytes()


def kill_one(pids, job, after, killed):
    """Kill a worker, for real, once some chunks are finished."""

    def wait():
        while len(list(job.glob("*-*.json"))) < after:
            time.sleep(0.005)
        victim = pids()[0]
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def loky_workers():
    children = psutil.Process().children(recursive=True)
    return [c.pid for c in children if any("popen_loky" in part for part in c.cmdline())]


@pytest.mark.slow
def test_two_processes_and_a_killed_one_give_the_same_bytes(saved, again, many_chunks):
    killed = []
    thread = kill_one(loky_workers, again.folder / JOB, after=4, killed=killed)
    assert again(Workers(2)) == stored(saved)
    thread.join(timeout=5)
    assert len(killed) == 1
    assert not psutil.pid_exists(killed[0])
    assert not (again.folder / JOB).exists()


DRIVER = """
import sys, thereexists as te
from thereexists.certificates import cubes
from thereexists.witness.verbs import certify
cubes.CUBES = 1
from thereexists.parallel import map as parallel_map
parallel_map.CHUNK_SECONDS = 0.0
w = te.load(sys.argv[1])
certify(w, opinions=1, folder=sys.argv[1])
"""


@pytest.mark.slow
def test_processes_that_turn_out_not_to_be_worth_it_are_ended(saved, again, monkeypatch):
    """They start while the first block is timed; the job is then found to be short, and done here."""
    monkeypatch.setattr(cubes, "CUBES", 1)
    seen = []
    finish = parallel_map._finish
    monkeypatch.setattr(parallel_map, "_finish", lambda *given: (finish(*given), seen.append(os.getpid())))
    starting = parallel_map.starting

    def noted(workers, prepare):
        seen.append("started")
        return starting(workers, prepare)

    monkeypatch.setattr(parallel_map, "starting", noted)
    assert again(Workers(2)) == stored(saved)
    assert seen[0] == "started"
    assert set(seen[1:]) == {os.getpid()}
    assert not loky_workers()


@pytest.mark.slow
def test_a_mistake_in_the_first_block_is_told_and_ends_the_processes(again, many_chunks, monkeypatch):
    """It may come while they are still starting."""

    def wrong(*_):
        raise InvalidInput("first block")

    monkeypatch.setattr(parallel_map, "_finish", wrong)
    monkeypatch.setattr(pools, "_PATIENCE", 600.0)  # however busy the machine is
    with pytest.raises(InvalidInput, match="first block"):
        again(Workers(2))
    assert not loky_workers()


def test_a_killed_driver_resumes_without_doing_a_finished_chunk_again(saved, again, many_chunks, monkeypatch, tmp_path):
    monkeypatch.setenv("THEREEXISTS_STATE", str(tmp_path / "state"))  # a key that nobody else has a hand in
    job = again.folder / JOB
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(again.folder)])
    while len(list(job.glob("*-*.json"))) < 4 and driver.poll() is None:
        time.sleep(0.005)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL
    before = {file.name: file.stat().st_mtime_ns for file in job.glob("*-*.json")}
    assert 4 <= len(before) < 16
    theirs = json.loads((job / ABOUT).read_text())["job"]
    seen = []

    def note(done, total):
        assert json.loads((job / ABOUT).read_text())["job"] == theirs  # the same job in both processes
        seen.append({file.name: file.stat().st_mtime_ns for file in job.glob("*-*.json")})

    certify(te.load(again.folder), opinions=1, folder=again.folder, progress=note).save(again.folder)
    assert stored(again.folder) == stored(saved)
    assert before.items() <= seen[-1].items()


def test_a_job_that_came_with_the_folder_is_not_believed(saved, again, many_chunks, monkeypatch, tmp_path):
    """All chunks finished by a stranger, every one of them with the smallest error and the right code of his key."""
    monkeypatch.setenv("THEREEXISTS_STATE", str(tmp_path / "stranger"))
    with pytest.raises(KeyboardInterrupt):
        certify(te.load(again.folder), opinions=1, folder=again.folder, progress=interrupt)
    for file in (again.folder / JOB).glob("*-*.json"):
        chunk = json.loads(file.read_text())
        chunk["results"] = [[x * 1e-4 for x in sums] for sums in chunk["results"]]
        file.write_text(json.dumps({**chunk, "code": job_module._code(chunk, job_key(chunk["job"]))}))
    monkeypatch.setenv("THEREEXISTS_STATE", str(tmp_path / "me"))
    assert again(Workers(1)) == stored(saved)


def interrupt(done, total):
    if done >= 6:
        raise KeyboardInterrupt


def test_a_sample_is_undecided_at_best_and_finds_faults(saved, again, monkeypatch):
    monkeypatch.setattr(cubes, "CUBES", 2)
    again(Workers(1))
    verdict = te.verify(again.folder, opinions=1, sample=0.2)
    assert verdict.holds is None
    assert "2 of 8 blocks of 2 cubes" in verdict.reasons[0]
    assert te.verify(again.folder, opinions=1, sample=1.0).holds is True
    forge_blocks(again.folder, range(8))
    verdict = te.verify(again.folder, opinions=1, sample=0.2)
    assert verdict.holds is False
    assert any("not what their cubes give" in reason for reason in verdict.reasons)
    (again.folder / certificates.BLOCKS).unlink()
    assert te.verify(again.folder, opinions=1, sample=0.2).holds is False
    with pytest.raises(te.ThereExistsError, match="share above 0"):
        te.verify(again.folder, sample=0.0)


def forge_blocks(folder, numbers):
    """Move a little from one sum to the other, and redo every digest and every total."""
    made = certificates.load_certificate(folder)
    blocks = made.sums()
    for number in numbers:
        blocks[number][0] *= 1 - 1e-6
    problem = cubes.Problem(te.Grid.from_dict(made.grid), made.p, made.splits, made.output_bound, 2)
    found = rigorous_bound(problem, builtin("sort", n=2), blocks)
    sha = blocks_sha256(blocks)
    forged = dataclasses.replace(made, bound=found.total, parts=found.parts, blocks_sha256=sha, sums=lambda: blocks)
    forged.save(folder)


def test_nothing_in_the_witness_is_believed_by_a_verification(again, many_chunks, tmp_path, monkeypatch):
    monkeypatch.setattr(cubes, "CUBES", 2)
    again(Workers(1))
    verdict = te.verify(again.folder, opinions=1, job=again.folder / "job")
    assert verdict.holds is None  # a mistake of the caller
    assert "must not lie in the witness" in verdict.reasons[0]
    with pytest.raises(KeyboardInterrupt):
        te.verify(again.folder, opinions=1, job=tmp_path / "mine", progress=interrupt)
    done = []
    assert te.verify(again.folder, opinions=1, job=tmp_path / "mine", progress=lambda d, t: done.append(d)).holds
    assert done[0] >= 6  # went on where it stopped


RAY = """
import json, os, signal, sys, threading, time
from pathlib import Path
import psutil, thereexists as te
from thereexists.certificates import cubes
from thereexists.witness.verbs import certify
from thereexists.core.storage import JOB
from thereexists.parallel import Workers
from thereexists.parallel import map as parallel_map

cubes.CUBES, parallel_map.CHUNK_SECONDS = 1, 0.0
folder, killed, addresses = Path(sys.argv[1]), [], set()


def watch():  # kill a worker of the cluster once some chunks are finished, and see who listens where
    while len(list((folder / JOB).glob("*-*.json"))) < 4:
        time.sleep(0.005)
    family = psutil.Process().children(recursive=True)
    victim = next(c for c in family if "PoolActor" in " ".join(c.cmdline()))
    victim.send_signal(signal.SIGKILL)
    killed.append(victim.pid)
    for process in (psutil.Process(), *family):
        try:
            found = process.net_connections(kind="inet")
        except psutil.Error:
            continue
        addresses.update(c.laddr.ip.removeprefix("::ffff:") for c in found if c.status == psutil.CONN_LISTEN)


thread = threading.Thread(target=watch, daemon=True)
thread.start()
certify(te.load(folder), opinions=1, folder=folder, workers=Workers(2, "ray")).save(folder)
thread.join(timeout=10)
print(json.dumps({"killed": len(killed), "listening": sorted(addresses)}))
"""


@pytest.mark.slow  # a cluster takes its time to start
def test_a_local_ray_cluster_with_a_killed_worker_gives_the_same_bytes_and_stays_on_loopback(saved, again):
    pytest.importorskip("ray")
    run = subprocess.run([sys.executable, "-c", RAY, str(again.folder)], capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    seen = json.loads(run.stdout.splitlines()[-1])
    assert seen["killed"] == 1
    assert seen["listening"] == ["127.0.0.1"]
    assert stored(again.folder) == stored(saved)


def test_a_folder_with_files_of_ones_own_is_no_job(tmp_path):
    """Though one of them is called job.json: nothing is thrown away that a job did not write."""
    witness = te.build(builtin("sort", n=2), delta=1 / 2)
    witness.save(tmp_path / "w")
    te.certify(tmp_path / "w")
    mine = tmp_path / "mine"
    (mine / "sub").mkdir(parents=True)
    for name in ("job.json", "thesis.txt", "sub/data.csv"):
        (mine / name).write_text("mine")
    assert te.verify(tmp_path / "w", job=mine).holds is None
    assert sorted(path.name for path in mine.rglob("*")) == ["data.csv", "job.json", "sub", "thesis.txt"]
