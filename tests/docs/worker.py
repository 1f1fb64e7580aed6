"""Runs pages, each in a child of its own: ``python -m tests.docs.worker`` reads lines ``page TAB folder TAB kinds``.

The heavy packages are imported once, before the children are made, and without the suite's shape checks, which would
slow every command down. A line of JSON comes back for every page.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import sys
import time
import tomllib
import traceback
import warnings
from pathlib import Path

from tests import kernels
from tests.docs import shell
from tests.docs.blocks import ROOT, blocks
from tests.docs.props import make_props

PRELOADED = (
    "torch",
    "torch._dynamo",
    "torch.utils.tensorboard",
    "numpy",
    "scipy.optimize",
    "scipy.sparse.linalg",
    "numba",
    "flint",
    "joblib",
    "transformers.models.bert.modeling_bert",
    "matplotlib.pyplot",
    "pydantic.types",
    "rich.table",
    "thereexists.cli",
    "thereexists.attention.hugging_face",
    "thereexists.experiments.training",
    "thereexists.mixers",
    "onnxruntime",
)


def run_page(page: str, kinds: set[str]) -> list[str]:
    """All blocks of the page in order, those not among ``kinds`` only parsed; Python blocks share their names."""
    folder, names, log = Path.cwd(), {"__name__": "__main__"}, []
    make_props(folder)
    for block in blocks(page, (ROOT / page).read_text(encoding="utf-8")):
        began = time.perf_counter()
        if block.when not in kinds:
            if block.language == "sh":
                for words in shell.lines(block.code):
                    shell.parse(words)
            elif block.language == "python":
                compile(block.code, str(block), "exec")
        elif block.file is not None:
            (folder / block.file).write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block.code, str(block), "exec"), names)
        elif block.language == "sh":
            shell.run_sh(block)
        elif block.language == "console":
            shell.run_console(block)
        elif block.language in ("json", "toml"):
            {"json": json.loads, "toml": tomllib.loads}[block.language](block.code)
        log.append(f"{block} {block.language}, {block.when}: {time.perf_counter() - began:.1f} s {block.reason}")
    return log


def run_notebook(script: str) -> list[str]:
    """The code cells of the notebook that jupytext makes of the script, in order; what they print comes back."""
    import jupytext

    notebook = jupytext.reads(jupytext.writes(jupytext.read(ROOT / script), fmt="ipynb"), fmt="ipynb")
    names, out = {"__name__": "__main__"}, io.StringIO()
    with contextlib.redirect_stdout(out):
        for number, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                exec(compile(cell.source, f"{script}, cell {number}", "exec", dont_inherit=True), names)
    return out.getvalue().splitlines()


def in_child(page: str, folder: str, kinds: str) -> dict:
    """Fork, run, and hand the outcome back through a file in the folder."""
    outcome = Path(folder).parent / f"{Path(folder).name}-outcome.json"
    child = os.fork()
    if child == 0:
        warnings.simplefilter("error")  # here, not before: newer Pythons warn of a fork beside threads
        os.chdir(folder)
        os.environ |= {"THEREEXISTS_CACHE": f"{folder}/cache", "COLUMNS": "120"}
        try:
            log = run_notebook(page) if page.endswith(".py") else run_page(page, set(kinds.split(",")))
            found = {"log": log, "error": None}
        except BaseException:
            found = {"log": [], "error": traceback.format_exc()}
        outcome.write_text(json.dumps(found))
        os._exit(0)
    _, _, used = os.wait4(child, 0)
    if not outcome.exists():
        return {"log": [], "error": "the process ended without a word"}
    return json.loads(outcome.read_text()) | {"processor_seconds": used.ru_utime + used.ru_stime}


def warm_up() -> None:
    """Import what the pages need and load the compiled kernels once; the children inherit both."""
    for name in PRELOADED:
        importlib.import_module(name)
    kernels.load()
    gc.freeze()  # all of it stays: no child looks through it for garbage


def main() -> None:
    warm_up()
    for line in sys.stdin:
        print(json.dumps(in_child(*line.rstrip("\n").split("\t"))), flush=True)


if __name__ == "__main__":
    main()
