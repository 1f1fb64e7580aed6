"""Run what was exported on everything the witness is about, and compare with the witness, number by number."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np

from thereexists.errors import CannotBuild

_MOST = 1 << 16  # cells or pairs that are compared; beyond that a random sample of so many, with the first and the last
_TILE = 1 << 21
_PROGRAM_INPUTS = 1024


def compare(witness: Any, run: Callable[[np.ndarray], np.ndarray]) -> tuple[int, str]:
    """``run`` takes inputs (batch, n, d) or ids (batch, n) and gives the network's output; refuses any difference."""
    if hasattr(witness, "program"):
        return _compare_program(witness, run)
    if hasattr(witness, "grid"):
        grid = witness.grid
        numbers = _chosen(grid.cells)
        inputs, of = grid.centre(grid.cube(numbers)), "cells"
        wanted = witness.run(inputs)
    else:
        numbers = _chosen(len(witness.inputs))
        inputs, of = witness.inputs[numbers], "pairs"
        wanted = witness.digits.split(witness.outputs[numbers]).astype(np.float64)
    width = max(witness.network.shape()["r"], 1) * inputs.shape[1]
    step = max(1, _TILE // width)
    for start in range(0, len(inputs), step):
        part = slice(start, start + step)
        found = np.asarray(run(inputs[part]), dtype=np.float64)
        if found.shape != wanted[part].shape or not np.array_equal(found, wanted[part]):
            raise CannotBuild("The export does not agree with the witness; nothing was written.")
    return len(inputs), of


def _compare_program(witness: Any, run: Callable[[np.ndarray], np.ndarray]) -> tuple[int, str]:
    """Random inputs, ends and ties. Export and network are both within the rounding bound of the same real numbers."""
    if witness.certificate is None:
        raise CannotBuild("A program is exported with its certificate: make it with `thereexists certify`.")
    name = str(witness.network.dtype).removeprefix("torch.")
    allowed = 2.0 * witness.certificate.bounds[name]["rounding"]
    rng = np.random.default_rng(secrets.randbits(64))
    n, ends = witness.n, np.array(witness.certificate.box)
    count = int(min(_PROGRAM_INPUTS, max(4, _TILE * 64 // (n * n * max(witness.network.depth, 1)))))
    unit = rng.random((count, n, len(ends)))
    unit[::4] = rng.integers(0, 3, unit[::4].shape) / 2
    inputs = ends[:, 0] + (ends[:, 1] - ends[:, 0]) * unit
    for start in range(0, count, 64):
        length = int(rng.integers(1, n + 1)) if witness.shorter and start else n
        part = inputs[start : start + 64, :length]
        found = np.asarray(run(witness.padded(part)), dtype=np.float64)[:, :length]
        wanted = witness.run(part)
        if found.shape != wanted.shape or not float(np.abs(found - wanted).max()) <= allowed:
            raise CannotBuild("The export does not agree with the witness; nothing was written.")
    return count, "random inputs"


def _chosen(count: int) -> np.ndarray:
    """All, or a random sample that nobody can foresee: else a forger would know which cells are never looked at."""
    if count <= _MOST:
        return np.arange(count)
    drawn = secrets.SystemRandom().sample(range(1, count - 1), _MOST - 2)  # distinct
    return np.sort(np.array([0, count - 1, *drawn]))
