"""Queries and keys that look ``offset`` tokens back, and at the first token where there is none so far back.

All but the slowest frequency pair carry the offset: the key of every token is 1, the query a_f e^{−i w_f o}, so that
the logit of a token Δ back is Σ_f a_f cos(w_f (Δ − o)), largest at Δ = o. The amplitudes a_f ≥ 0, Σ a_f = 1, are those
with the largest gap

    min_{Δ ≠ 0} Σ_f a_f (1 − cos(w_f Δ)),

a linear program (equal amplitudes give 0.026 at theta 1e6 and 16,384 tokens, these 0.26). The first token has key 0
there. It answers on the slowest pair, which hardly turns, with a score halfway between the offset's and the others'.
"""

from __future__ import annotations

import functools

import numpy as np
from scipy.optimize import linprog

from thereexists.core.errors import CannotBuild

TOTAL = (
    2.0**14
)  # what the logit of the right token is, divided by √m: leads of hundreds, and bfloat16 knows such numbers
_TIGHT = 1e-4
_ADDED = 64


@functools.cache
def amplitudes(theta: float, size: int, reach: int) -> tuple[tuple[float, ...], float]:
    """The amplitudes of all frequencies but the slowest, and the gap; distances of up to ``reach`` tokens."""
    w = theta ** (-np.arange(0, size - 2, 2) / size)
    apart = 1 - np.cos(np.outer(np.arange(1, reach + 1), w))  # (reach, F)
    seen = np.unique(np.r_[np.arange(min(reach, _ADDED)), np.geomspace(1, reach, _ADDED).astype(int) - 1])
    F = len(w)
    for _ in range(100):  # constraints are added where they are broken most
        wanted = np.column_stack([-apart[seen], np.ones(len(seen))])
        found = linprog(
            np.r_[np.zeros(F), -1.0],
            A_ub=wanted,
            b_ub=np.zeros(len(seen)),
            A_eq=[np.r_[np.ones(F), 0.0]],
            b_eq=[1.0],
            bounds=[(0, None)] * F + [(None, None)],
        )
        a, gap = found.x[:F], float(found.x[F])
        leads = apart @ a
        if leads.min() > gap - _TIGHT:
            return tuple(a.tolist()), float(leads.min())
        seen = np.unique(np.r_[seen, np.argsort(leads)[:_ADDED]])
    raise CannotBuild("No amplitudes were found with which a head looks back that far.")


def query(offset: int, theta: float, size: int, reach: int) -> np.ndarray:
    """The query (size,), as RoPE takes it: real parts, then imaginary parts."""
    a, gap = amplitudes(theta, size, reach)
    w = theta ** (-np.arange(0, size, 2) / size)
    z = np.r_[np.array(a) * np.exp(-1j * w[:-1] * offset), 1 - gap / 2]
    return np.r_[z.real, z.imag] * TOTAL * np.sqrt(size)


def keys(size: int) -> tuple[np.ndarray, np.ndarray]:
    """The key of every token but the first, and of the first."""
    other, first = np.zeros(size), np.zeros(size)
    other[: size // 2 - 1] = 1.0
    first[size // 2 - 1] = 1.0
    return other, first
