"""A feed-forward layer as a memory with keys: one hidden unit for a set of contexts, exact in every precision.

A context is a vertex of {0,1}^D, given as *literals*: 2D rows r_i⁺, r_i⁻ ≥ 0 of the residual stream, of which r_i⁺ is
exactly 0 where bit i is 0 and at least 1 where it is 1, and r_i⁻ the other way round. A *cube* fixes some of the bits
(a sign ±1 each) and leaves the others open (0). Its unit is

    a_C = ReLU(gate − Σ r_i^{−s_i} over the fixed bits i)        gate = 1, or the one-hot row of a position

On a context of the cube every subtracted literal is exactly 0, so a_C = gate; on any other context one of them is at
least 1, so a_C = 0. No cancellation, no large number whose size matters: nothing rounds.

**The mass lemma.** If r_i⁺ + r_i⁻ ≥ 1 for every i, on all inputs (ramps too), and the cubes are disjoint, then
Σ_C a_C ≤ gate. Proof: with q_i^± = 1 − min(1, r_i^∓) one has q_i⁺ + q_i⁻ ≤ 1, and 1 − Σ x ≤ Π (1 − x) gives
a_C ≤ Π q_i^{s_i} over the fixed bits, the probability that independent bits fall into C; disjoint events sum to ≤ 1. ∎
So the memory's output stays between its smallest and its largest stored value, whatever the input.

**Equal outputs share units** (``share``): two cubes that fix the same bits, differ in the sign of one, and store the
same value become one cube with that bit open. Repeated over all bits until nothing changes; the cubes stay disjoint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.functions.target import Array

_WORD = 62  # bits in one signed 64-bit word


@dataclass(frozen=True)
class Cubes:
    """``signs`` (M, D) in {−1, 0, 1}: the fixed bits of every cube; ``labels`` (M,): which value it stores."""

    signs: Array
    labels: Array

    def __len__(self) -> int:
        return len(self.labels)

    def without(self, label: int) -> Cubes:
        """All but the cubes of one value: a bias carries that one."""
        keep = self.labels != label
        return Cubes(self.signs[keep], self.labels[keep])


def share(codes: Array, labels: Array) -> Cubes:
    """Distinct contexts ``codes`` (N, D) of 0/1 with values ``labels`` (N,), as few disjoint cubes as merging finds."""
    D = codes.shape[1]
    words = -(-D // _WORD)
    where = [(i // _WORD, np.int64(1) << np.int64(i % _WORD)) for i in range(D)]
    value = np.zeros((words, len(codes)), dtype=np.int64)
    for i, (word, bit) in enumerate(where):
        value[word] |= np.where(codes[:, i] != 0, bit, np.int64(0))
    fixed = np.zeros_like(value)
    for word, bit in where:
        fixed[word] |= bit
    quiet = 0  # bits in a row that merged nothing
    while quiet < D:
        for word, bit in where:
            value, fixed, labels, merged = _merge(value, fixed, labels, word, bit)
            quiet = 0 if merged else quiet + 1
            if quiet >= D:
                break
    signs = np.zeros((value.shape[1], D), dtype=np.int8)
    for i, (word, bit) in enumerate(where):
        signs[:, i] = np.where(fixed[word] & bit, np.where(value[word] & bit, 1, -1), 0)
    return Cubes(signs, labels)


def _merge(value: Array, fixed: Array, labels: Array, word: int, bit: np.int64) -> tuple[Array, Array, Array, bool]:
    """Open one bit of all pairs of cubes that agree in everything else."""
    has = (fixed[word] & bit) != 0
    at = np.flatnonzero(has)
    key = value[:, at].copy()
    key[word] &= ~bit
    order = np.lexsort((*key, *fixed[:, at], labels[at]))
    columns = np.concatenate([key, fixed[:, at], labels[None, at]])[:, order]
    twin = (columns[:, 1:] == columns[:, :-1]).all(axis=0)  # cubes are disjoint: never three of a kind
    if not twin.any():
        return value, fixed, labels, False
    first, second = at[order[:-1][twin]], at[order[1:][twin]]
    value[word, first] &= ~bit
    fixed[word, first] &= ~bit
    keep = np.ones(len(labels), dtype=bool)
    keep[second] = False
    return value[:, keep], fixed[:, keep], labels[keep], True


def wrong_literals(cubes: Cubes) -> Array:
    """The first matrix on the literal rows (r⁺ first, then r⁻): −1 where a literal contradicts the cube. (M, 2D)."""
    return np.concatenate([-(cubes.signs < 0).astype(float), -(cubes.signs > 0).astype(float)], axis=1)


def best_default(values: Array, counts: Array) -> Array:
    """The value that a bias should carry: the commonest v with v + (w − v) = w for every stored w, or else 0.

    That is asked of float64 and of float32 (every number rounded to it first), so that a lower dtype gives the stored
    value rounded once. ``values`` (M, d) distinct, ``counts`` (M,): how many units each would save.
    """
    for i in np.argsort(-counts, kind="stable")[:8]:
        default = values[i]
        if all(_restores(values, default, dtype) for dtype in (np.float64, np.float32)):
            return default
    return np.zeros(values.shape[1])


def _restores(values: Array, default: Array, dtype: type) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):  # beyond float32: infinities, and their differences
        restored = default.astype(dtype) + (values - default).astype(dtype)
        return bool((restored == values.astype(dtype)).all())
