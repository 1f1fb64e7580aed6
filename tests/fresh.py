"""Fresh interpreters, cheaply: forks of a process that has imported torch and nothing of ours (``forks.py``)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def fresh(tmp_path_factory):
    """``fresh("-c", code, …)``, ``fresh("-m", module, …)``, ``fresh(script, …)``: as ``python`` with these words.

    It returns what ``subprocess.run`` does: returncode, stdout, stderr. What a test must see before torch is imported,
    or where torch is imported from, still needs an interpreter of its own. ``warm=True`` where the test does not ask
    which packages of others are loaded: NumPy, SciPy, Numba and FLINT then are.
    """
    here = tmp_path_factory.mktemp("fresh")
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "tests.forks", str(here)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as process:

        def run(*words, cwd=None, timeout=300, warm=False):
            words = [str(word) for word in words]
            asked = {"words": words, "cwd": str(cwd or Path.cwd()), "environment": dict(os.environ), "timeout": timeout}
            process.stdin.write(json.dumps(asked | {"warm": warm}) + "\n")
            process.stdin.flush()
            code = int(process.stdout.readline())
            out, err = ((here / name).read_text(encoding="utf-8") for name in ("out", "err"))
            return subprocess.CompletedProcess(words, code, out, err)

        yield run
        process.stdin.close()
