"""Run what was exported on everything the witness is about, and compare with the witness, number by number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from thereexists.core.errors import CannotBuild
from thereexists.witness.witness import Witness

_TILE = 1 << 21


def compare(witness: Witness, run: Callable[[np.ndarray], np.ndarray]) -> tuple[int, str]:
    """``run`` takes inputs (batch, n, d) or ids (batch, n) and gives the network's output; refuses any difference."""
    samples = witness.samples()
    width = max(witness.network.shape()["r"], 1)
    for inputs, wanted in samples.parts:
        step = max(1, _TILE // (width * inputs.shape[1]))
        for start in range(0, len(inputs), step):
            part = slice(start, start + step)
            found = np.asarray(run(inputs[part]), dtype=np.float64)[:, : wanted.shape[1]]
            agrees = found.shape == wanted[part].shape and not np.isnan(found).any()
            if not agrees or float(np.abs(found - wanted[part]).max()) > samples.allowed:
                raise CannotBuild("The export does not agree with the witness; nothing was written.")
    return len(samples), samples.of
