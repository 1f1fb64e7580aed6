"""Strings as numbers and back: what goes into a program over symbols, and what comes out.

A string is text whose characters are symbols; or, where symbols are words, a list of them, or text with spaces between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.constructions.program.compiler import interpret as interpret_numbers
from thereexists.constructions.program.graph import Value
from thereexists.constructions.symbols.language import Symbols, shown, source_of
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import visible
from thereexists.functions.target import Array

String = str | list[str]


@dataclass(frozen=True)
class Lengths:
    """How many symbols a string may have."""

    least: int
    most: int

    @classmethod
    def of(cls, source: Value) -> Lengths:
        return cls(1 if source.settings["shorter"] else source.n, source.n)

    def check(self, length: int, row: int) -> None:
        if not self.least <= length <= self.most:
            wanted = f"{self.most:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"
            raise InvalidInput(
                f"A string must have {wanted} symbols, for which this program was written; string {row} has {length:,}."
            )


def are_characters(alphabet: tuple[str, ...]) -> bool:
    return all(len(symbol) == 1 for symbol in alphabet)


def read_strings(alphabet: tuple[str, ...], lengths: Lengths, given: Any) -> tuple[list[Array], bool]:
    """The numbers of every string, and whether it was one string and not a list of them."""
    given = given.tolist() if isinstance(given, np.ndarray) else given
    one = isinstance(given, str) or (
        isinstance(given, list | tuple)
        and not are_characters(alphabet)
        and bool(given)
        and all(isinstance(word, str) and word in alphabet for word in given)
    )
    strings = [given] if one else given
    if not isinstance(strings, list | tuple) or not strings:
        raise InvalidInput(
            f"The input must be a string or a list of strings, one at least; got {_what(given)} instead."
        )
    number = {symbol: k for k, symbol in enumerate(alphabet)}
    found = []
    for row, string in enumerate(strings):
        symbols = string.split() if isinstance(string, str) and not are_characters(alphabet) else string
        if not isinstance(symbols, str | list | tuple):
            raise InvalidInput(f"String {row} must be text or a list of symbols; got {_what(symbols)} instead.")
        strange = [place for place, symbol in enumerate(symbols) if not isinstance(symbol, str) or symbol not in number]
        if strange:
            raise InvalidInput(
                f"{visible(repr(symbols[strange[0]]))[:60]} (symbol {strange[0]} of string {row}) is not in the "
                f"alphabet of {len(alphabet)} symbols {visible(shown(alphabet))}."
            )
        lengths.check(len(symbols), row)
        found.append(np.array([number[symbol] for symbol in symbols], dtype=np.int64))
    return found, one


def _what(given: Any) -> str:
    return "nothing" if isinstance(given, list | tuple) else type(given).__name__


def write_string(alphabet: tuple[str, ...], numbers: Array) -> String:
    """Numbers (length,) as a string: text if symbols are characters, else a list of words."""
    outside = [k for k in numbers.tolist() if not (0 <= k < len(alphabet) and float(k).is_integer())]
    if outside:
        raise InvalidInput(
            f"{outside[0]:g} is not the number of one of the {len(alphabet)} output symbols: these weights do not "
            "compute a program over symbols. `thereexists verify` says where."
        )
    symbols = [alphabet[int(k)] for k in numbers.tolist()]
    return "".join(symbols) if are_characters(alphabet) else symbols


def by_length(words: list[Array]) -> dict[int, list[int]]:
    """Which strings have which length: they go through a network together."""
    found: dict[int, list[int]] = {}
    for k, word in enumerate(words):
        found.setdefault(len(word), []).append(k)
    return found


def interpret(program: Value | Symbols, X: Any) -> Any:
    """The program itself, operation by operation: on arrays (batch, n, d); one over symbols on strings.

        P.interpret(P.sort(P.tokens(n=4)), [[[0.3], [0.1], [0.9], [0.5]]])

    Args:
        program: the last value of a program.
        X: an array (batch, n, d); strings, for a program over symbols.

    Returns:
        An array, or strings: what the program says.

    Raises:
        InvalidInput: the inputs do not fit the program.
    """
    if not isinstance(program, Symbols):
        return interpret_numbers(program, X)
    source, alphabet = source_of(program)
    words, one = read_strings(alphabet, Lengths.of(source), X)
    found: list[String] = [""] * len(words)
    for rows in by_length(words).values():
        Y = interpret_numbers(program.number, np.array([words[k] for k in rows], dtype=np.float64)[..., None])
        for k, y in zip(rows, Y[..., 0], strict=True):
            found[k] = write_string(program.alphabet, y)
    return found[0] if one else found
