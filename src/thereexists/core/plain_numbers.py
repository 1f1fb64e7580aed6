"""Numbers that somebody gives as an argument: of the right kind and in range, or refused in one sentence."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import MOST_DIGITS

LONGEST = 1e6  # seconds: 11 days; a system call takes no infinite time


def whole(value: Any, what: str, least: int | None = None, most: int | None = None) -> int:
    """``value`` as an int in ``[least, most]``; a Boolean, a fraction or a text is none."""
    good = isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)
    if not good or (least is not None and value < least) or (most is not None and value > most):
        ends = "" if least is None else f" from {least} on" if most is None else f" from {least} to {most}"
        raise InvalidInput(f"{what} must be a whole number{ends}; got {shown(value)}.")
    return int(value)


def whole_or_none(value: Any, what: str, least: int) -> int | None:
    return None if value is None else whole(value, what, least)


def share_of_one(value: Any, what: str, whole_too: bool) -> float:
    """A share above 0 and below 1 (or at most 1), of whatever type of number, as Python's own float."""
    share = _as_float(value)
    if not (0 < share < 1 or (whole_too and share == 1)):
        ends = "at most 1" if whole_too else "below 1"
        raise InvalidInput(f"{what} must be a share above 0 and {ends}; got {shown(value)} instead.")
    return share


def positive(value: Any, what: str) -> float:
    """A number above 0, of whatever type, as Python's own float; of a fraction none larger."""
    number = _as_float(value)
    if not 0 < number < math.inf:
        raise InvalidInput(f"{what} must be a positive number; got {shown(value)} instead.")
    return number if number <= value else math.nextafter(number, 0.0)  # pyright: ignore[reportOperatorIssue]


def seed_from(value: Any, what: str = "'seed'") -> int:
    """A seed of NumPy's generators that a record holds: whoever reads the file takes no longer number."""
    seed = whole(value, what, 0)
    if seed >= 10**MOST_DIGITS:
        raise InvalidInput(f"{what} must have at most {MOST_DIGITS} digits; got {shown(value)}.")
    return seed


def of_63_bits(seed: int) -> int:
    """A seed as compiled code and torch's generators take it: of a longer one, what is left of it modulo 2^63."""
    return seed % 2**63


def seconds_from(value: Any, what: str = "'seconds'") -> float:
    """A time of 0 or more; infinity is the longest."""
    good = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not good or value != value or value < 0:
        raise InvalidInput(f"{what} must be a number of seconds, 0 or more; got {shown(value)}.")
    return LONGEST if value > LONGEST else float(value)


def shown(value: Any) -> str:
    """A short text for errors, whatever came: a number of 5,000 digits has no text in Python."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} too long to print"
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "…"


def _as_float(value: Any) -> float:
    """NaN of what is no number, infinity of what is larger than any float."""
    try:
        return float(value) if isinstance(value, Real | np.floating) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.inf
