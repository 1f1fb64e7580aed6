"""A witness of a commutative group: two blocks that count letters, and the certificate for all inputs.

w = te.build(te.automata.regex("(b|ab*a)*", "ab"), n=1024)      # an even number of a
w(["abba", "ab"])        # accepted or not; of a transducer: what it writes
w.states("abba")         # the state after every prefix, from the empty one on
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, final

import numpy as np
import torch

from thereexists.automata.automaton import Automaton
from thereexists.certificates.automaton_certificate import AutomatonCertificate
from thereexists.certificates.automaton_proof import SYMBOLS
from thereexists.certificates.stored_counting import StoredCounting, read_counting
from thereexists.constructions.automata.running import MachineWitness
from thereexists.constructions.counting.plan import CountingPlan
from thereexists.constructions.counting.trace import CountingTrace, counted
from thereexists.core.dtypes import DTYPES
from thereexists.core.errors import CannotBuild
from thereexists.model import EmbeddedTransformer


@final
@dataclasses.dataclass(frozen=True, repr=False)
class CountingWitness(MachineWitness):
    """``made``: the certificate that was made with it; ``folder``: where it was loaded from."""

    construction = "counting"

    network: EmbeddedTransformer
    machine: Automaton
    n: int
    made: AutomatonCertificate | None = dataclasses.field(default=None, compare=False)
    folder: Path | None = dataclasses.field(default=None, compare=False)

    @property
    def stored(self) -> StoredCounting:
        return StoredCounting(self.network, self.machine, self.n)

    @property
    def automaton(self) -> Automaton:
        return self.machine

    @property
    def letters(self) -> np.ndarray:
        """(symbols,): the counter of each symbol, −1 for none."""
        bits = self.network.embedding.detach()[SYMBOLS:, : self.network.shape()["h"]] > 0  # pyright: ignore
        return np.where(bits.any(dim=1).numpy(), bits.int().argmax(dim=1).numpy(), -1)

    @property
    def plan(self) -> CountingPlan:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of the network as it is: another author's may count in another way."""
        shape, found = self.network.shape(), self.verdicts()
        return CountingPlan(
            n=self.n,
            states=self.machine.size,
            states_before=self.machine.before,
            symbols=len(self.machine.alphabet),
            counters=shape["h"],
            numbers=shape["r"] + 1,
            layers={"counting": self.network.depth, "total": self.network.depth},
            d_model=shape["d"],
            heads=shape["h"],
            head_size=shape["m"],
            width=shape["r"],
            parameters=self.network.parameter_count,
            dtypes=tuple(name for name in DTYPES if found[name].holds),
        )

    def trace(self, x: Any) -> CountingTrace:
        """What every position counted, and what it looked up."""
        tokens, symbols, states, answer = self.traced(x)
        positions, _ = counted(self.network, self.machine.size, tokens)
        return CountingTrace(symbols, states, answer, positions)

    def lowerable(self) -> Any:
        """A stock Llama checkpoint takes offsets of positions, which only the doubling network has."""
        raise CannotBuild(
            "A network that counts has no form as a stock Llama checkpoint: build the automaton with "
            "construction='doubling' and export that, or export this one to onnx, hf or torch."
        )

    def describe(self) -> dict[str, Any]:
        return self.described(counters=self.network.shape()["h"])

    def contents(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        return {"automaton": self.machine.describe(), "counting": {"n": self.n}}, {}


def load_counting(path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> CountingWitness:
    """As the file has it, its dtypes claimed and not yet proved: ``to`` proves the one that is wanted."""
    return CountingWitness(**vars(read_counting(path, record, weights)), folder=Path(path))
