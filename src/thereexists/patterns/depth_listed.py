"""The receptive depth from lists of edges, by definition: bitsets, one search per token, or a few searches.

Where every token that is seen sees back and there is one step, s is the diameter of a graph. A few searches often find
its ends (Crescenzi et al. 2013, iFUB): all tokens at distance at most r from a token u are at most 2r apart, so when
all tokens farther from u than r have been searched from, and one search went 2r or farther, none goes farther.

What may take more than a second runs in a process that is ended when the time is over.
"""

from __future__ import annotations

from importlib.util import find_spec
from time import perf_counter

import numpy as np

from thereexists.patterns import isolated
from thereexists.patterns.depth_result import DepthResult
from thereexists.patterns.depth_without_loops import MOST_TOKENS, depth_by_powers
from thereexists.patterns.isolated import Tell
from thereexists.patterns.pattern import Pattern

MOST_EDGES = 60_000_000
LITTLE_WORK = 1e8  # row operations of 512 bits: about a second
FEW_SEARCHES = 2e9  # edges, when the diameter is looked for


def by_listing(pattern: Pattern, causal: bool, lower: int, work: float, deadline: float) -> DepthResult | None:
    """The exact depth, or that some pair never connects; None when that is too much work or the time is over."""
    n, p = pattern.n, pattern.cycle
    total = sum(pattern.connections)
    if find_spec("numba") is None:
        return depth_by_powers(pattern, causal) if n <= MOST_TOKENS else None
    if total > MOST_EDGES or (total > 4e6 and perf_counter() > deadline):
        return None
    a_round = total / p * max(n / 512, 1)  # row operations
    searches = n * total / 5  # in the same unit, as measured
    limit = min(int(work // a_round), n * p + 1)
    little = min(a_round * 4 * max(lower, 16), searches if p == 1 else np.inf) < LITTLE_WORK
    steps = [(csr.indptr, csr.indices) for csr in pattern.to_csr()]
    plan = p == 1 and searches < min(work, a_round * lower), limit if limit > max(lower, 3) else 0
    if little:
        return _decide(steps, causal, *plan, lambda _: None)
    outcome = isolated.call(__name__, "_decide", (steps, causal, *plan), deadline - perf_counter())
    return outcome.value if outcome.finished else None


def _decide(
    steps: list[tuple[np.ndarray, np.ndarray]], causal: bool, search: bool, limit: int, tell: Tell
) -> DepthResult | None:
    """``search``: from every token; otherwise bitsets, for at most ``limit`` rounds."""
    from thereexists.patterns.bitsets import depth_by_bitsets, depth_by_searches, diameter

    if len(steps) == 1 and not causal:
        edges = len(steps[0][1])
        far = diameter(*steps[0], int(FEW_SEARCHES // edges) if search or not limit else 64)
        if far is not None:
            depth, k, j = far
            return DepthResult(depth, "a few searches", (k, j) if depth > 1 else None, lower=depth, upper=depth)
    if search:
        found, method = depth_by_searches(*steps[0], causal), "one search per token"
    elif limit:
        found, method = depth_by_bitsets(steps, causal, limit), "bitsets"
    else:
        return None
    if found.limit_reached:
        return None
    if found.depth is None:
        return DepthResult(None, method, never=(found.k, found.j))
    pair = (found.k, found.j) if found.depth > 1 else None
    return DepthResult(found.depth, method, pair, lower=found.depth, upper=found.depth)
