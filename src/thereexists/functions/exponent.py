"""The p of d_p."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.functions.domains.domain import shortly


def exponent(p: Any) -> float:
    """The p of d_p: a plain number of at least 1."""
    number = isinstance(p, int | float | np.integer | np.floating) and not isinstance(p, bool)
    try:
        value = float(p) if number else math.nan
    except OverflowError:
        value = math.inf
    if not 1 <= value < math.inf:
        raise InvalidInput(f"'p' must be a finite number of at least 1; got {shortly(p)} instead.")
    return int(p) if isinstance(p, int | np.integer) else value
