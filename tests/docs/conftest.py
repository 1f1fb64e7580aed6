"""One process that runs pages and examples, without the suite's import hooks; each in a child of its own."""

import json
import os
import subprocess
import sys

import pytest

from tests.docs.blocks import ROOT


@pytest.fixture(scope="session")
def worker():
    """``run(page, folder, kinds)`` runs a page or an example in a folder and returns what it reports."""
    command = [sys.executable, "-m", "tests.docs.worker"]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as process:

        def run(page, folder, kinds="always"):
            process.stdin.write(f"{page}\t{folder}\t{kinds}\n")
            process.stdin.flush()
            outcome = json.loads(process.stdout.readline())
            assert outcome["error"] is None, outcome["error"]
            print("\n".join([*outcome["log"], f"{page}: {outcome['processor_seconds']:.1f} s of processor time"]))
            return outcome["log"]

        yield run
        process.stdin.close()
