"""``seconds`` is kept, on instances that the solver does not finish; Ctrl-C ends everything; nothing stays behind."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.patterns.graphs import board
from thereexists.patterns import check, from_mask, recheck_path
from thereexists.patterns.obstructions import Exhausted
from thereexists.patterns.paths import find_path

pytest.importorskip("pysat")


def hard(side=15, seed=0):
    """The board, all of whose tokens also see three others that see each other and nothing of the board.

    A path has to leave the board by them for good, so the board alone still has none. Now no few tokens hold many parts
    together, since the three are joined to everybody.
    """
    inner = board(side, seed)
    mask = np.ones((len(inner) + 3, len(inner) + 3), bool)
    mask[:-3, :-3] = inner
    mask[-3:, :-3] = False
    return mask


def processes(marker):
    """Command lines of all processes that carry ``marker`` in their environment, zombies without one aside."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().decode())
        except OSError:
            continue
    return found


def zombies():
    """Children of this process that have ended and were not waited for."""
    done = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "stat="], capture_output=True, text=True)
    return done.stdout.count("Z")


@pytest.mark.parametrize("seconds", [0, 2.5])
def test_the_search_for_a_path_keeps_its_time(seconds):
    import scipy.sparse.csgraph  # noqa: F401  (its first import is not part of the search)

    pattern = from_mask(hard())
    began = time.perf_counter()
    found = find_path(pattern, seconds)
    spent = time.perf_counter() - began
    assert (found.status, found.path, found.obstruction) == ("undecided", None, None)
    assert ("the time was over" if seconds else "no time") in found.effort
    assert spent < seconds + 1
    assert zombies() == 0


def test_the_whole_verdict_keeps_its_time():
    """The depth too: bitsets of 30,000 tokens would take many times as long."""
    from thereexists.patterns import random

    pattern = random(30_000, degree=40, seed=3)
    began = time.perf_counter()
    verdict = check(pattern, seconds=0.5)
    assert time.perf_counter() - began < 4  # listing a million edges, and an import, included
    assert verdict.depth_result.lower >= 3
    assert verdict.universal is None or verdict.depth is not None


def test_what_the_search_finds_comes_back_through_the_pipe():
    rng = np.random.default_rng(1)
    name = rng.permutation(60)
    k = np.arange(60)
    mask = (abs(k[:, None] - k) <= 2)[np.ix_(name, name)]
    pattern = from_mask(mask)
    verdict = check(pattern, seconds=60)
    assert verdict.path_result.status == "found"
    assert recheck_path(pattern, verdict.path, verdict.edge_steps)


@pytest.mark.slow
def test_a_refutation_comes_back_through_the_pipe():
    found = find_path(from_mask(hard(5)), 60)  # the same board, small enough to be refuted
    assert found.status == "impossible"
    assert isinstance(found.obstruction, Exhausted)


def test_a_search_process_that_breaks_is_undecided_and_not_an_answer():
    from thereexists.patterns.isolated import call

    assert call("thereexists.patterns.no_such_module", "f", (), 30).why == "the search process ended with code 1"
    assert call("os", "_exit", (), 30).finished is False
    assert call("operator", "not_", (), 0).why == "no time was left"


posix = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks at /proc")


def hears_ctrl_c():
    """Also where the tests run in the background of a script, whose children ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@posix
@pytest.mark.parametrize("ending", ["time", "interrupt", "kill"])
def test_the_command_keeps_its_time_and_leaves_nothing_behind(ending, tmp_path):
    """At the deadline, on Ctrl-C, and when the command itself is killed: the search process is gone soon after."""
    np.savez(tmp_path / "board.npz", mask=hard())
    marker = f"THEREEXISTS_TEST={ending}{os.getpid()}"
    command = [sys.executable, "-m", "thereexists", "pattern", "check", str(tmp_path / "board.npz"), "--json"]
    limit = {"time": 2, "kill": 3, "interrupt": 300}[ending]
    environment = dict(os.environ) | {marker.split("=")[0]: marker.split("=")[1]}
    with subprocess.Popen(
        [*command, "--seconds", str(limit)], env=environment, stdout=subprocess.PIPE, text=True, preexec_fn=hears_ctrl_c
    ) as process:
        if ending == "time":
            out, _ = process.communicate(timeout=60)
            verdict = json.loads(out)
            assert verdict["hamiltonian_path"]["status"] == "undecided"
            assert verdict["seconds"] < limit + 1.5  # the depth is not part of the search
        else:
            waited = time.perf_counter()
            while not any("_child" in line for line in processes(marker)):
                assert time.perf_counter() - waited < 60
                time.sleep(0.05)
            for _ in range(5):  # as a user would: a Ctrl-C that comes while Python frees objects is lost
                process.send_signal(signal.SIGINT if ending == "interrupt" else signal.SIGKILL)
                with suppress(subprocess.TimeoutExpired):
                    process.communicate(timeout=4)
                    break
            assert process.returncode != 0
    waited = time.perf_counter()
    while processes(marker):  # after a kill, the child's own alarm ends it
        assert time.perf_counter() - waited < (6 if ending == "kill" else 1)
        time.sleep(0.05)
