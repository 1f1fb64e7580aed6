"""Condition 3 of Assumption 1: the receptive depth s, exactly, with the farthest pair of tokens.

``S_k^1 = A_k^1``, ``S_k^t = ∪_{j ∈ A_k^l} S_j^{t−1}`` with ``l = (t−1 mod p) + 1``; s is the smallest t with
``S_k^t = [n]`` for all k (for the causal question: ``S_k^t = {0..k}``). With ``k ∈ A_k^l`` the sets only grow.

In this order: exact closed forms (monotone intervals, butterflies); a lower bound from a few target tokens whose
"who sees j" sets are grown in O(n) a step, and upper bounds by the rules of ``depth_rules``: when they meet, s is exact
at any n; bitsets, or a search from every token; otherwise bounds only.
"""

from __future__ import annotations

from importlib.util import find_spec
from time import perf_counter

import numpy as np

from thereexists.patterns.depth_result import DepthResult
from thereexists.patterns.depth_rules import full_by_rules, interval_recursion
from thereexists.patterns.depth_without_loops import (
    MOST_TOKENS,
    causal_depth_without_loops,
    depth_by_powers,
    depth_without_loops,
)
from thereexists.patterns.obstructions import causal_gap, connectivity
from thereexists.patterns.parts import Xor
from thereexists.patterns.pattern import Pattern

BITSET_WORK = 4e9  # row operations of 512 bits; about 1e8 a second and core
LOWER_BOUND_SECONDS = 3.0  # of set images


def receptive_depth(pattern: Pattern, causal: bool = False, work: float = BITSET_WORK) -> DepthResult:
    """The depth s of ``pattern``; ``causal`` asks for ``S_k^s = {0..k}`` instead of ``[n]``."""
    if not all(step.self_loops.all() for step in pattern.steps):
        if causal:
            return causal_depth_without_loops(pattern, lambda prefix: receptive_depth(prefix, True, work))
        return depth_without_loops(pattern, work)
    return _by_intervals(pattern, causal) or _by_butterfly(pattern, causal) or _by_connectivity(pattern, causal, work)


def _exactly(depth: int, method: str, pair: tuple[int, int] | None) -> DepthResult:
    return DepthResult(depth, method, pair if depth > 1 else None, lower=depth, upper=depth)


def _by_intervals(pattern: Pattern, causal: bool) -> DepthResult | None:
    """Every row of every step is an interval around its token with non-decreasing ends: scalar recursions decide."""
    ends = {step: step.interval_rows() for step in dict.fromkeys(pattern.steps)}
    if any(found is None for found in ends.values()):
        return None
    depth, pair = interval_recursion(pattern.steps, ends, causal)
    if depth is None:
        return DepthResult(None, "intervals", never=pair)
    return _exactly(depth, "intervals", pair)


def _by_butterfly(pattern: Pattern, causal: bool) -> DepthResult | None:
    """``S_k^t = k XOR span(masks of the first t steps)``: full exactly when the rank over GF(2) is log2 n."""
    n = pattern.n
    parts = [step.parts for step in pattern.steps]
    if causal or n & (n - 1) or not all(len(p) == 1 and isinstance(p[0], Xor) and p[0].mask < n for p in parts):
        return None
    basis: dict[int, int] = {}
    for t, ((part,), step) in enumerate(zip(parts, pattern.steps, strict=True), start=1):
        if step.causal or not isinstance(part, Xor):
            return None
        rest = part.mask
        while rest and rest.bit_length() in basis:
            rest ^= basis[rest.bit_length()]
        if rest:
            basis[rest.bit_length()] = rest
            if 1 << len(basis) == n:
                return _exactly(t, "rank over GF(2)", (0, part.mask))
    return None  # the span is too small: some pair never connects


def _by_connectivity(pattern: Pattern, causal: bool, work: float) -> DepthResult:
    """Some token may never see some other; if everybody sees everybody in the end, s ≤ p(n − 1)."""
    if causal:
        gap = causal_gap(pattern.union_step())
        pair, settled = ((gap.v, gap.u) if gap else None), True
    else:
        pair, settled = connectivity(pattern)
    if pair:
        return DepthResult(None, "closure", never=pair)
    return _by_bounds(pattern, causal, work, pattern.cycle * max(pattern.n - 1, 1) if settled else None)


def _by_bounds(pattern: Pattern, causal: bool, work: float, trivial: int | None) -> DepthResult:
    lower, pair = _lower_bound(pattern, causal)
    for t in range(lower, lower + 3):
        if full_by_rules(pattern, t, causal):
            if t == lower:
                return _exactly(t, "bounds that meet", pair)
            break
    else:
        t = None
    cores = {step: step.interval_around() for step in dict.fromkeys(pattern.steps)}
    by_core, _ = interval_recursion(pattern.steps, cores, causal)
    upper = min((u for u in (t, by_core, trivial) if u is not None), default=None)
    if upper == lower:
        return _exactly(lower, "bounds that meet", pair)
    return _by_listing(pattern, causal, work, lower) or DepthResult(None, "bounds only", pair, lower=lower, upper=upper)


def _lower_bound(pattern: Pattern, causal: bool) -> tuple[int, tuple[int, int] | None]:
    """Grow "who sees j" for a few tokens j; the slowest gives a bound and the pair that proves it."""
    n = pattern.n
    best, pair, began = 1, None, perf_counter()
    for j in sorted({0, n - 1, n // 2, n // 3, min(1, n - 1), max(n - 2, 0)}):
        seers, t = np.zeros(n, bool), 0
        seers[j] = True
        goal = np.arange(n) >= (j if causal else 0)
        while perf_counter() - began < LOWER_BOUND_SECONDS:
            grown = pattern.steps[t % pattern.cycle].preimage(seers)
            t += 1
            if (grown | ~goal).all():
                break
            seers = grown
            if t + 1 > best:
                best, pair = t + 1, (int(np.argmin(grown | ~goal)), j)
    return best, pair


def _by_listing(pattern: Pattern, causal: bool, work: float, lower: int) -> DepthResult | None:
    """By definition, from lists of edges: bitsets, or one search a token when p = 1 and the depth is large."""
    n, p = pattern.n, pattern.cycle
    total = sum(pattern.connections)
    if find_spec("numba") is None:
        return depth_by_powers(pattern, causal) if n <= MOST_TOKENS else None
    if total > 200_000_000:
        return None
    a_round = total / p * max(n / 512, 1)  # row operations
    limit = min(int(work // a_round), n * p + 1)
    searches = n * total / 5  # in the same unit, as measured
    if p == 1 and searches < min(work, a_round * lower):
        from thereexists.patterns.bitsets import depth_by_searches

        csr = pattern.step(0).to_csr()
        found, method = depth_by_searches(csr.indptr, csr.indices, causal), "one search a token"
    elif limit > max(lower, 3):
        from thereexists.patterns.bitsets import depth_by_bitsets

        steps = [(csr.indptr, csr.indices) for csr in pattern.to_csr()]
        found, method = depth_by_bitsets(steps, causal, limit), "bitsets"
    else:
        return None
    if found.limit_reached:
        return None
    if found.depth is None:
        return DepthResult(None, method, never=(found.k, found.j))
    return _exactly(found.depth, method, (found.k, found.j))
