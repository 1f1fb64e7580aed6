"""The definitions, written out for small n. Nothing here is imported from the package."""

import numpy as np


def has_path(union):
    """Hamiltonian path by dynamic programming over subsets: ``reach[S]`` = the tokens a path through S can end at.

    The path is γ(1), …, γ(n) with γ(i) ∈ A_{γ(i+1)}, so token k may follow j when k attends to j.
    """
    n = len(union)
    follows = [sum(1 << int(k) for k in range(n) if union[k, j] and k != j) for j in range(n)]
    reach = [0] * (1 << n)
    for k in range(n):
        reach[1 << k] = 1 << k
    for subset in range(1, 1 << n):
        ends = reach[subset]
        while ends:
            j = (ends & -ends).bit_length() - 1
            ends &= ends - 1
            more = follows[j] & ~subset
            while more:
                bit = more & -more
                more ^= bit
                reach[subset | bit] |= bit
    return reach[-1] != 0


def depth(masks, causal=False):
    """The smallest s with S_k^s = [n] (or {0..k}), by the recursion; None when it never happens."""
    p, n, _ = masks.shape
    goal = np.tri(n, dtype=bool) if causal else np.ones((n, n), bool)
    seen = np.eye(n, dtype=bool)
    loops = masks[:, range(n), range(n)].all()
    most = n if loops else (n - 1) ** 2 + 2  # cycles needed: n − 1 moves with self-loops, Wielandt's bound without
    for t in range(1, p * most + 1):
        seen = (masks[(t - 1) % p].astype(np.int64) @ seen) > 0
        if (seen | ~goal).all():
            return t
    return None


def reachable(union):
    """Reflexive transitive closure of "k attends to j"."""
    seen = union | np.eye(len(union), dtype=bool)
    for _ in range(len(union).bit_length() + 1):
        seen = (seen.astype(np.int64) @ seen) > 0
    return seen
