"""What a checkpoint claims to do: a circuit, a vocabulary, and words for it. One class a claim.

``Claim`` is what the proof, the files and the card ask of it. ``read_claimed`` finds it in a record that anyone may
have written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from thereexists.certificates.check import Check
from thereexists.certificates.llama.circuit import Circuit
from thereexists.certificates.llama.tokens import Vocabulary
from thereexists.core.errors import InvalidInput


class Claim(ABC):
    """Frozen, and compared by what it describes."""

    @property
    @abstractmethod
    def vocabulary(self) -> Vocabulary:
        """The tokens, in the order of the embedding."""

    @abstractmethod
    def circuit(self) -> Circuit:
        """What the network computes, in bits, with its cases at the end; ``NotProved`` where it is no circuit."""

    @property
    @abstractmethod
    def new_tokens(self) -> int:
        """How many tokens an answer has, the end of text counted."""

    @abstractmethod
    def sentence(self) -> str:
        """What is proved in a dtype, without naming the dtype."""

    def origin(self) -> Check | None:
        """Whether what is computed is what it is said to be made from; None where nothing is said."""
        return None

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Plain data, as the record has it."""

    @abstractmethod
    def drawn(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Random sequences of tokens (count, length), <s> first, answers included where the model writes several."""

    @abstractmethod
    def answers_right(self, tokens: np.ndarray, logits: np.ndarray) -> bool:
        """Whether the logits (count, length, tokens) of such sequences are right: by the task itself."""


def read_claimed(stored: Any) -> Claim:
    """The claim of a record."""
    from thereexists.certificates.llama.addition import Addition
    from thereexists.certificates.llama.automata import read_automaton_claim
    from thereexists.certificates.llama.completions import Completions
    from thereexists.certificates.llama.ngram import Ngram
    from thereexists.certificates.llama.programs import ProgramClaim
    from thereexists.certificates.llama.recall import Recall
    from thereexists.certificates.llama.reverse import Reverse

    kinds = {
        "automaton": read_automaton_claim,
        "addition": Addition.read,
        "completions": Completions.read,
        "ngram": Ngram.read,
        "program": ProgramClaim.read,
        "reverse": Reverse.read,
        "recall": Recall.read,
    }
    if not isinstance(stored, dict) or stored.get("kind") not in kinds:
        raise InvalidInput(f"a claim must be of one of the kinds {', '.join(kinds)}")
    return kinds[stored["kind"]](stored)
