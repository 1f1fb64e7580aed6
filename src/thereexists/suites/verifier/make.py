"""Make a suite: every instance is drawn, decided and checked (``instance.py``); the folder appears when all are."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from thereexists.core.safe_path import nothing_from_here
from thereexists.suites.folders import FORMATS
from thereexists.suites.verifier.families import FAMILIES
from thereexists.suites.verifier.families.base import LEVELS
from thereexists.suites.verifier.files import TABLE, TRUTH, Listed, table_of
from thereexists.suites.verifier.instance import VARIANTS, Instance, draw
from thereexists.suites.verifier.onnx_files import needed
from thereexists.suites.verifier.texts import pages
from thereexists.suites.writing import seal, suite_appears

FORMAT, _ = FORMATS


def make_verifier(
    folder: str | Path, count: int = 300, seed: int = 0, workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:  # fmt: skip
    """Write ``count`` instances to ``folder``; the same bytes for the same count and seed."""
    for name in ("onnx", "onnxruntime"):
        needed(name)
    fill = partial(_fill, workers=workers, progress=progress)
    return suite_appears(Path(folder), "instance", count, seed, workers, fill)


def _fill(beside: Path, count: int, seed: int, workers: int, progress: Callable[[int, int], None]) -> dict[str, Any]:
    networks = sorted({_network(number) for number in range(count)})
    groups = [[number for number in range(count) if _network(number) == network] for network in networks]
    made: dict[str, dict[str, Any]] = {}
    for part in ("onnx", "vnnlib", "truth"):
        (beside / part).mkdir()

    def write(instances: list[Instance]) -> None:
        for instance in instances:
            for name, content in instance.files.items():
                (beside / name).write_bytes(content)
            made[instance.name] = instance.truth
        progress(len(made), count)

    if workers == 1:
        for group in groups:
            write(_drawn(seed, group))
    else:
        with nothing_from_here(), ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for jobs in [pool.submit(_drawn, seed, group) for group in groups]:
                write(jobs.result())
    return _finish(beside, count, seed, made)


def _network(number: int) -> tuple[int, int, int]:
    """Instances of one family, level and variant share a network."""
    families = len(FAMILIES)
    return number % families, number // families % LEVELS, number // (families * LEVELS) % VARIANTS


def _drawn(seed: int, numbers: list[int]) -> list[Instance]:
    from thereexists.core.threads import torch_threads

    with torch_threads(1):
        return [draw(seed, number) for number in numbers]


def _finish(beside: Path, count: int, seed: int, made: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The table of instances, the truth, the schemas, and the hashes of all of it."""
    order = sorted(made, key=lambda name: name.rpartition("-")[2])
    (beside / TABLE).write_text(table_of([Listed(name, made[name]["timeout"]) for name in order]))
    (beside / TRUTH).write_text(json.dumps({"instances": [made[name] for name in order]}, indent=1) + "\n")
    verdicts = [made[name]["verdict"] for name in order]
    own: dict[str, Any] = {word: verdicts.count(word) for word in ("sat", "unsat")}
    own["families"] = sorted({made[name]["family"] for name in order})
    record = seal(beside, pages(), FORMAT, seed, count, own)
    return {name: record[name] for name in ("count", "seed", "sat", "unsat", "families")}
