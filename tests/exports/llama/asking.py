"""Asks stock folders in a process of plain transformers, where we cannot be imported."""

import json
from pathlib import Path

SCRIPT = Path(__file__).with_name("many_answers.py")
DTYPES = ("float32", "bfloat16")


def completed(fresh, folders, to, dtypes=DTYPES, caches=(True,)):
    """What is written behind every prompt: {(folder, dtype, cache): texts}, … behind a text that does not end."""
    asked = {"folders": {str(folder): list(p) for folder, p in folders.items()}, "dtypes": dtypes, "caches": caches}
    (to / "asked.json").write_text(json.dumps(asked))
    run = fresh(SCRIPT, to / "asked.json", cwd=to, timeout=3000)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    return {
        (folder, dtype, cache): found[f"{folder} {dtype} {cache}"]
        for folder in folders
        for dtype in dtypes
        for cache in caches
    }
