"""One entry a claim: what its logits say, its words on the card, and how it is compared with a witness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.automata.automaton import Automaton
from thereexists.certificates.automaton_proof import FIRST
from thereexists.certificates.automaton_proof import SYMBOLS as OURS
from thereexists.certificates.llama.addition import Addition
from thereexists.certificates.llama.automata import AutomatonClaim
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.completions import Completions
from thereexists.certificates.llama.ngram import Ngram
from thereexists.certificates.llama.programs import ProgramClaim
from thereexists.certificates.llama.recall import Recall
from thereexists.certificates.llama.reverse import Reverse
from thereexists.certificates.llama.tokens import BOS, SYMBOLS
from thereexists.core.errors import CannotBuild
from thereexists.exports.check import compare
from thereexists.exports.llama.answers import answers_by_case, automaton_answers
from thereexists.exports.llama.card import (
    Words,
    addition_words,
    automaton_words,
    completion_words,
    ngram_words,
    program_words,
    recall_words,
    reverse_words,
)

_STRINGS = 32
Logits = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Form:
    """``read_out``: the logits (tokens, 2 + rows) of the constant, of an answer, of every bit."""

    words: Callable[[Any], Words]
    read_out: Callable[[Any], np.ndarray] = answers_by_case
    compare: Callable[[Any, Logits, Any], tuple[int, str]] | None = None


def form_of(claim: Claim) -> Form:
    return _FORMS[type(claim)]


def _as_the_witness(claim: AutomatonClaim, logits: Logits, witness: Any) -> tuple[int, str]:
    """Its read-out (batch, n + 1, states + outputs + 1), for its own token numbers."""

    def run(tokens: np.ndarray) -> np.ndarray:
        return read_out(claim, logits(np.where(tokens == FIRST, BOS, tokens - OURS + SYMBOLS)))

    return compare(witness, run)


def read_out(claim: AutomatonClaim, logits: np.ndarray) -> np.ndarray:
    """One-hot state (none for the dead one), one-hot output, accepted: by the largest logit of each group."""
    machine, vocabulary = claim.machine, claim.vocabulary
    parts = [_one_hot(machine)[logits[..., vocabulary.states].argmax(-1)]]
    if machine.writes:
        parts.append(np.eye(len(machine.output_alphabet))[logits[..., vocabulary.outputs].argmax(-1)])
    parts.append((logits[..., vocabulary.verdicts].argmax(-1) == 0)[..., None].astype(np.float64))
    return np.concatenate(parts, axis=-1)


def _one_hot(machine: Automaton) -> np.ndarray:
    found = np.eye(machine.size)
    if machine.dead is not None:
        found[machine.dead] = 0.0
    return found


def _as_the_program(claim: ProgramClaim, logits: Logits, witness: Any) -> tuple[int, str]:
    """After every prefix of random strings, as our own network has them, and as the program itself."""
    tokens = claim.drawn(np.random.default_rng(), _STRINGS)
    found = logits(tokens)
    words = tokens[:, 1:] - SYMBOLS
    said = found[:, 1:].argmax(-1) - claim.first_answer
    if not np.array_equal(said, witness.numbers(list(words))) or not claim.answers_right(tokens, found):
        raise CannotBuild("The export does not answer as the program does; nothing was written.")
    return _STRINGS, "strings"


_FORMS: dict[type[Claim], Form] = {
    AutomatonClaim: Form(automaton_words, automaton_answers, _as_the_witness),
    Addition: Form(addition_words),
    Completions: Form(completion_words),
    Ngram: Form(ngram_words),
    ProgramClaim: Form(program_words, compare=_as_the_program),
    Reverse: Form(reverse_words),
    Recall: Form(recall_words),
}
