"""What the build runs: the page of explore on the front page, and the examples as notebooks with their results.

Each runs in a process of its own, on the package in ``src``; the site itself needs no torch. Results are kept in
``build/docs`` until a source changes. ``THEREEXISTS_LIVE=no`` builds the site without running anything: the notebooks
then have no results, and the front page links to the page on explore instead.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = (ROOT / "src").resolve().parent / "build" / "docs"
SHOWN = """
import sys
import thereexists as te
witness = te.build(te.targets.builtin("sort", n=3), delta=1 / 4)
te.explore(witness, out=sys.argv[1])
"""
WITHOUT = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Not made</title></head><body><p>This site was '
)
WITHOUT += "built with THEREEXISTS_LIVE=no.</p></body></html>\n"


def running() -> bool:
    return os.environ.get("THEREEXISTS_LIVE", "yes") != "no"


def explore_page() -> str:
    """Sort of three numbers with 64 cubes, in one file."""
    if not running():
        return WITHOUT
    file = KEPT / f"explore-{_sources()}.html"
    if not file.is_file():
        KEPT.mkdir(parents=True, exist_ok=True)
        _python("-c", SHOWN, str(file))
    return file.read_text(encoding="utf-8")


def notebook(script: Path) -> list[dict[str, str]]:
    """The cells of an example, with what they printed and drew."""
    if not running():
        import jupytext

        return [{"kind": cell.cell_type, "source": cell.source} for cell in jupytext.read(script).cells]
    code = hashlib.sha256(script.read_bytes()).hexdigest()[:12]
    file = KEPT / f"{script.stem}-{code}-{_sources()}.json"
    if not file.is_file():
        KEPT.mkdir(parents=True, exist_ok=True)
        file.write_text(_python(str(Path(__file__).with_name("run_example.py")), str(script)).splitlines()[-1])
    return json.loads(file.read_text(encoding="utf-8"))


@cache
def _sources() -> str:
    """A digest of the package: results of another one are not shown."""
    digest = hashlib.sha256(SHOWN.encode())
    for file in sorted((ROOT / "src").rglob("*")):
        if file.suffix in (".py", ".js", ".css", ".html"):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _python(*words: str) -> str:
    found = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, *words], env={**os.environ, **found}, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        raise RuntimeError(f"The site needs the result of {words[0][:80]}, which failed: {done.stderr[-2000:]}")
    return done.stdout
