"""Positions as remainders: a code that every dtype holds exactly, and on which a shift is a matrix.

Position j is the one-hot vectors of j mod m for a few moduli m, pairwise coprime. Two positions agree modulo all K of
them only if they differ by a multiple of their product N (Chinese remainders), so among positions that differ by less
than N the number of agreements is K for the same position and at most K − 1 for another. The code of j − s is the code
of j with the rows of each modulus turned by s: a permutation matrix.
"""

from __future__ import annotations

import numpy as np

from thereexists.functions.target import Array


def moduli_for(least: int) -> tuple[int, ...]:
    """Pairwise coprime moduli whose product is above ``least`` and whose sum is as small as can be.

    Powers of distinct primes do best (Landau). ``best[s]``: the largest product of a sum of at most s, and the moduli.
    """
    size = 8
    while True:
        best: list[tuple[int, tuple[int, ...]]] = [(1, ())] * (size + 1)
        for p in (p for p in range(2, size + 1) if all(p % q for q in range(2, p))):
            after = list(best)
            power = p
            while power <= size:
                for s in range(power, size + 1):
                    product, chosen = best[s - power]
                    after[s] = max(after[s], (product * power, (*chosen, power)))
                power *= p
            best = after
        found = next((chosen for product, chosen in best if product > least), None)
        if found is not None:
            return tuple(sorted(found))
        size *= 2


def codes(moduli: tuple[int, ...], positions: Array) -> Array:
    """(positions, Σ moduli) of 0/1."""
    return np.concatenate([positions[:, None] % m == np.arange(m) for m in moduli], axis=1).astype(np.float64)


def shift(moduli: tuple[int, ...], s: int) -> Array:
    """The matrix that makes the code of j − s from the code of j."""
    size = sum(moduli)
    found, start = np.zeros((size, size)), 0
    for m in moduli:
        r = np.arange(m)
        found[start + r, start + (r + s) % m] = 1.0
        start += m
    return found
