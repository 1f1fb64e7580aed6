"""The depth of a pattern some of whose tokens do not attend to themselves: by Boolean matrix powers, for small n.

Without ``k ∈ A_k`` the sets ``S_k^t`` need not grow, but "all of them are full" persists, since no row is empty. With
``C = A^p ⋯ A^1`` as Boolean matrices, ``S^{qp}`` is ``C^q``; if any power of C is full, then one with
``q ≤ (n−1)² + 1`` is (Wielandt).
"""

from __future__ import annotations

import numpy as np

from thereexists.patterns.pattern import Pattern

MOST_TOKENS = 512


def depth_by_powers(pattern: Pattern, causal: bool):
    from thereexists.patterns.depth import DepthResult

    n, p = pattern.n, pattern.cycle
    if n > MOST_TOKENS:
        return DepthResult(None, f"not computed: some token does not attend to itself and n > {MOST_TOKENS}")
    goal = np.tri(n, dtype=bool) if causal else np.ones((n, n), bool)
    masks = pattern.mask()
    cycle = np.eye(n, dtype=bool)
    for mask in masks:
        cycle = _times(mask, cycle)
    squares = [cycle]
    while 1 << (len(squares) - 1) < (n - 1) ** 2 + 1:
        squares.append(_times(squares[-1], squares[-1]))
    if not (squares[-1] | ~goal).all():
        k, j = (int(i) for i in np.argwhere(goal & ~squares[-1])[0])
        return DepthResult(None, "matrix powers: the sets are never all full at the same depth", pair=(k, j))
    reached, t = np.eye(n, dtype=bool), 0  # the largest S^{qp} that is not full, by binary lifting
    for i in range(len(squares) - 1, -1, -1):
        further = _times(squares[i], reached)
        if not (further | ~goal).all():
            reached, t = further, t + p * (1 << i)
    pair = None
    while t == 0 or not (reached | ~goal).all():
        gaps = np.argwhere(goal & ~reached)
        pair = (int(gaps[0, 0]), int(gaps[0, 1])) if len(gaps) else None
        reached, t = _times(masks[t % p], reached), t + 1
    return DepthResult(t, "matrix powers", pair if t > 1 else None, lower=t, upper=t)


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a.astype(np.float32) @ b.astype(np.float32)) > 0  # counts up to n ≤ 512 are exact in float32
