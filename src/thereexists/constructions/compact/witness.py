"""A witness of four standard blocks, in every dtype in which its weights are proved right."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, final

import numpy as np
import torch

from thereexists.certificates.safe_dtypes import in_dtype, verdicts
from thereexists.certificates.stored_function import read_function
from thereexists.constructions.compact.plan import CompactPlan
from thereexists.constructions.compact.trace import trace_blocks
from thereexists.core.dtypes import DTYPES, dtype_name
from thereexists.core.json_files import malformed
from thereexists.core.verdict import Verdict
from thereexists.evaluate import Choice, check_engine, explain
from thereexists.model import EmbeddedTransformer
from thereexists.witness.distance import Distance
from thereexists.witness.function import FunctionWitness
from thereexists.witness.trace import StageTrace


@final
@dataclasses.dataclass(frozen=True, repr=False)
class CompactWitness(FunctionWitness):
    """``witness(x)`` runs the network; ``witness.to("bfloat16")``; ``witness.save("w")`` and ``te.load("w")``."""

    construction = "compact"
    answers_equal_columns = True

    network: EmbeddedTransformer
    plan: CompactPlan

    def run(self, X: np.ndarray, engine: str = "auto") -> np.ndarray:
        """The network on a checked batch. Of four blocks there is one way to run them."""
        check_engine(engine)
        return self.network.run(X)

    def largest_input(self) -> float:
        """Its edges measure distances in ramp widths: so much of its dtype's range is left."""
        return float(torch.finfo(self.network.dtype).max / 8 * min(self.grid.ramp.min(), 1.0))

    def explain(self, X: np.ndarray, engine: str = "auto") -> Choice:
        return explain(self.network, torch.from_numpy(X).to(self.network.dtype), engine)

    def trace(self, x: Any) -> StageTrace:
        """``ids``: how many hidden units of the block are active at each token; ``moves``: units that wrote outputs."""
        X = self.checked_input(x)[0][:1]
        Z = self.network.embed(torch.from_numpy(X).to(self.network.dtype))
        return trace_blocks(self.network, X[0], Z)

    def verdicts(self) -> dict[str, Verdict]:
        """Converted, it is safe in its dtype: that was proved of the float64 weights that were rounded to it."""
        if self.network.dtype == torch.float64:
            return verdicts(self.network, self.grid)
        own = dtype_name(self.network.dtype)
        other = Verdict(None, (f"its weights are rounded to {own}: load it again, and convert that",))
        return dict.fromkeys(DTYPES, other) | {own: Verdict(True, ("proved of the weights in float64",))}

    def counted(self) -> dict[str, Any]:
        network, widths = self.network, dict[str, int]()
        for name, stage in network.stages.items():
            if stage.feed_forward is not None:
                part = name.rstrip("0123456789").removesuffix("_")  # blocks recall, recall_2, … are one part
                widths[part] = widths.get(part, 0) + int(stage.feed_forward.W_1.shape[1])
        return {
            "sizes": {
                "d_model": network.shape()["d"],
                "widths": widths,
                "units": widths.get("recall", 0),
                **self._dtypes(),
            }
        }

    def describe(self) -> dict[str, Any]:
        """The dtypes of the network as it is now: it may have been converted since it was planned, or changed."""
        described = super().describe()
        return described | {"sizes": described["sizes"] | self._dtypes()}

    def _dtypes(self) -> dict[str, Any]:
        reasons = {name: verdict.reasons[0] for name, verdict in self.verdicts().items()}
        return {"safe": list(self.safe()), "dtypes": reasons}

    def to(self, dtype: torch.dtype | str) -> CompactWitness:
        return dataclasses.replace(self, network=in_dtype(self.network, dtype_name(dtype), self.grid))


def load_compact(path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> CompactWitness:
    """Of the dtypes that the record calls safe, those that the weights prove."""
    read = read_function(path, record, weights, EmbeddedTransformer)
    network = read.network
    assert isinstance(network, EmbeddedTransformer)
    with malformed(path, "is not a complete witness"):
        plan = CompactPlan.read(read.plan, read.grid)
        proved = verdicts(network, read.grid)
        network.safe = ("float64", *(n for n in network.safe if n != "float64" and proved[n].holds))
    return CompactWitness(network, plan, read.target, Distance.read(read.distance), Path(path))
