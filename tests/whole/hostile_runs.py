"""A program for itself: every way to open a folder, on every hostile folder, with little memory and little time.

Prints one JSON object, {case: {way: what was said}}; stops with an error where memory or time was spent.
"""

import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path

import thereexists as te
from thereexists import cli
from thereexists.core.errors import ThereExistsError
from thereexists.heads import io as heads
from thereexists.reports import report
from thereexists.reports.explore import open_viewer

MEMORY, SECONDS = 500 << 20, 2.0


def show(folder):
    sys.argv = ["thereexists", "show", str(folder)]
    try:
        cli.command()(standalone_mode=False)
    finally:
        sys.stdout.flush()


def verify(folder):
    verdict = te.verify(folder, opinions=1)
    if verdict.holds is False:
        raise ThereExistsError("; ".join(verdict.reasons))


def certify(folder):
    witness = te.load(folder)
    te.certify(witness, opinions=1)


WAYS = {"load": te.load, "verify": verify, "show": show, "report": report, "explore": open_viewer, "certify": certify}
FEW = {name: WAYS[name] for name in ("load", "verify", "report")}
ALL = ("faithful", "tokens")  # the other kinds go through the same readers
HEAD_WAYS = {"load": heads.load, "report": report}


def main(root):
    said = {}
    ours = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what show prints
    _warm(root / "honest")
    pages = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (pages + MEMORY, -1))
    for folder in sorted(root.iterdir()):
        if folder.name == "honest":
            continue
        ways = HEAD_WAYS if (folder / "head.json").exists() else WAYS if folder.name.startswith(ALL) else FEW
        for name, way in ways.items():
            if name == "certify" and folder.name.endswith("with care"):
                continue  # what it would compute is what it was asked for
            began, exhausted = time.process_time(), False
            try:
                way(folder)
                what = "accepted"
            except ThereExistsError as error:
                what, exhausted = str(error), _out_of_memory(error)
            spent = time.process_time() - began
            said.setdefault(folder.name, {})[name] = what
            assert spent < SECONDS, (folder.name, name, spent, what)
            assert not exhausted, (folder.name, name, what)
            assert "memory" not in what.lower().replace("memory units", "").replace("memory of codes", ""), (
                folder.name,
                name,
                what,
            )
    os.write(ours, json.dumps(said).encode())


def _out_of_memory(error):
    """Refused because the memory was used up, and not because of what the file states."""
    while error is not None:
        if isinstance(error, MemoryError) or "allocate" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _warm(folder):
    """Import and compile what an honest folder takes, before the limits."""
    for way in WAYS.values():
        way(folder)


warnings.simplefilter("ignore")
main(Path(sys.argv[1]))
