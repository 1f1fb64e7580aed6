"""The claim of a data set as completions: every prompt of the set is answered by its answer, and then the text ends.

A text is <s>, the prompt's symbols, and as much of the answer as there is already: an answer's token is none of a
prompt's, so the text says which pair it belongs to and how far it has come. ``Table`` (``lookup.py``) has what follows
each of these texts. It looks at the ``places`` back only; that no two texts of the set look the same there, but for
those that the same token follows, is checked when the table is made. Where the places are 0, 1, 2, … to the start of
the longest text, *whole* texts are compared, and the end follows every text that is not of the set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thereexists.certificates.llama.circuit import Circuit
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.lookup import MOST_WORDS, Table, check_places, table_of
from thereexists.certificates.llama.tokens import (
    BOS,
    EOS,
    PAD,
    SYMBOLS,
    Numbers,
    Vocabulary,
    check_numbers,
    check_texts,
    completion_vocabulary,
)
from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Array

FIELDS = frozenset(("kind", "symbols", "answers", "pairs", "places"))
MOST_SYMBOLS = 4096  # of a prompt and its answer together


@dataclass(frozen=True)
class Completions(Claim):
    """``pairs``: prompts and answers, numbers of ``symbols`` and of ``answers``; no prompt twice, none empty."""

    symbols: tuple[str, ...]
    answers: tuple[str, ...]
    pairs: tuple[tuple[Numbers, Numbers], ...]
    places: tuple[int, ...]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return completion_vocabulary(self.symbols, self.answers)

    @property
    def new_tokens(self) -> int:
        return max(len(answer) for _, answer in self.pairs) + 1

    @property
    def longest(self) -> int:
        """Symbols of a prompt and its answer together, at the most."""
        return max(len(prompt) + len(answer) for prompt, answer in self.pairs)

    @cached_property
    def texts(self) -> list[list[int]]:
        """Each prompt with its answer, <s> in front and </s> behind."""
        first = SYMBOLS + len(self.symbols)
        return [
            [BOS, *(SYMBOLS + q for q in prompt), *(first + a for a in answer), EOS] for prompt, answer in self.pairs
        ]

    @cached_property
    def table(self) -> Table:
        return table_of(self.places, *looked_at(self.texts, [len(p) for p, _ in self.pairs], self.places))

    @property
    def whole(self) -> bool:
        """Whether texts are compared from their start to their end."""
        spoken = [len(prompt) + len(answer) - 1 for prompt, answer in self.pairs if answer]
        return self.places[: max(spoken) + 1] == tuple(range(max(spoken) + 1))

    def circuit(self) -> Circuit:
        return self.table.circuit(len(self.vocabulary), self.longest)

    def sentence(self) -> str:
        told = (
            f"for each of the {len(self.pairs):,} prompts of the set: by the largest logits, one after the other, the "
            "next tokens are those of its answer, and then `</s>`."
        )
        if not self.whole:
            return told + " Of other prompts nothing is said."
        return told + f" Every other prompt of at most {self.longest} symbols is followed by `</s>` at once."

    def describe(self) -> dict[str, Any]:
        pairs = [[list(prompt), list(answer)] for prompt, answer in self.pairs]
        sides = {"symbols": list(self.symbols), "answers": list(self.answers)}
        return {"kind": "completions", **sides, "pairs": pairs, "places": list(self.places)}

    def drawn(self, rng: np.random.Generator, count: int) -> Array:
        """Texts of the set, filled up on the right."""
        found = np.full((count, self.longest + 1), PAD)
        for row, k in enumerate(rng.integers(0, len(self.pairs), count)):
            text = self.texts[k][:-1]
            found[row, : len(text)] = text
        return found

    def answers_right(self, tokens: Array, logits: Array) -> bool:
        """From the last symbol of the prompt on, every token that follows, by the pairs themselves."""
        first, said, answer_of = SYMBOLS + len(self.symbols), logits.argmax(-1), dict(self.pairs)
        for row, text in enumerate(tokens.tolist()):
            prompt = tuple(token - SYMBOLS for token in text if SYMBOLS <= token < first)
            wanted = [*(first + a for a in answer_of[prompt]), EOS]
            if said[row, len(prompt) : len(prompt) + len(wanted)].tolist() != wanted:
                return False
        return True

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Completions:
        if stored.keys() != FIELDS:
            raise InvalidInput(f"a claim of completions must have {', '.join(sorted(FIELDS))}")
        symbols, answers = (check_texts(stored[side]) for side in ("symbols", "answers"))
        if not isinstance(stored["pairs"], list) or not stored["pairs"]:
            raise InvalidInput("there are no pairs")
        pairs = []
        for pair in stored["pairs"]:
            prompt, answer = pair
            pairs.append((check_numbers(prompt, len(symbols)), check_numbers(answer, len(answers))))
        if len({prompt for prompt, _ in pairs}) != len(pairs) or not all(prompt for prompt, _ in pairs):
            raise InvalidInput("a prompt is empty, or is there twice")
        claim = cls(symbols, answers, tuple(pairs), ())
        if claim.longest > MOST_SYMBOLS or sum(len(answer) + 1 for _, answer in pairs) > MOST_WORDS:
            raise InvalidInput("the set is larger than this verifier reads")
        return cls(symbols, answers, tuple(pairs), check_places(stored["places"], claim.longest))


def looked_at(texts: list[list[int]], prompts: list[int], places: tuple[int, ...]) -> tuple[Array, Array]:
    """Of every text that something follows: the tokens (count, places) so far back, <s> beyond the start, and what
    follows. ``prompts``: how many symbols are given, and not written.

    The texts lie one behind the other, so that one long text does not make the others long.
    """
    length, given = np.array([len(text) for text in texts]), np.array(prompts)
    written = length - 1 - given  # tokens of the answer, and the end
    start = np.repeat(np.cumsum(length) - length, written)
    at = np.arange(written.sum()) - np.repeat(np.cumsum(written) - written - given, written)
    tokens = np.concatenate([np.array(text) for text in texts])
    back = at[:, None] - np.array(places)
    return np.where(back >= 0, tokens[start[:, None] + np.maximum(back, 0)], BOS), tokens[start + at + 1]
