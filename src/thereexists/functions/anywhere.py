"""Points anywhere in a box: uniform real numbers, each rounded to a float64.

``rng.random`` alone gives multiples of 2^-53. Below 1/2 that is a sparse lattice among the float64 numbers, and a
network can be made that is right on the lattice and wrong beside it: whoever draws from the lattice never sees it. A
second draw fills in the next 53 bits, so that every float64 of the box comes as often as the interval around it is long
(up to numbers of which all together are rarer than 2^-50 of the box).
"""

from __future__ import annotations

from typing import Any

import numpy as np

FINE = 2.0**-53


def anywhere(rng: np.random.Generator, low: Any, high: Any, shape: Any) -> np.ndarray:
    """Points between ``low`` and ``high``, which are broadcast to ``shape``."""
    return placed(low, high, rng.random(shape), rng.random(shape))


def placed(low: Any, high: Any, coarse: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """The points at the shares ``coarse`` + 2^-53 ``fine`` of the way."""
    side = np.asarray(high, dtype=np.float64) - low
    return np.clip((low + side * coarse) + side * FINE * fine, low, high)
