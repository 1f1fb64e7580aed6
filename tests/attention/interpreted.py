"""The kernels against exact attention in a process of their own: Triton's interpreter is chosen when it is imported."""

import json
import os
import subprocess
import sys


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
