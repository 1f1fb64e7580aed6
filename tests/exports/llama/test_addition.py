"""Ten-digit addition by ``generate``, in a process where we cannot be imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from thereexists.exports import export_addition

pytest.importorskip("transformers")
SCRIPT = Path(__file__).with_name("many_sums.py")


def sums(folder, count, dtype):
    command = [sys.executable, str(SCRIPT), str(folder), str(count), dtype]
    run = subprocess.run(command, capture_output=True, text=True, timeout=3000, cwd=folder.parent)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert (found["sums"], found["wrong"]) == (count, [])


@pytest.mark.slow  # what a quick one would show, the export itself compares, and so does ``verify``
def test_sums_without_us(tmp_path):
    export_addition(10, tmp_path / "adder", "bfloat16")
    sums(tmp_path / "adder", 100, "bfloat16")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_hundred_thousand_sums(tmp_path, dtype):
    export_addition(10, tmp_path / "adder")
    sums(tmp_path / "adder", 100_000, dtype)
