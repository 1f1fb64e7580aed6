"""Pairs of sequences: checks that everything that stores pairs needs, and files that hold them.

A table is CSV with a header: the columns ``x1`` … ``xn`` are the input tokens, ``y1`` … ``yn`` the output tokens; the
numbers give their order, wherever the columns stand. A data set is JSON lines,
``{"input": [...], "output": [...]}``, tokens strings or integers; or CSV with the header ``input,output`` and two texts
in every row, which are split into words at white space, or into characters.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import MOST_DIGITS, parse_json
from thereexists.core.plain_numbers import shown, whole
from thereexists.core.plain_text import lines_of
from thereexists.core.regular_files import read_regular
from thereexists.functions.vocabulary import Token, check_sequences

ON_CONFLICT = ("error", "drop", "first", "last")
MOST_BYTES = 1 << 30  # of a file of pairs
MOST_LINES = 1 << 53  # the largest number of one
_NAMED = 8  # conflicts that a message names


@dataclass(frozen=True)
class Pairs:
    """Distinct inputs with one output each, and what was decided about contradicting ones."""

    inputs: list[tuple[Token, ...]]
    outputs: list[tuple[Token, ...]]
    repeated: int = 0
    conflicts: list[dict] = field(default_factory=list)  # {"input", "lines"} of every contradiction


def distinct_pairs(
    inputs,
    outputs,
    lines: Iterable[int] | None = None,
    on_conflict: str = "error",
    advice: str = "Correct them, or choose with --on-conflict drop, first or last.",
) -> Pairs:
    """Check both sides, drop repetitions, and deal with contradictions as told. ``lines`` names rows in messages."""
    if on_conflict not in ON_CONFLICT:
        raise InvalidInput(f"'on_conflict' must be one of {', '.join(ON_CONFLICT)}; got {on_conflict!r} instead.")
    lines = None if lines is None else _numbers_of(lines)
    inputs, outputs = check_sequences(inputs, "The inputs", lines), check_sequences(outputs, "The outputs", lines)
    if len(inputs) != len(outputs):
        raise InvalidInput(f"There must be one output for every input; got {len(inputs)} and {len(outputs)}.")
    if not inputs:
        raise InvalidInput("There are no pairs; at least one is needed.")
    word = "line" if lines is not None else "pair"
    numbers = lines if lines is not None else list(range(len(inputs)))
    empty = next((i for i, sequence in enumerate(inputs) if not sequence), None)
    if empty is not None:
        raise InvalidInput(f"An input must have at least one token; {word} {numbers[empty]} has none.")
    where: dict[tuple[Token, ...], list[int]] = {}
    for i, sequence in enumerate(inputs):
        where.setdefault(sequence, []).append(i)
    contradicting = {s: rows for s, rows in where.items() if len({outputs[i] for i in rows}) > 1}
    if contradicting and on_conflict == "error":
        named = "; ".join(
            f"{' '.join(map(str, s))!r} ({word}s {', '.join(str(numbers[i]) for i in rows)})"
            for s, rows in list(contradicting.items())[:_NAMED]
        )
        more = f" and {len(contradicting) - _NAMED} more" if len(contradicting) > _NAMED else ""
        raise InvalidInput(f"{len(contradicting)} inputs have contradicting outputs: {named}{more}. {advice}")
    kept = {s: rows for s, rows in where.items() if not (s in contradicting and on_conflict == "drop")}
    if not kept:
        raise InvalidInput("Every input has contradicting outputs; nothing is left.")
    side = -1 if on_conflict == "last" else 0
    conflicts = [{"input": list(s), f"{word}s": [numbers[i] for i in rows]} for s, rows in contradicting.items()]
    return Pairs(list(kept), [outputs[rows[side]] for rows in kept.values()], len(inputs) - len(where), conflicts)


def _numbers_of(lines: Any) -> list[int]:
    """The numbers of lines, as a record holds them."""
    if isinstance(lines, str) or not isinstance(lines, Iterable):
        raise InvalidInput(f"'lines' must be a list of whole numbers; got {shown(lines)}.")
    return [whole(line, "A number in 'lines'", 0, MOST_LINES) for line in lines]


def read_jsonl(path: Path) -> tuple[list, list, list[int]]:
    """Inputs, outputs and line numbers."""
    inputs, outputs, lines = [], [], []
    for number, text in enumerate(lines_of(read_text(path)), 1):
        if not text.strip():
            continue
        try:
            pair = parse_json(text, "the line", InvalidInput, '{"input": [...], "output": [...]} in JSON')
            inputs.append(pair["input"])
            outputs.append(pair["output"])
        except InvalidInput as error:
            raise InvalidInput(f"{path}, line {number}: {error}") from None
        except (KeyError, TypeError) as error:
            raise InvalidInput(
                f'{path}, line {number}: wanted {{"input": [...], "output": [...]}}; {type(error).__name__}: {error}.'
            ) from None
        lines.append(number)
    if not lines:
        raise InvalidInput(f'{path} is empty; it must hold lines {{"input": [...], "output": [...]}}.')
    return inputs, outputs, lines


SPLITS = ("words", "characters")


def read_pairs(path: Path, split: str | None = None) -> tuple[list, list, list[int]]:
    """A data set: CSV of two texts in a row, split into tokens as told, or JSON lines, which say their tokens."""
    if path.suffix.lower() != ".csv":
        if split is not None:
            raise InvalidInput(
                "'split' is for CSV with the columns input and output; JSON lines list their tokens already."
            )
        return read_jsonl(path)
    split = split or SPLITS[0]
    if split not in SPLITS:
        raise InvalidInput(f"'split' must be {' or '.join(SPLITS)}; got {split!r} instead.")
    rows = read_csv(path)
    if not rows or [name.strip().lower() for name in rows[0][1]] != ["input", "output"]:
        raise InvalidInput(f"{path} must begin with the header input,output, and have two texts in every row below it.")
    wrong = next(((number, row) for number, row in rows[1:] if len(row) != 2), None)
    if wrong is not None:
        raise InvalidInput(
            f"{path}, line {wrong[0]}: wanted two texts; got {len(wrong[1])} columns. Put texts with commas in quotes."
        )
    tokens = [[text.split() if split == "words" else list(text) for text in row] for _, row in rows[1:]]
    return [row[0] for row in tokens], [row[1] for row in tokens], [number for number, _ in rows[1:]]


def read_table(path: Path) -> tuple[list, list, list[int]]:
    """Inputs, outputs and line numbers of a CSV table.

    Tokens that are all integers, written as Python writes them, become integers, unless one has more digits than a
    file of ours holds.
    """
    rows = read_csv(path)
    if len(rows) < 2:
        raise InvalidInput(f"{path} is empty; it must hold a header such as x1,x2,y1,y2 and at least one row.")
    header = [name.strip() for name in rows[0][1]]
    x, y = (_columns(header, letter) for letter in "xy")
    if not x or len(x) != len(y) or len(x) + len(y) != len(header):
        raise InvalidInput(
            f"{path}: the header must name the input columns x1 to xn and as many output columns y1 to yn, each once, "
            f"and no others; got {','.join(header)}."
        )
    for number, row in rows[1:]:
        if len(row) != len(header):
            raise InvalidInput(f"{path}, line {number}: wanted {len(header)} columns; got {len(row)}.")
        if any(not cell.strip() for cell in row):
            raise InvalidInput(f"{path}, line {number}: a token is missing.")
    body = [[cell.strip() for cell in row] for _, row in rows[1:]]
    whole = all(is_integer(cell) for row in body for cell in row)
    tokens = [[int(cell) if whole else cell for cell in row] for row in body]
    return [[row[i] for i in x] for row in tokens], [[row[i] for i in y] for row in tokens], [n for n, _ in rows[1:]]


def _columns(header: list[str], letter: str) -> list[int]:
    """Where the columns letter1, letter2, … stand, in the order of their numbers; a gap ends the list."""
    place = {name: i for i, name in enumerate(header)}
    count = next(k for k in range(1, len(header) + 2) if f"{letter}{k}" not in place) - 1
    return [place[f"{letter}{k}"] for k in range(1, count + 1)]


def is_integer(cell: str) -> bool:
    """As Python writes it: 01 and 1 are two tokens, and only one of them is an integer."""
    return len(cell) <= MOST_DIGITS and cell.lstrip("-").isdecimal() and cell.count("-") <= 1 and str(int(cell)) == cell


def read_csv(path: Path) -> list[tuple[int, list[str]]]:
    """The one reader of CSV: the cells of every line that is not empty, and the number of the line."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)  # line ends in quotes stay as they are
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InvalidInput(f"{path}, line {reader.line_num}: this is not valid CSV: {error}.") from None


def read_text(path: Path) -> str:
    try:
        return read_regular(path, MOST_BYTES, InvalidInput).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"Cannot read {path}: {error}.") from error
