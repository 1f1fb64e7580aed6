"""What a value of a program is known by: its forms, how far they are from the ideal value, and the program so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thereexists.certificates.program_forms import Form, Number, Terms, exact
from thereexists.core.errors import InvalidInput

ROUNDED_UP = 1.0 + 2.0**-40  # of a few float64 operations on numbers that are not negative


@dataclass(frozen=True)
class Meant:
    """``forms[feature][token]``, the gaps (d, n), and, where known, ends that the *ideal* value never leaves."""

    forms: list[list[Form]]
    gap: np.ndarray
    ends: tuple[Number, Number] | None = None


@dataclass
class Meaning:
    """The whole program in forms over ``terms``, for sequences of n tokens; ``full`` is the most it is made for."""

    n: int
    full: int
    terms: Terms = field(default_factory=Terms)
    assumptions: list[str] = field(default_factory=list)
    splines: list[dict[str, Any]] = field(default_factory=list)  # own error and name of every function
    box: list[tuple[float, float]] = field(default_factory=list)  # ends of every feature of the input


def map_forms(meaning: Meaning, function: Callable[..., Form], *values: Meant) -> list[list[Form]]:
    """A function of forms at every feature and token."""
    features = zip(*(value.forms for value in values), strict=True)
    return [[function(*forms) for forms in zip(*rows, strict=True)] for rows in features]


def positive(settings: dict[str, Any], name: str) -> Number:
    number = exact(settings[name])
    if number <= 0:
        raise InvalidInput(f"'{name}' must be positive; got {settings[name]} instead.")
    return number
