"""The claim of an n-gram model of text: the token that a table has for the last ``order`` symbols, one after the other.

A row of the table is the symbols before, the latest last, and the symbol that follows: ``order`` of them, or fewer, and
then the text begins there. Which symbol a corpus has most often behind each of them is the affair of whoever makes the
table; where it has none the text ends. The rows are the words of a ``Table`` (``lookup.py``), at the places 0, 1, …,
order − 1. That is a claim about *every* prompt, and a prompt may end in the middle of anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thereexists.certificates.llama.circuit import Circuit
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.lookup import MOST_READ, MOST_WORDS, Table, table_of
from thereexists.certificates.llama.tokens import (
    BOS,
    EOS,
    SYMBOLS,
    Numbers,
    Vocabulary,
    check_numbers,
    check_texts,
    completion_vocabulary,
)
from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Array

FIELDS = frozenset(("kind", "symbols", "rows", "order", "n", "more"))
MOST_LENGTH = 1 << 14


@dataclass(frozen=True)
class Ngram(Claim):
    """``rows``: contexts and what follows, numbers of ``symbols``; prompts of up to n symbols, and so many more."""

    symbols: tuple[str, ...]
    rows: tuple[tuple[Numbers, int], ...]
    order: int
    n: int
    more: int

    @property
    def new_tokens(self) -> int:
        return self.more

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return completion_vocabulary(self.symbols, ())

    @cached_property
    def table(self) -> Table:
        back = np.full((len(self.rows), self.order), BOS)
        for row, (context, _) in enumerate(self.rows):
            back[row, : len(context)] = [SYMBOLS + symbol for symbol in context[::-1]]
        return table_of(tuple(range(self.order)), back, np.array([SYMBOLS + follows for _, follows in self.rows]))

    def circuit(self) -> Circuit:
        return self.table.circuit(len(self.vocabulary), self.n + self.new_tokens)

    def sentence(self) -> str:
        return (
            f"for every prompt of at most {self.n:,} symbols ({len(self.symbols)}^{self.n} of that length): by the "
            f"largest logits, one after the other, each of the next {self.new_tokens} tokens is the one that the table "
            f"of {len(self.rows):,} contexts has for the last {self.order} symbols, `<s>` in front of the first "
            "symbol counted as one, and `</s>` where it has none."
        )

    def describe(self) -> dict[str, Any]:
        rows = [[list(context), follows] for context, follows in self.rows]
        sizes = {"order": self.order, "n": self.n, "more": self.more}
        return {"kind": "ngram", "symbols": list(self.symbols), "rows": rows, **sizes}

    def drawn(self, rng: np.random.Generator, count: int) -> Array:
        """Texts that follow the table nine times in ten."""
        table, S = dict(self.rows), len(self.symbols)
        found = np.full((count, min(self.n + self.new_tokens, 4 * self.order + 32) + 1), BOS)
        for text in found:
            said: list[int] = []
            for k in range(1, len(text)):
                follows = table.get(self.context(said), -1)
                said.append(follows if follows >= 0 and rng.random() < 0.9 else int(rng.integers(S)))
                text[k] = SYMBOLS + said[-1]
        return found

    def answers_right(self, tokens: Array, logits: Array) -> bool:
        """After every prefix, by the rows themselves."""
        table, said = dict(self.rows), logits.argmax(-1)
        for row, text in enumerate(tokens.tolist()):
            symbols = [token - SYMBOLS for token in text[1:]]
            wanted = [table.get(self.context(symbols[:k]), EOS - SYMBOLS) for k in range(len(text))]
            if said[row].tolist() != [SYMBOLS + symbol for symbol in wanted]:
                return False
        return True

    def context(self, symbols: list[int]) -> Numbers:
        return tuple(symbols[-self.order :])

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Ngram:
        if stored.keys() != FIELDS:
            raise InvalidInput(f"a claim of an n-gram model must have {', '.join(sorted(FIELDS))}")
        symbols, order = check_texts(stored["symbols"]), stored["order"]
        if type(order) is not int or not 2 <= order <= MOST_READ:
            raise InvalidInput(f"the order of an n-gram model must be from 2 to {MOST_READ} symbols")
        sizes = (stored["n"], stored["more"])
        if not all(type(size) is int and 1 <= size <= MOST_LENGTH for size in sizes):
            raise InvalidInput(f"'n' and 'more' must be from 1 to {MOST_LENGTH:,}")
        if not isinstance(stored["rows"], list) or not 1 <= len(stored["rows"]) <= MOST_WORDS:
            raise InvalidInput(f"an n-gram model must have 1 to {MOST_WORDS:,} rows")
        rows = []
        for context, follows in stored["rows"]:
            rows.append((check_numbers(context, len(symbols)), check_numbers([follows], len(symbols))[0]))
        known = {context for context, _ in rows}
        if len(known) != len(rows) or any(len(context) > order for context in known):
            raise InvalidInput(f"a context is there twice, or is longer than {order} symbols")
        return cls(symbols, tuple(rows), order, *sizes)
