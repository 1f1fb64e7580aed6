"""The claim of reversing: ``abc=`` is answered by ``cba``, and then the text ends. One layer.

Tokens: <s> is 0, the m ≤ n letters are 1 … m, = is m + 1, the answer m + 2 … 2m + 1. After i letters of the answer, at
the token m + 1 + i, the next is the letter m − i: it stands 2i + 1 back, while = stands i back. For i = m that is <s>,
which counts as a letter, and there the text ends.

Rows: codes of letters, two rows each out of R, here (R) and fetched from 1, 3, …, 2n + 1 back; whether = is here, and
whether it is 1, …, n back; the code that is made (R). Row r of it is made by the pairs (= is i back, row r of the code
2i + 1 back), i = 0 … n. = stands once in a text, so only one of these i is true: what is made is the code of the letter
that comes next, and no row more. ∎
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.certificates.llama.circuit import Case, Circuit, CircuitLayer
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.lookup import code_of
from thereexists.certificates.llama.tokens import (
    BOS,
    EOS,
    PAD,
    SYMBOLS,
    Vocabulary,
    check_texts,
    completion_vocabulary,
)
from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Array

MOST, MOST_LETTERS = 64, 256
EQUALS = "="


@dataclass(frozen=True)
class Reverse(Claim):
    """Of 1 to n of these letters."""

    letters: tuple[str, ...]
    n: int

    @property
    def vocabulary(self) -> Vocabulary:
        return completion_vocabulary((*self.letters, EQUALS), self.letters)

    @property
    def new_tokens(self) -> int:
        return self.n + 1

    def circuit(self) -> Circuit:
        n, L, tokens = self.n, len(self.letters), len(self.vocabulary)
        code = code_of(L + 1, 2)  # the last is that of <s>
        R = int(code.max()) + 1
        here, far, equals, made = 0, R, R * (n + 2), R * (n + 2) + n + 1
        embedding = np.zeros((tokens, made + R))
        embedding[SYMBOLS + np.arange(L)[:, None], code[:L]] = 1.0
        embedding[BOS, code[L]] = 1.0
        embedding[SYMBOLS + L, equals] = 1.0
        i, row = np.arange(n + 1), np.arange(R)
        layer = CircuitLayer(
            offset=np.r_[np.repeat(2 * i + 1, R), i[1:]],
            source=np.r_[np.tile(here + row, n + 1), np.full(n, equals)],
            target=np.r_[np.arange(far, equals), equals + i[1:]],
            reads=np.column_stack([np.repeat(equals + i, R), np.arange(far, equals)]),
            z=np.tile(made + row, n + 1),
            cleared=np.zeros(0, dtype=np.int64),
        )
        groups = np.arange(made + R)
        groups[equals:made] = equals  # of which one is 1
        every, answers = slice(0, tokens), [*range(SYMBOLS + L + 1, tokens), EOS]
        cases = tuple(
            Case(tuple((made + on).tolist()), False, ((token, every),)) for on, token in zip(code, answers, strict=True)
        )
        return Circuit(embedding, np.unique(groups, return_inverse=True)[1], (layer,), (), cases, 2 * n + 1)

    def sentence(self) -> str:
        return (
            f"for every prompt `w=`, w a word of 1 to {self.n} of the {len(self.letters)} letters "
            f"({len(self.letters)}^{self.n} of that length): by the largest logits, one after the other, the next "
            "tokens are the letters of w from the last to the first, and then `</s>`."
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": "reverse", "letters": list(self.letters), "n": self.n}

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Reverse:
        n = stored.get("n")
        if stored.keys() != {"kind", "letters", "n"} or type(n) is not int or not 1 <= n <= MOST:
            raise InvalidInput(f"a claim of reversing must have letters, and n from 1 to {MOST}")
        letters = check_texts(stored["letters"])
        if not 1 <= len(letters) <= MOST_LETTERS or any(len(letter) != 1 for letter in letters) or EQUALS in letters:
            raise InvalidInput(
                f"letters must be up to {MOST_LETTERS} single characters, and {EQUALS} must not be one of them"
            )
        return cls(letters, n)

    def drawn(self, rng: np.random.Generator, count: int) -> Array:
        """Whole texts of all lengths, filled up on the right."""
        found, L = np.full((count, 2 * self.n + 2), PAD), len(self.letters)
        for row, m in enumerate(rng.integers(1, self.n + 1, count).tolist()):
            word = rng.integers(0, L, m)
            found[row, : 2 * m + 2] = [BOS, *(SYMBOLS + word), SYMBOLS + L, *(SYMBOLS + L + 1 + word[::-1])]
        return found

    def answers_right(self, tokens: Array, logits: Array) -> bool:
        """From = on, every token that follows."""
        L, said = len(self.letters), logits.argmax(-1)
        for row, text in enumerate(tokens.tolist()):
            m = text.index(SYMBOLS + L) - 1
            wanted = [*(token + L + 1 for token in text[m:0:-1]), EOS]
            if said[row, m + 1 : 2 * m + 2].tolist() != wanted:
                return False
        return True
