"""When a stated figure agrees with the one that was found, another machine's rounding allowed for, and no more.

Every computed logit is within the rounding bound ρ of the real one. So two evaluations of a *logit* are within 2ρ of
each other, and two evaluations of a *difference* of logits within 4ρ. Leakage and ratio error are exponentials of
differences (``e^x`` and ``e^x - 1``): their logarithms are what may differ by 4ρ, however small the figures are.
"""

from __future__ import annotations

import math
from typing import Any

SLACK = 1e-9  # another machine's exp and log
_ROUNDING_SLACK = 1e-6  # radii of balls are kept to 30 bits
_NOTHING = 1e-300  # exponentials below this underflow
AT_MOST = ("gamma", "leakage", "ratio_error", "max_logit", "rounding")  # of a report: rounded up where they are printed


def number(stated: Any) -> float | None:
    """A number of a record as a float, None for anything else; infinities are stored as words."""
    if isinstance(stated, str) and stated in ("inf", "-inf", "nan"):
        return float(stated)
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        return None
    try:
        return float(stated)
    except OverflowError:  # a whole number of a thousand digits
        return None


def same_leakage(stated: float, found: float, rho: float) -> bool:
    if stated == found or (0 <= stated <= _NOTHING and found <= _NOTHING):
        return True
    if not (0 < stated < math.inf and 0 < found < math.inf):
        return False
    return abs(math.log(stated) - math.log(found)) <= 4 * rho + SLACK


def same_ratio_error(stated: float, found: float, rho: float, compared: float = 0.0) -> bool:
    """``compared``: how far subtracting the target's logarithms may move the difference, where ρ leaves it out."""
    if stated == found:
        return True
    if not (0 <= stated < math.inf and 0 <= found < math.inf):
        return False
    spread = math.log1p(found)
    return abs(math.log1p(stated) - spread) <= 4 * rho + 2 * compared + SLACK * spread + _NOTHING


def same_logit(stated: float, found: float, rho: float) -> bool:
    return stated == found or (math.isfinite(found) and abs(stated - found) <= 2 * rho + SLACK * abs(found))


def same_rounding(stated: float, found: float) -> bool:
    return stated == found or (math.isfinite(found) and abs(stated - found) <= _ROUNDING_SLACK * abs(found) + _NOTHING)
