"""Whole powers of balls."""

from __future__ import annotations

from flint import arb


def whole_power(x: arb, k: int) -> arb:
    """x^k, k ≥ 0. Of a ball with its centre at 0 python-flint's own power is no number; then by multiplication."""
    found = x**k
    if found.is_finite() or not x.is_finite():
        return found
    found = arb(1)
    for _ in range(k):
        found *= x
    return found
