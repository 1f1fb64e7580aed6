"""A witness of an automaton: the network, what its rows mean, and the certificate for all inputs.

w = te.build(te.automata.regex(r"(ab|ba)*", alphabet="ab"), n=1024)
w(["abba", "abab"])      # accepted or not; of a transducer: what it writes
w.states("abba")         # the state after every prefix, from the empty one on
w.outputs(["ab"])        # what each step writes
w.certificate            # right on every string of at most n symbols
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, final

import torch

from thereexists.automata.automaton import Automaton
from thereexists.certificates.automaton_certificate import AutomatonCertificate
from thereexists.certificates.automaton_maps import KIND_NAMES, Maps
from thereexists.certificates.llama.automata import AutomatonClaim
from thereexists.certificates.stored_automaton import StoredAutomaton, read_automaton
from thereexists.constructions.automata.plan import AutomatonPlan
from thereexists.constructions.automata.running import MachineWitness
from thereexists.constructions.automata.trace import AutomatonTrace, held_maps
from thereexists.constructions.automata.weights import Sizes
from thereexists.model import EmbeddedTransformer


@final
@dataclasses.dataclass(frozen=True, repr=False)
class AutomatonWitness(MachineWitness):
    """``made``: the certificate that was made with it; ``folder``: where it was loaded from."""

    construction = "automaton"

    network: EmbeddedTransformer
    maps: Maps
    n: int
    moduli: tuple[int, ...]
    made: AutomatonCertificate | None = dataclasses.field(default=None, compare=False)
    folder: Path | None = dataclasses.field(default=None, compare=False)

    @property
    def stored(self) -> StoredAutomaton:
        return StoredAutomaton(self.network, self.maps, self.n, self.moduli)

    @property
    def automaton(self) -> Automaton:
        return self.maps.automaton

    @property
    def plan(self) -> AutomatonPlan:  # pyright: ignore[reportIncompatibleVariableOverride]
        sizes = Sizes(self.n, self.maps, self.moduli, self.network.depth, False)
        shape = self.network.shape()
        counted = {"width": shape["r"], "head_size": shape["m"], "parameters": self.network.parameter_count}
        return dataclasses.replace(AutomatonPlan.of(sizes), **counted)

    # ---- what every witness can --------------------------------------------------------------------------------------

    def trace(self, x: Any) -> AutomatonTrace:
        """Which segment's map every position holds after each block."""
        tokens, symbols, states, answer = self.traced(x)
        blocks, _ = held_maps(self.network, self.maps, tokens)
        return AutomatonTrace(symbols, states, answer, tuple(blocks))

    def lowerable(self) -> AutomatonClaim:
        return AutomatonClaim(self.maps, self.n)

    def describe(self) -> dict[str, Any]:
        return self.described(maps=KIND_NAMES[type(self.maps)], map_rows=self.maps.own)

    def contents(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        return {
            "automaton": self.automaton.describe(),
            "maps": self.maps.describe(),
            "doubling": {"n": self.n, "moduli": list(self.moduli)},
        }, {}


def load_automaton(path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> AutomatonWitness:
    """As the file has it, its dtypes claimed and not yet proved: ``to`` proves the one that is wanted."""
    return AutomatonWitness(**vars(read_automaton(path, record, weights)), folder=Path(path))
