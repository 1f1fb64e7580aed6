"""What a value of a program is known by: its forms, how far they are from the ideal value, and the program so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thereexists.certificates.program_forms import Form, Number, Terms, exact
from thereexists.certificates.program_numbers import above, below
from thereexists.certificates.program_profile import ROUNDED_UP as ROUNDED_UP
from thereexists.certificates.program_profile import Profile
from thereexists.core.errors import InvalidInput

WORK = 512  # what a profile costs, in numbers written: all of MOST_WORK is about a minute (``program_limits.py``)


@dataclass(frozen=True)
class Meant:
    """``forms[feature][token]``, the gaps (d, n), and, where more is known, how the gap depends on the value."""

    forms: list[list[Form]]
    gap: np.ndarray
    profile: Profile | None = None


@dataclass
class Meaning:
    """The whole program in forms over ``terms``, for sequences of n tokens; ``full`` is the most it is made for."""

    n: int
    full: int
    terms: Terms = field(default_factory=Terms)
    assumptions: list[str] = field(default_factory=list)
    splines: list[dict[str, Any]] = field(default_factory=list)  # own error and name of every function
    box: list[tuple[float, float]] = field(default_factory=list)  # ends of every feature of the input


def profile_of(meaning: Meaning, value: Meant) -> Profile:
    """What is known of a value: its profile, or its largest gap wherever it is; within the range of its forms."""
    low, high = range_of(meaning, value)
    meaning.terms.count(WORK)
    flat = Profile.flat(low, high, float(value.gap.max(initial=0.0)))
    return flat if value.profile is None else value.profile.within(low, high)


def range_of(meaning: Meaning, value: Meant) -> tuple[float, float]:
    ranges = [meaning.terms.range(form) for row in value.forms for form in row]
    return below(min(low for low, _ in ranges)), above(max(high for _, high in ranges))


def with_profile(forms: list[list[Form]], gap: np.ndarray, profile: Profile | None) -> Meant:
    """Both are right, so the smaller gap is. (A profile that is not a number is no profile.)"""
    if profile is None or not profile.worst < np.inf:
        return Meant(forms, gap)
    return Meant(forms, np.where(profile.worst < gap, profile.worst, gap), profile)


def map_forms(meaning: Meaning, function: Callable[..., Form], *values: Meant) -> list[list[Form]]:
    """A function of forms at every feature and token."""
    features = zip(*(value.forms for value in values), strict=True)
    return [[function(*forms) for forms in zip(*rows, strict=True)] for rows in features]


def positive(settings: dict[str, Any], name: str) -> Number:
    number = exact(settings[name])
    if number <= 0:
        raise InvalidInput(f"'{name}' must be positive; got {settings[name]} instead.")
    return number
