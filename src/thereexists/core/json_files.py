"""The one reader of JSON that somebody else may have written. Whatever is wrong with it becomes one sentence.

Python's own reader takes more than JSON (NaN, repeated names, whole numbers of any length) and gives up on deep nesting
with an error of its own. None of that is in a file of ours; here all of it is refused, before any field is looked at.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thereexists.core.errors import BadWitnessFile, Obstructed, ThereExistsError
from thereexists.core.memory import is_out_of_memory
from thereexists.core.regular_files import read_regular

MOST_BYTES = 16 << 20
DEEPEST = 64
MOST_CONTAINERS = 1 << 22  # lists and objects: of three characters each makes a hundred bytes
MOST_DIGITS = 100  # of a whole number, its sign included: float() of it never overflows


def read_json(file: Path, most: int = MOST_BYTES, what: str = "JSON as we write it") -> Any:
    """The content of a file of at most ``most`` bytes; ``what`` it should be, for messages."""
    return parse_json(read_regular(file, most), str(file), what=what)


def parse_json(
    text: bytes | str,
    place: str,
    error: type[ThereExistsError] = BadWitnessFile,
    what: str = "JSON as we write it",
) -> Any:
    """A JSON value; ``place`` names it in messages."""
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        if decoded.count("[") + decoded.count("{") > MOST_CONTAINERS:
            raise ValueError(f"it has more than {MOST_CONTAINERS:,} lists and objects")
        value = json.loads(
            decoded, parse_constant=_no_number, parse_float=_finite, parse_int=_whole, object_pairs_hook=_distinct
        )
        if too_deep(value):
            raise ValueError(f"it is nested more than {DEEPEST} deep")
    except RecursionError as wrong:
        raise error(f"{place} was truncated or changed: it is not {what} (nested more than {DEEPEST} deep).") from wrong
    except ValueError as wrong:  # a UnicodeDecodeError is one
        raise error(f"{place} was truncated or changed: it is not {what} ({wrong}).") from wrong
    return value


@contextmanager
def malformed(place: Any, what: str = "is not a complete record") -> Iterator[None]:
    """The digests fit, so the record was written on purpose, and its entries are not what they should be: say so."""
    try:
        yield
    except (BadWitnessFile, Obstructed):
        raise
    except ThereExistsError as error:
        raise BadWitnessFile(f"{place} {what}: {error}") from error
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RuntimeError, StopIteration) as error:
        if is_out_of_memory(error):  # torch says so in a RuntimeError: nothing is known of the record
            raise
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        raise BadWitnessFile(f"{place} {what}: {reason}") from error


def too_deep(value: Any) -> bool:
    """Whether lists and objects stand in each other deeper than ``DEEPEST``, found level by level."""
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        inner = [part for part in level if isinstance(part, dict | list)]
        level = [x for part in inner for x in (part.values() if isinstance(part, dict) else part)]
        depth += bool(inner)
    return depth > DEEPEST


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(f"the number {word[:40]} is too large")
    return value


def _whole(word: str) -> int:
    if len(word) > MOST_DIGITS:
        raise ValueError(f"a whole number has {len(word)} digits")
    return int(word)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object names something twice")
    return value


def record_digest(record: dict[str, Any]) -> str:
    """SHA-256 of a record without its own entry ``digest``; a forged one may hold what no text is."""
    content = {key: value for key, value in record.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
