"""A witness as the proof builds it: very deep, very narrow, right in float64. Sparse ones are of this kind too."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, final

import numpy as np
import torch

from thereexists.certificates.stored_function import read_function
from thereexists.constructions.faithful.plan import DeepPlan, read_plan
from thereexists.constructions.faithful.trace import trace_columns
from thereexists.core.dtypes import DTYPES, SIGNIFICAND, as_dtype, dtype_name
from thereexists.core.errors import CannotBuild
from thereexists.core.json_files import malformed
from thereexists.core.threads import torch_threads
from thereexists.core.verdict import Verdict
from thereexists.evaluate import Choice, check_engine, evaluate, explain
from thereexists.functions.grid import RAMP_SHARE
from thereexists.model import Transformer
from thereexists.witness.distance import Distance
from thereexists.witness.function import FunctionWitness
from thereexists.witness.trace import StageTrace

_CHUNK = 1 << 14


@final
@dataclasses.dataclass(frozen=True, repr=False)
class FaithfulWitness(FunctionWitness):
    """``witness(x)`` runs the network; ``witness.network`` is it; ``witness.save("w")`` and ``te.load("w")``."""

    construction = "faithful"
    answers_equal_columns = False

    plan: DeepPlan

    def run(self, X: np.ndarray, engine: str = "auto") -> np.ndarray:
        """The network on a checked batch, where its weights are, a tile at a time: the working set stays small."""
        check_engine(engine)
        device = next(self.network.parameters()).device
        with torch.no_grad(), torch_threads(1):
            tiles = (torch.from_numpy(X[start : start + _CHUNK]).to(device) for start in range(0, len(X), _CHUNK))
            return np.concatenate([evaluate(self.network, part, engine).cpu().numpy() for part in tiles])

    def explain(self, X: np.ndarray, engine: str = "auto") -> Choice:
        with torch.no_grad():
            device = next(self.network.parameters()).device
            return explain(self.network, torch.from_numpy(X[:_CHUNK]).to(device), engine)

    def counted(self) -> dict[str, Any]:
        return {}

    def trace(self, x: Any) -> StageTrace:
        return trace_columns(self.network, self.grid, self.checked_input(x)[0][0])

    def verdicts(self) -> dict[str, Verdict]:
        lower = "its ids and its ramps need more bits than it carries; the compact construction runs in lower formats"
        return {name: Verdict(name == "float64", (lower if name != "float64" else "ids and ramps are exact in it",)) for name in DTYPES}  # noqa: E501  # fmt: skip

    def to(self, dtype: torch.dtype | str) -> FaithfulWitness:
        name = dtype_name(as_dtype(dtype))
        if name == "float64":
            return self
        raise CannotBuild(
            f"This witness is not safe in {name}: its ids need {self.plan.id_bits:.0f} bits and the ramps of its "
            f"quantiser {-int(np.log2(RAMP_SHARE))} more, and {name} carries {SIGNIFICAND[name]}. Run it in float64."
        )


def load_faithful(path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> FaithfulWitness:
    read = read_function(path, record, weights, Transformer)
    with malformed(path, "is not a complete witness"):
        plan = dataclasses.replace(read_plan(read.plan, read.grid), width=read.network.shape()["r"])
    return FaithfulWitness(read.network, plan, read.target, Distance.read(read.distance), Path(path))
