"""What a proof assumes of parameters: statements, each with whether it is so."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from thereexists.suites.plain import are_numbers

Hypotheses = Iterator[tuple[str, bool]]  # in an order in which each may be asked
MOST_TOKENS = 64


def has_just(params: Any, *names: str) -> tuple[str, bool]:
    """The parameters are these and no others."""
    return f"the parameters are {', '.join(names)}", isinstance(params, dict) and params.keys() == set(names)


def is_rising(values: Any, most: int) -> bool:
    """At least two numbers of [0, 1], at most so many, none below the one before it."""
    if not are_numbers(values, None, 0.0, 1.0) or not 2 <= len(values) <= most:
        return False
    return all(one <= after for one, after in pairwise(values))
