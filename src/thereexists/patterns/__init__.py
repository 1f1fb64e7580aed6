"""Sparsity patterns and whether a sparse Transformer with them is universal (paper B), with the evidence.

p = te.patterns.strided(n=1024, stride=32)
v = te.patterns.check(p)
v.universal, v.path, v.depth, v.reasons
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thereexists.patterns.arrays import from_block_mask, from_csr, from_mask, from_rows, load_npz
from thereexists.patterns.check import PatternVerdict, check
from thereexists.patterns.library import (
    REGISTRY,
    alternating,
    axial,
    bigbird,
    block_local,
    build,
    butterfly,
    dense,
    dilated,
    documents,
    fixed,
    logsparse,
    longformer,
    neighbourhood,
    prefix_lm,
    random,
    sink_window,
    star,
    strided,
    window,
)
from thereexists.patterns.packed import packed
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.reach import Reach, reach
from thereexists.patterns.recheck import recheck_depth, recheck_obstruction, recheck_path
from thereexists.patterns.step import Step

if TYPE_CHECKING:
    from thereexists.model.probability import PROBABILITY_MAPS, ProbabilityMap

_LAZY = {  # these need torch
    "PROBABILITY_MAPS": "thereexists.model.probability",
    "ProbabilityMap": "thereexists.model.probability",
}

__all__ = [
    "PROBABILITY_MAPS",
    "REGISTRY",
    "Pattern",
    "PatternVerdict",
    "ProbabilityMap",
    "Reach",
    "Step",
    "alternating",
    "axial",
    "bigbird",
    "block_local",
    "build",
    "butterfly",
    "check",
    "dense",
    "dilated",
    "documents",
    "fixed",
    "from_block_mask",
    "from_csr",
    "from_mask",
    "from_rows",
    "load_npz",
    "logsparse",
    "longformer",
    "neighbourhood",
    "packed",
    "prefix_lm",
    "random",
    "reach",
    "recheck_depth",
    "recheck_obstruction",
    "recheck_path",
    "sink_window",
    "star",
    "strided",
    "window",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'thereexists.patterns' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
