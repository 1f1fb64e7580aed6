"""Which of many things are looked at."""

from __future__ import annotations

import secrets

import numpy as np

MOST = 1 << 16  # cells or pairs that are compared; beyond that a random sample of so many, with the first and the last


def chosen(count: int, most: int = MOST) -> np.ndarray:
    """All, or a random sample that nobody can foresee: else a forger would know which cells are never looked at."""
    if count <= most:
        return np.arange(count)
    drawn = secrets.SystemRandom().sample(range(1, count - 1), most - 2)  # distinct
    return np.sort(np.array([0, count - 1, *drawn]))
