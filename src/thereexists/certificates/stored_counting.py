"""A saved network that counts the letters of a commutative group, read from its record and weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from thereexists.automata.automaton import Automaton, restore
from thereexists.certificates.automaton_proof import Proof
from thereexists.certificates.counting_proof import ASSUMPTIONS, prove_counting
from thereexists.certificates.stored_automaton import MOST_SYMBOLS, StoredMachine
from thereexists.core.dtypes import as_dtype
from thereexists.core.errors import BadWitnessFile, InvalidInput
from thereexists.core.json_files import malformed
from thereexists.model import EmbeddedTransformer


@dataclass(frozen=True)
class StoredCounting(StoredMachine):
    """A network, the automaton whose letters it counts, and how many symbols a string may have."""

    network: EmbeddedTransformer
    machine: Automaton
    n: int

    @property
    def automaton(self) -> Automaton:
        return self.machine

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ASSUMPTIONS

    def prove(self) -> Proof:
        return prove_counting(self.network, self.machine, self.n)


def read_counting(path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> StoredCounting:
    """Every entry of the record is looked at; what the weights do is another matter."""
    with malformed(path, "is not a complete witness"):
        dtype = as_dtype(record["dtype"])
        wrong = sorted(k for k, w in weights.items() if w.dtype != (torch.bool if k.endswith(".pattern") else dtype))
        if wrong:
            raise BadWitnessFile(f"{path}: the array {wrong[0]} is {weights[wrong[0]].dtype}, not {record['dtype']}.")
        network = EmbeddedTransformer.from_structure(record["structure"], weights)
        counting = record["counting"]
        if not isinstance(counting, dict) or counting.keys() != {"n"}:
            raise InvalidInput("'counting' must hold n")
        n = counting["n"]
        if type(n) is not int or not 1 <= n < MOST_SYMBOLS:
            raise InvalidInput(f"n must be a whole number from 1 to {MOST_SYMBOLS - 1}; got {n!r}")
        if network.embedding is None or network.E is None or len(network.E) != n + 1:
            raise InvalidInput(f"the network does not take {n} symbols")
        return StoredCounting(network, restore(record["automaton"]), n)
