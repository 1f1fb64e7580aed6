"""Plain data of a file that a stranger may have written: is it a whole number, a number, a truth value, words?

``True`` is not a number here, and no number is infinite. Every question has an answer, whatever it is asked about.
"""

from __future__ import annotations

import math
import re
from typing import Any


def is_whole(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def is_flag(value: Any) -> bool:
    return type(value) is bool


def is_number(value: Any, low: float = -math.inf, high: float = math.inf) -> bool:
    return type(value) in (int, float) and low <= value <= high and abs(value) < math.inf


def are_numbers(values: Any, count: int | None = None, low: float = -math.inf, high: float = math.inf) -> bool:
    """A list of so many numbers, or of any, each between the two."""
    right = type(values) is list and count in (None, len(values))
    return right and all(is_number(value, low, high) for value in values)


def is_name(value: Any) -> bool:
    """Of a file or a folder: no path leads out of the suite, and nothing is special to a shell or a table."""
    return type(value) is str and re.fullmatch(r"[0-9A-Za-z_][0-9A-Za-z_-]{0,99}", value) is not None
