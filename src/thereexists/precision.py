"""In which floating-point formats is a compact network right? Answered from its weights by a proof, never by a try.

The proof is in ``certificates/float_run.py``, which knows nothing of what built the network: the builder asks the
verifier. Here: the names of the formats, and running a network in one of them.
"""

from __future__ import annotations

import copy

import numpy as np
import torch

from thereexists.errors import CannotBuild, InvalidInput
from thereexists.grid import Grid
from thereexists.model import EmbeddedTransformer
from thereexists.model.embedded import DTYPES
from thereexists.target import Array
from thereexists.verdict import Verdict

SIGNIFICAND = {"float64": 53, "float32": 24, "bfloat16": 8, "float16": 11}
_TILE_NUMBERS = 1 << 23  # hidden activations of one tile


def verdicts(network: EmbeddedTransformer, grid: Grid) -> dict[str, Verdict]:
    """Safe or not, with the reason, for every dtype."""
    from thereexists.certificates.float_run import dtype_verdicts  # the proof reads this module

    return dtype_verdicts(network, DTYPES, grid)


def verdict(network: EmbeddedTransformer, grid: Grid, name: str) -> Verdict:
    """Whether a network with float64 weights is safe in a dtype."""
    as_dtype(name)
    return verdicts(network, grid)[name]


def as_dtype(name: str | torch.dtype) -> torch.dtype:
    name = str(name).removeprefix("torch.")
    if name not in SIGNIFICAND:
        raise InvalidInput(f"'dtype' must be one of {', '.join(DTYPES)}; got {name!r} instead.")
    return getattr(torch, name)


def in_dtype(network: EmbeddedTransformer, name: str, grid: Grid) -> EmbeddedTransformer:
    """The network in another dtype, if that is safe."""
    dtype = as_dtype(name)
    if network.dtype == dtype:
        return network
    if network.dtype != torch.float64:
        raise CannotBuild(f"Only the float64 original converts safely; this one is in {network.dtype}: load it again.")
    found = verdicts(network, grid)
    safe = tuple(other for other, proved in found.items() if proved.holds)
    if name not in safe:
        known = f"It is safe in {', '.join(safe)}." if safe else "No dtype is proved safe for it."
        raise CannotBuild(f"This witness is not safe in {name}: {found[name].reasons[0]}. {known}")
    converted = copy.deepcopy(network).to(dtype)
    converted.safe = safe
    return converted


def run_embedded(network: EmbeddedTransformer, X: Array) -> Array:
    """A batch of features through the network in its own dtype, in tiles that fit into the cache; float64 out."""
    tile = max(1, _TILE_NUMBERS // (X.shape[1] * max(network.shape()["r"], network.shape()["d"])))
    with torch.no_grad():
        parts = [
            network(torch.from_numpy(X[start : start + tile]).to(network.dtype)).to(torch.float64).numpy()
            for start in range(0, len(X), tile)
        ]
    return np.concatenate(parts)


def represents(values: Array, dtype: torch.dtype) -> Array:
    """Which float64 numbers are numbers of the dtype."""
    tensor = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))
    return (tensor.to(dtype).to(torch.float64) == tensor).numpy()
