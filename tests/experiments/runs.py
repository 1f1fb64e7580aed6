"""Grids of experiments so small that a CPU runs them in seconds."""

from thereexists.experiments.grid import load, unfold
from thereexists.experiments.runner import How
from thereexists.experiments.settings import Budget

SMALLER = {"length": 16, "batch": 8, "precision": "fp32", "options": {"vocabulary": 150, "symbols": 5, "evaluate": 8}}


def grid(name, data, seeds=1, only=None, steps=2, **changes):
    overrides = SMALLER | {"budget": Budget(steps=steps)} | changes
    return unfold(load(name), "tiny", seeds, data, only, overrides)


def how(tmp_path, cache, **changes):
    return How(tmp_path / "runs", cache, device="cpu", **changes)
