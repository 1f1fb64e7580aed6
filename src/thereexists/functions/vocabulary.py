"""Tokens (strings or integers) and their numbers, and numbers as a few small digits that every dtype holds exactly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import MOST_DIGITS
from thereexists.core.plain_text import is_text

Token = str | int
MOST_PER_DIGIT = 128  # 2·128 = 256 is the last integer up to which bfloat16 has them all
NOTHING, END, FIRST = 0, 1, 2  # output numbers: nothing is stored for this input; past the end; the first token


@dataclass(frozen=True)
class Vocabulary:
    """Distinct tokens in a fixed order."""

    tokens: tuple[Token, ...]

    @classmethod
    def of(cls, sequences: Iterable[Sequence[Token]]) -> Vocabulary:
        seen = {token for sequence in sequences for token in sequence}
        return cls(tuple(sorted(seen, key=lambda token: (isinstance(token, str), token))))

    @cached_property
    def number(self) -> dict[Token, int]:
        return {token: i for i, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, sequences: Sequence[Sequence[Token]], n: int, first: int, fill: int) -> np.ndarray:
        """Numbers (sequences, n): ``first`` plus the place of the token, ``fill`` behind the end."""
        numbers = np.full((len(sequences), n), fill, dtype=np.int64)
        for row, sequence in enumerate(sequences):
            try:
                numbers[row, : len(sequence)] = [first + self.number[token] for token in sequence]
            except KeyError as unknown:
                raise InvalidInput(
                    f"The token {unknown.args[0]!r} of sequence {row} is not in the vocabulary of {len(self)} tokens."
                ) from None
        return numbers


def check_sequences(sequences: Any, what: str, lines: Sequence[int] | None = None) -> list[tuple[Token, ...]]:
    """A list of sequences of strings or integers; anything else is refused with its place."""
    if isinstance(sequences, str) or not isinstance(sequences, Iterable):
        raise InvalidInput(f"{what} must be a list of sequences of tokens; got {type(sequences).__name__} instead.")
    sequences = list(sequences)
    if lines is not None and len(lines) != len(sequences):
        raise InvalidInput(f"{what} must have one number in 'lines' each; got {len(sequences)} and {len(lines)}.")
    checked = []
    for row, sequence in enumerate(sequences):
        place = f"line {lines[row]}" if lines is not None else f"sequence {row}"
        if isinstance(sequence, np.ndarray):
            sequence = sequence.tolist()
        if isinstance(sequence, str) or not isinstance(sequence, list | tuple):
            raise InvalidInput(f"{what}, {place}: a sequence must be a list of tokens; got {sequence!r} instead.")
        for token in sequence:
            if isinstance(token, bool) or not isinstance(token, str | int):
                raise InvalidInput(
                    f"{what}, {place}: a token must be a string or an integer; got {token!r} "
                    f"({type(token).__name__}) instead."
                )
            if isinstance(token, int) and not -(10 ** (MOST_DIGITS - 1)) < token < 10**MOST_DIGITS:
                raise InvalidInput(
                    f"{what}, {place}: an integer must have at most {MOST_DIGITS} digits, because files hold no "
                    "longer ones; give it as a string."
                )
            if isinstance(token, str) and not is_text(token):
                raise InvalidInput(f"{what}, {place}: a token must be valid Unicode text; got {token!a} instead.")
        checked.append(tuple(sequence))
    return checked


def check_vocabulary(tokens: Any, what: str) -> Vocabulary:
    """A vocabulary as a file holds it: a list of distinct strings or integers."""
    if not isinstance(tokens, list):
        raise InvalidInput(f"{what} must be a list of tokens, one at least; got {type(tokens).__name__} instead.")
    if not tokens:
        raise InvalidInput(f"{what} must be a list of tokens, one at least; this one is empty.")
    vocabulary = Vocabulary(check_sequences([tokens], what)[0])
    if len(vocabulary.number) != len(tokens):
        raise InvalidInput(f"{what} must hold every token once; {len(tokens) - len(vocabulary.number)} are repeated.")
    return vocabulary


@dataclass(frozen=True)
class Digits:
    """Numbers below ``base**count`` as ``count`` digits, the lowest first."""

    base: int
    count: int

    @classmethod
    def for_numbers(cls, amount: int) -> Digits:
        """As few digits as keep every digit below 128; then the smallest base."""
        count = max(1, math.ceil(math.log(max(amount, 2)) / math.log(MOST_PER_DIGIT) - 1e-12))
        base = max(2, math.ceil(max(amount, 2) ** (1 / count) - 1e-9))
        while base**count < amount:
            base += 1
        return cls(base, count)

    def split(self, numbers: np.ndarray) -> np.ndarray:
        """(…,) -> (…, count)."""
        return numbers[..., None] // self.base ** np.arange(self.count) % self.base

    def join(self, digits: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # of weights that are no numbers: any number is as wrong
            return (np.rint(digits).astype(np.int64) * self.base ** np.arange(self.count)).sum(axis=-1)
