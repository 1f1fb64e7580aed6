"""In which floating-point formats is a compact network right? Answered from its weights by a proof, not by trial runs.

The proof is in ``float_run.py``, which knows nothing of what built the network: the builder asks the verifier.
"""

from __future__ import annotations

import torch

from thereexists.certificates.float_run import dtype_verdicts
from thereexists.core.dtypes import DTYPES, as_dtype
from thereexists.core.errors import CannotBuild
from thereexists.core.verdict import Verdict
from thereexists.functions.grid import Grid
from thereexists.model import EmbeddedTransformer


def verdicts(network: EmbeddedTransformer, grid: Grid) -> dict[str, Verdict]:
    """Safe or not, with the reason, for every dtype."""
    return dtype_verdicts(network, DTYPES, grid)


def verdict(network: EmbeddedTransformer, grid: Grid, name: str) -> Verdict:
    """Whether a network with float64 weights is safe in a dtype."""
    as_dtype(name)
    return verdicts(network, grid)[name]


def in_dtype(network: EmbeddedTransformer, name: str, grid: Grid) -> EmbeddedTransformer:
    """The network in another dtype, if that is safe."""
    dtype = as_dtype(name)
    if network.dtype == dtype:
        return network
    if network.dtype != torch.float64:
        raise CannotBuild(f"Only the float64 original converts safely; this one is in {network.dtype}: load it again.")
    found = verdicts(network, grid)
    if not found[name].holds:
        safe = tuple(other for other, proved in found.items() if proved.holds)
        known = f"It is safe in {', '.join(safe)}." if safe else "No dtype is proved safe for it."
        raise CannotBuild(f"This witness is not safe in {name}: {found[name].reasons[0]}. {known}")
    return network.rounded(dtype)
