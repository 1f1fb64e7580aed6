"""A saved automaton's network, read from its record and weights: the verifier's own reader, which builds nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from thereexists.automata.automaton import Automaton, restore
from thereexists.certificates.automaton_exact import ASSUMPTIONS
from thereexists.certificates.automaton_maps import Maps, read_maps
from thereexists.certificates.automaton_proof import Proof, prove
from thereexists.core.dtypes import as_dtype
from thereexists.core.errors import BadWitnessFile, InvalidInput
from thereexists.core.json_files import malformed
from thereexists.model import EmbeddedTransformer

MOST_SYMBOLS = 1 << 24  # of a string


class StoredMachine(ABC):
    """A network that is said to run an automaton on strings of at most ``n`` symbols, and how that is proved."""

    network: EmbeddedTransformer
    n: int

    @property
    @abstractmethod
    def automaton(self) -> Automaton:
        """What it must do."""

    @property
    @abstractmethod
    def assumptions(self) -> tuple[str, ...]:
        """Of the proof, about who runs it."""

    @abstractmethod
    def prove(self) -> Proof:
        """The proof from the weights, or ``NotProved``."""


@dataclass(frozen=True)
class StoredAutomaton(StoredMachine):
    """A network, what its rows mean, how many symbols a string may have, and the moduli of the positions."""

    network: EmbeddedTransformer
    maps: Maps
    n: int
    moduli: tuple[int, ...]

    @property
    def automaton(self) -> Automaton:
        return self.maps.automaton

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ASSUMPTIONS

    def prove(self) -> Proof:
        return prove(self.network, self.maps, self.n, self.moduli)


def read_automaton(path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> StoredAutomaton:
    """Every entry of the record is looked at; what the weights do is another matter."""
    with malformed(path, "is not a complete witness"):
        dtype = as_dtype(record["dtype"])
        wrong = sorted(name for name, weight in weights.items() if weight.dtype != dtype)
        if wrong:
            raise BadWitnessFile(f"{path}: the array {wrong[0]} is {weights[wrong[0]].dtype}, not {record['dtype']}.")
        network = EmbeddedTransformer.from_structure(record["structure"], weights)
        doubling = record["doubling"]
        if not isinstance(doubling, dict) or doubling.keys() != {"n", "moduli"}:
            raise InvalidInput("'doubling' must hold n and the moduli")
        n, moduli = doubling["n"], doubling["moduli"]
        if type(n) is not int or not 1 <= n < MOST_SYMBOLS:
            raise InvalidInput(f"n must be a whole number from 1 to {MOST_SYMBOLS - 1}; got {n!r}")
        if not isinstance(moduli, list) or not moduli or not all(type(m) is int and 2 <= m < 1000 for m in moduli):
            raise InvalidInput("the moduli must be whole numbers from 2 to 999, and at least one")
        maps = read_maps(restore(record["automaton"]), record["maps"])
        if network.embedding is None or network.E is None or len(network.E) != n + 1:
            raise InvalidInput(f"the network does not take {n} symbols")
        return StoredAutomaton(network, maps, n, tuple(moduli))
