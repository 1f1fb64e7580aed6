"""Sequences from the command line: numbers in a string, a .npy file, or a .csv file with one sequence per line; strings

of symbols as they are, or a .txt file with one a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_arrays import MOST_BYTES, read_npy
from thereexists.core.plain_text import lines_of
from thereexists.core.regular_files import read_regular


def read_sequences(text: str, n: int, d: int) -> np.ndarray:
    """``"0.3 0.1 0.7"``, or ``"0.3 0.1; 0.7 0.2"`` with a semicolon between tokens, or a file name: (batch, n, d)."""
    path = Path(text)
    if path.suffix == ".npy":
        return _from_npy(path, n, d)
    if path.suffix == ".csv":
        return _as_batch([_numbers(line, f"{text}, line {i}") for i, line in _lines(path)], n, d)
    tokens = [_numbers(token, "--input") for token in text.split(";")]
    if len(tokens) > 1 and any(len(token) != d for token in tokens):
        raise InvalidInput(
            f"--input must have {d} numbers for each token; got {', '.join(str(len(t)) for t in tokens)} instead."
        )
    return _as_batch([[number for token in tokens for number in token]], n, d)


def read_strings(text: str, alphabet: Sequence[Any]) -> list[Any]:
    """One string, or a .txt file with one per line; symbols that are not characters are separated by spaces."""
    lines = [text]
    if Path(text).suffix == ".txt":
        try:
            lines = lines_of(read_regular(Path(text), MOST_BYTES, InvalidInput).decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InvalidInput(f"Cannot read {text}: {error}.") from error
        if not lines:
            raise InvalidInput(f"{text} is empty; it must hold one string per line.")
    if all(isinstance(symbol, str) and len(symbol) == 1 for symbol in alphabet):
        return lines
    numbers = {str(symbol): symbol for symbol in alphabet}
    alike = written_alike(alphabet)
    words = [_words(line) for line in lines]
    unclear = next((word for line in words for word in line if word in alike), None)
    if unclear is not None:
        raise InvalidInput(
            f"The alphabet has a number and a text that are both written {unclear!r}, and a command cannot tell which "
            "one is meant: run the witness from Python."
        )
    return [[numbers.get(word, word) for word in line] for line in words]


def written_alike(alphabet: Sequence[Any]) -> set[str]:
    """What more than one symbol is written as: the number 1 and the text "1" are two symbols."""
    return {word for word, times in Counter(map(str, alphabet)).items() if times > 1}


def _words(line: str) -> list[str]:
    """Between spaces and tabs alone: other white space may be a symbol."""
    return [word for word in line.replace("\t", " ").split(" ") if word]


def _numbers(text: str, place: str) -> list[float]:
    words = text.replace(",", " ").split()
    try:
        return [float(word) for word in words]
    except ValueError:
        bad = next(word for word in words if not is_number(word))
        raise InvalidInput(f"{place} must hold numbers; got {bad!r} instead.") from None


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        text = read_regular(path, MOST_BYTES, InvalidInput).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"Cannot read {path}: {error}.") from error
    lines = [(i, line) for i, line in enumerate(lines_of(text), 1) if line.strip()]
    if not lines:
        raise InvalidInput(f"{path} is empty; it must hold one sequence per line.")
    return lines


def _as_batch(rows: list[list[float]], n: int, d: int) -> np.ndarray:
    for i, row in enumerate(rows):
        if len(row) != n * d:
            where = f" in sequence {i}" if len(rows) > 1 else ""
            raise InvalidInput(
                f"A sequence must have {n} tokens of {d} numbers, {n * d} in all; got {len(row)}{where} instead."
            )
    return np.array(rows, dtype=np.float64).reshape(len(rows), n, d)


def _from_npy(path: Path, n: int, d: int) -> np.ndarray:
    array = read_npy(path)
    shapes = {(n,): (1, n, 1), (n, d): (1, n, d)} if d == 1 else {(n, d): (1, n, d)}
    if array.shape in shapes:
        return array.reshape(shapes[array.shape]).astype(np.float64)
    if array.ndim == 3 or (array.ndim == 2 and d == 1 and array.shape[1] == n):
        return array.reshape(len(array), *array.shape[1:], *(() if array.ndim == 3 else (1,))).astype(np.float64)
    raise InvalidInput(f"{path} must hold an array (batch, {n}, {d}); got the shape {array.shape} instead.")
