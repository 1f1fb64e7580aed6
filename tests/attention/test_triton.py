"""The Triton kernels, under Triton's interpreter: every kernel, every flag, tiles smaller than the case.

They run in a process of their own, because the interpreter is chosen when Triton is imported.
"""

import json
import os
import subprocess
import sys

import pytest

CASES = [
    "runs of rows-causal",  # a column list per run of rows
    "window and residue and hubs-causal",  # two strips merged, columns with both exclusions, full rows
    "fixed[1]",  # the row's own key beside columns in arithmetic progression
    "listed and all",  # all pieces at once
]


def run(device, n, kind, names):
    done = subprocess.run(
        [sys.executable, "-m", "tests.attention.exactness", device, str(n), kind, *names],
        env={**os.environ, "TRITON_INTERPRET": "1" if device == "cpu" else "0"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows
    return rows


def worst(row):
    return max(row[key] for key in ("out", "dq", "dk", "dv"))


def test_kernels_under_the_interpreter():
    pytest.importorskip("triton")
    rows = run("cpu", 32, "float16", CASES[:1]) + run("cpu", 18, "float16", CASES[1:])
    assert len(rows) == 2 * len(CASES)
    assert [row for row in rows if not worst(row) <= 1] == []


@pytest.mark.slow
def test_every_step_under_the_interpreter():
    pytest.importorskip("triton")
    for kind in ("float32", "float16"):
        rows = run("cpu", 32, kind, [])
        assert [row for row in rows if not worst(row) <= 1] == []


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("n", [37, 300])
def test_every_step_on_the_gpu(kind, n):
    rows = run("cuda", n, kind, [])
    assert [row for row in rows if not worst(row) <= 1] == []
