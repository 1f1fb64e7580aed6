"""What a proof assumes of parameters, as questions with the answer yes or no. A parameter may come from a stranger's
file: a word, a truth value or a list where a number is wanted is just not what is assumed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

Hypotheses = Iterator[tuple[str, bool]]  # a statement, and whether it is so; in an order in which each may be asked
MOST_TOKENS = 64


def has_just(params: Any, *names: str) -> tuple[str, bool]:
    """The parameters are these and no others."""
    return f"the parameters are {', '.join(names)}", isinstance(params, dict) and params.keys() == set(names)


def is_whole(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def is_flag(value: Any) -> bool:
    return type(value) is bool


def is_number(value: Any, low: float, high: float) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and low <= value <= high


def are_numbers(values: Any, count: int, low: float, high: float) -> bool:
    """A list of so many numbers, each between the two."""
    return type(values) is list and len(values) == count and all(is_number(value, low, high) for value in values)


def is_rising(values: Any, most: int) -> bool:
    """At least two numbers of [0, 1], at most so many, none below the one before it."""
    if type(values) is not list or not 2 <= len(values) <= most or not are_numbers(values, len(values), 0.0, 1.0):
        return False
    return all(one <= after for one, after in pairwise(values))
