"""Read back what was exported, run it on what the witness is about, and compare with the witness, number by number.

Every weight is compared. Of the cells or pairs all are run, or, where that would take minutes, as many as a fixed
amount of work allows, drawn so that nobody can foresee them: the same weights in the same code give the others too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from thereexists.core.errors import CannotBuild
from thereexists.exports.stock import stock_state
from thereexists.model import EmbeddedTransformer
from thereexists.witness.samples import chosen
from thereexists.witness.witness import Witness

_TILE = 1 << 21
MOST_WORK = 1 << 36  # multiplications; an eighth in half precision, which CPUs compute more slowly
_LEAST = 16  # cells or pairs, whatever they cost


def compare(witness: Witness, run: Callable[[np.ndarray], np.ndarray]) -> tuple[int, str]:
    """``run`` takes inputs (batch, n, d) or ids (batch, n) and gives the network's output; refuses any difference."""
    samples = witness.samples()
    width = max(witness.network.shape()["r"], 1)
    work = MOST_WORK if next(witness.network.parameters()).element_size() > 2 else MOST_WORK // 8
    compared = 0
    for inputs, wanted in samples.parts:
        each = inputs.shape[1] * witness.network.parameter_count  # every weight at every position
        share = work * len(inputs) // len(samples)
        rows = chosen(len(inputs), max(_LEAST, share // each))
        step = max(1, _TILE // (width * inputs.shape[1]))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            found = np.asarray(run(inputs[part]), dtype=np.float64)[:, : wanted.shape[1]]
            agrees = found.shape == wanted[part].shape and not np.isnan(found).any()
            if not agrees or float(np.abs(found - wanted[part]).max()) > samples.allowed:
                raise _no_agreement()
        compared += len(rows)
    return compared, samples.of


def same_weights(found: dict[str, torch.Tensor], network: EmbeddedTransformer) -> None:
    """What was read back must be the network's own weights, every one, in its dtype."""
    wanted = stock_state(network)
    if found.keys() != wanted.keys() or not all(
        found[name].dtype == weight.dtype and torch.equal(found[name], weight) for name, weight in wanted.items()
    ):
        raise _no_agreement()


def _no_agreement() -> CannotBuild:
    return CannotBuild("The export does not agree with the witness; nothing was written.")
