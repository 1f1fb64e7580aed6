"""A head that looks a fixed number of tokens back, by RoPE alone: how far the right token leads, in a dtype.

Queries and keys are constants: the query is z_f, the key of every token κ_f, the key of the first token κ⁰_f, complex
numbers for the frequencies w_f. RoPE turns them by the position, so that the logit of a key Δ tokens back is

    L(Δ) = Re Σ_f z_f κ̄_f e^{i w_f Δ} / √m     and     S(j) = Re Σ_f z_f κ̄⁰_f e^{i w_f j} / √m

for the first token, seen from the token j. With z_f = a_f e^{−i w_f o} and κ_f = 1, L is largest at Δ = o. The token j
has keys at Δ = 0 … j − 1 and the first at Δ = j. It must look at Δ = o where j > o, and at the first token otherwise:

    j > o:  L(o) − max_{Δ<j, Δ≠o} L(Δ)  and  L(o) − S(j)        j ≤ o:  S(j) − max_{Δ<j} L(Δ)

all j, all Δ, each less by what the dtype does to the two logits that are compared. That is, for every frequency:
angles that are rounded at positions up to P, a common error of the frequency (seen only in differences of positions), a
table that is cast, two products and a sum that are rounded, for the query and for the key; then the logit itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.certificates.llama.rounding import FREQUENCY, LOGIT_ROUNDINGS, SLACK, TABLE, Rounding, sums
from thereexists.functions.target import Array

_CHUNK = 1 << 18  # angles at a time


@dataclass(frozen=True)
class Turning:
    """RoPE: ``theta``, the size m of a head, positions below ``positions``; ``reach``: the most tokens back."""

    theta: float
    size: int
    positions: int
    reach: int

    @property
    def frequencies(self) -> Array:
        return self.theta ** (-np.arange(0, self.size, 2) / self.size)


@dataclass(frozen=True)
class Vector:
    """What a linear layer gives, before it is turned: nominal (size,), and by how much each number may differ."""

    nominal: Array
    slip: Array

    def pairs(self) -> tuple[Array, Array]:
        """Complex numbers, and the size of their errors."""
        F = len(self.nominal) // 2
        return self.nominal[:F] + 1j * self.nominal[F:], np.hypot(self.slip[:F], self.slip[F:])


def logits(query: Array, key: Array, turning: Turning) -> Array:
    """Over the reals: (reach + 1,), of a key 0, 1, …, reach tokens back."""
    z, w = query * key.conj(), turning.frequencies
    found = np.empty(turning.reach + 1)
    chunk = max(1, _CHUNK // len(w))
    for start in range(0, turning.reach + 1, chunk):
        delta = np.arange(start, min(start + chunk, turning.reach + 1))
        angle = np.outer(delta, w)
        found[delta] = np.cos(angle) @ np.real(z) - np.sin(angle) @ np.imag(z)
    return found / np.sqrt(turning.size)


def logit_error(query: Vector, key: Vector, turning: Turning, rounding: Rounding) -> float:
    """By how much a logit may differ from ``logits`` of the nominal vectors."""
    return float(logit_errors(query, key, turning, rounding).sum())


def logit_errors(query: Vector, key: Vector, turning: Turning, rounding: Rounding) -> Array:
    """The share of every frequency in that: (size/2,)."""
    u, w = rounding.u, turning.frequencies
    (z, dz), (k, dk) = query.pairs(), key.pairs()
    turned = turning.positions * w * 2.0**-24 + 2 * TABLE  # of both numbers of a pair, as a part of its size
    part = (1 + 2 * np.sqrt(2)) * u * (1 + 4 * u) + turned * (1 + 4 * u)
    rz, rk = (np.abs(z) + dz) * part + dz, (np.abs(k) + dk) * part + dk
    differ = np.abs(z) * rk + np.abs(k) * rz + rz * rk + np.abs(z * k) * w * turning.reach * FREQUENCY
    sizes = (np.abs(z) + rz) * (np.abs(k) + rk)
    computed = (LOGIT_ROUNDINGS * u * (1 + 4 * u) + sums(turning.size)) * sizes
    return (differ + computed) / np.sqrt(turning.size) * SLACK


def lead(query: Vector, key: Vector, first: Vector, offset: int, turning: Turning, rounding: Rounding) -> float:
    """The least lead of the right token, over all tokens 1 … reach; minus infinity never passes."""
    z, k, k0 = query.pairs()[0], key.pairs()[0], first.pairs()[0]
    L, S = logits(z, k, turning), logits(z, k0, turning)
    e_L, e_S = (logit_error(query, one, turning, rounding) for one in (key, first))
    j = np.arange(1, turning.reach + 1)
    others = L.copy()
    if offset <= turning.reach:
        others[offset] = -np.inf
    highest = np.maximum.accumulate(others)[j - 1]  # over the tokens Δ = 0 … j − 1, but for the offset
    near = j <= offset
    leads = np.where(near, S[j] - highest - (e_L + e_S), np.inf)
    if offset < turning.reach:
        far = np.minimum(L[offset] - highest - 2 * e_L, L[offset] - S[j] - (e_L + e_S))
        leads = np.where(near, leads, far)
    return float(leads.min())
