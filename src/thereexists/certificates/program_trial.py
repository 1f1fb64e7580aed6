"""A saved program tried out: inputs through the network in its dtypes, and through the program's own forms.

An input on which the two differ by more than a claim allows *refutes* the claim, whatever a proof may say; that nothing
of the kind turned up proves nothing.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np
import torch

from thereexists.arithmetic.simplest import simplest
from thereexists.certificates.program_meaning import Meaning, Meant
from thereexists.certificates.program_values import values_of
from thereexists.core.dtypes import as_dtype
from thereexists.core.plain_text import in_full
from thereexists.functions.anywhere import anywhere
from thereexists.model import EmbeddedTransformer

SAMPLE = 16
MOST_WORK = 1 << 26  # logits of all heads of all blocks
SLOW = ("bfloat16", "float16")  # on a CPU: only tried on small networks
MOST_SLOW_WORK = 1 << 22


@dataclass(frozen=True)
class Trial:
    """What was tried, in words; and what was found beyond its bound: dtype, how far off, how far allowed, the input."""

    detail: str
    fault: tuple[str, float, float, np.ndarray] | None

    def __str__(self) -> str:
        if self.fault is None:
            return f"{self.detail} keep their bounds"
        name, off, allowed, X = self.fault
        numbers = ", ".join(f"{x:.17g}" for x in X.ravel()[:8]) + (", …" if X.size > 8 else "")
        return f"{self.detail}: off by {in_full(off)} in {name}, more than {in_full(allowed)}, at the input ({numbers})"


def try_out(
    meaning: Meaning, meant: Meant, network: EmbeddedTransformer, bounds: dict[str, float], sample: int = SAMPLE,
    whole: bool = False,
) -> Trial:  # fmt: skip
    """Random inputs, drawn anew each time, with ends and ties among them, in every dtype that has a bound.

    ``whole``: inputs of whole numbers only.
    """
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    low, high = (np.array([ends[k] for ends in meaning.box]) for k in (0, 1))
    n, heads = meaning.full, max(network.shape()["h"], 1)
    work = n * n * heads * max(network.depth, 1)
    count = min(sample, max(1, MOST_WORK // work))
    names = [name for name in bounds if work <= MOST_SLOW_WORK or name not in SLOW]
    if not names:
        return Trial("too large to try in half precision here: all inputs", None)
    points = anywhere(rng, low, high, (count, meaning.n, len(low)))
    points[::4] = low + (high - low) * rng.integers(0, 5, points[::4].shape) / 4  # ends, ties
    points = np.rint(points) if whole else points
    drawn = {name: _of_dtype(points, low, high, name) for name in names}
    names = [name for name in names if drawn[name] is not None]  # a box may hold no number of a dtype
    if not names:
        return Trial("the box holds no number of these dtypes: all inputs", None)
    inputs = [X for X in drawn.values() if X is not None]
    wanted, noise = values_of(meaning, meant, np.concatenate(inputs))
    detail = f"{count} random inputs (seed {seed}) in {', '.join(names)}"
    for name, X, Y in zip(names, inputs, np.split(wanted, len(inputs)), strict=True):
        there = network.rounded(as_dtype(name))
        off = np.abs(there.run(given(X, meaning, network))[:, : meaning.n] - Y).astype(np.float64)
        worst, allowed = np.unravel_index(off.argmax(), off.shape), bounds[name] + noise
        if not off[worst] <= allowed:
            return Trial(detail, (name, float(off[worst]), allowed, X[worst[0]]))
    return Trial(detail, None)


def given(X: np.ndarray, meaning: Meaning, network: EmbeddedTransformer) -> np.ndarray:
    """Padded to the network's length, by the simplest number of the box; if it reads one, with a flag at the tokens

    that are there.
    """
    missing = ((0, 0), (0, meaning.full - meaning.n), (0, 0))
    full = np.pad(X, missing, constant_values=simplest(*meaning.box[0]))
    flagged = network.W_in is not None and network.W_in.shape[1] == X.shape[2] + 1
    return np.concatenate([full, np.pad(np.ones((*X.shape[:2], 1)), missing)], axis=2) if flagged else full


def _of_dtype(X: np.ndarray, low: np.ndarray, high: np.ndarray, name: str) -> np.ndarray | None:
    """The inputs as numbers of the dtype; one that left the box on the way becomes one of its feature that did not."""
    X = torch.from_numpy(X).to(as_dtype(name)).to(torch.float64).numpy()
    inside = (low <= X) & (high >= X)
    if not inside.any(axis=(0, 1)).all():
        return None
    kept = np.array([X[..., f][inside[..., f]].flat[0] for f in range(X.shape[2])])
    return np.where(inside, X, kept)
