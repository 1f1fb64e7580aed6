"""The depth of a pattern some of whose tokens do not attend to themselves.

Without ``k ∈ A_k`` the sets ``S_k^t`` need not grow, so the two questions differ.

**All tokens** (``S_k^t = [n]``). "All of them are full" persists, since no row is empty. With ``C = A^p ⋯ A^1`` as
Boolean matrices, ``S^{qp}`` is ``C^q``; a power of C is full exactly when C is irreducible and aperiodic, and then one
with ``q ≤ (n−1)² + 1`` is (Wielandt). For small n the powers themselves are computed. For larger n the two properties
are read off the graph whose nodes are (step, token): a walk through it uses the steps in turn, so its walks from one
copy of the last step to the next are the entries of C, and its period is p times that of C.

**Causal** (``S_k^t = {0..k}``). A walk from k back to k never moves, so ``k ∈ S_k^t`` exactly when k attends to itself
in each of the steps 1..t. Let m be the number of leading steps in which all tokens do. Depths beyond m are never full
(fullness does *not* persist), and depths up to m use only steps with self-loops: the question is the depth of those m
steps, and whether it is at most m.
"""

from __future__ import annotations

from importlib.util import find_spec
from math import gcd

import numpy as np

from thereexists.patterns.depth_result import DepthResult
from thereexists.patterns.obstructions import causal_gap, connectivity
from thereexists.patterns.pattern import Pattern

MOST_TOKENS = 512
MOST_EDGES = 20_000_000


def depth_without_loops(pattern: Pattern, work: float) -> DepthResult:
    """The smallest s with ``S_k^s = [n]`` for all k, or why there is none."""
    pair, _ = connectivity(pattern)
    if pair:
        return DepthResult(None, "closure", never=pair)
    if pattern.n <= MOST_TOKENS:
        return depth_by_powers(pattern)
    if sum(pattern.connections) > MOST_EDGES:
        return DepthResult(None, "not computed: some token does not attend to itself, and the edges are too many")
    why = _never_full(pattern)
    if why is not None:
        return DepthResult(None, "components and period", never_full=why)
    return _by_bitsets(pattern, work)


def causal_depth_without_loops(pattern: Pattern, depth_of) -> DepthResult:
    """The smallest s with ``S_k^s = {0..k}`` for all k; ``depth_of(pattern)`` answers for patterns with self-loops."""
    gap = causal_gap(pattern.union_step())
    if gap:
        return DepthResult(None, "closure", never=(gap.v, gap.u))
    m = next(l for l, step in enumerate(pattern.steps) if not step.self_loops.all())
    k = int(np.argmin(pattern.steps[m].self_loops))
    why = f"token {k} does not attend to itself in step {m}, so its set misses it from depth {m + 1} on"
    if m == 0:
        return DepthResult(None, "self-loops", (k, k), never_full=why)
    found: DepthResult = depth_of(Pattern(pattern.name, pattern.steps[:m]))
    if found.depth is not None and found.depth <= m:
        return found
    if found.never or found.lower > m:
        return DepthResult(None, "self-loops", (k, k), never_full=f"{why}, and before that others are not full")
    upper = found.upper if found.upper is not None and found.upper <= m else None
    return DepthResult(None, found.method, found.pair, lower=found.lower, upper=upper)


def depth_by_powers(pattern: Pattern, causal: bool = False) -> DepthResult:
    """By Boolean matrix powers; ``causal`` only for patterns with self-loops."""
    n, p = pattern.n, pattern.cycle
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
        why = "no power of the cycle's matrix is full (all powers up to Wielandt's bound)"
        return DepthResult(None, "matrix powers", pair=(k, j), never_full=why)
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


def _never_full(pattern: Pattern) -> str | None:
    """Why no power of C is full, or None when one is: C is irreducible and its period is 1."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, dijkstra

    n, p = pattern.n, pattern.cycle
    tails, heads = [], []
    for l, csr in enumerate(pattern.to_csr()):  # (l, k) → (l − 1, j): steps are used in falling order
        tails.append(l * n + np.repeat(np.arange(n), np.diff(csr.indptr)))
        heads.append((l - 1) % p * n + csr.indices.astype(np.int64))
    tail, head = np.concatenate(tails), np.concatenate(heads)
    graph = csr_array((np.ones(len(tail), np.int8), (tail, head)), shape=(p * n, p * n))
    _, label = connected_components(graph, directed=True, connection="strong")
    last = label[(p - 1) * n :]
    if (last != last[0]).any():
        j = int(np.argmax(last != last[0]))
        return f"whole cycles do not lead both from token 0 to token {j} and back"
    level = dijkstra(graph, unweighted=True, indices=(p - 1) * n)
    inside = np.isfinite(level[tail])  # what is reached leads back, because no row is empty
    slack = level[tail[inside]] + 1 - level[head[inside]]
    period = gcd(*np.unique(slack).astype(np.int64).tolist())
    return None if period == p else f"returns to a token take a multiple of {period // p} cycles"


def _by_bitsets(pattern: Pattern, work: float) -> DepthResult:
    n, p = pattern.n, pattern.cycle
    upper = p * ((n - 1) ** 2 + 1)
    limit = min(int(work // (sum(pattern.connections) / p * max(n / 512, 1))), upper)
    if find_spec("numba") is None or limit < 1:
        return DepthResult(None, "finite, by components and period", lower=1, upper=upper)
    from thereexists.patterns.bitsets import depth_by_bitsets

    steps = [(csr.indptr, csr.indices) for csr in pattern.to_csr()]
    found = depth_by_bitsets(steps, False, limit, loops=False)
    if found.depth is None:
        return DepthResult(None, "finite, by components and period", (found.k, found.j), lower=limit + 1, upper=upper)
    pair = (found.k, found.j) if found.depth > 1 else None
    return DepthResult(found.depth, "bitsets", pair, lower=found.depth, upper=found.depth)


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a.astype(np.float32) @ b.astype(np.float32)) > 0  # counts up to n ≤ 512 are exact in float32
