"""Condition 3 of Assumption 1: the receptive depth s, exactly, with the farthest pair of tokens.

``S_k^1 = A_k^1``, ``S_k^t = ∪_{j ∈ A_k^l} S_j^{t−1}`` with ``l = (t−1 mod p) + 1``; s is the smallest t with
``S_k^t = [n]`` for all k (for the causal question: ``S_k^t = {0..k}``). With ``k ∈ A_k^l`` the sets only grow.

In this order: exact closed forms (monotone intervals, butterflies); a lower bound from a few target tokens whose
"who sees j" sets are grown in O(n) a step, and upper bounds by the rules of ``depth_rules``: when they meet, s is exact
at any n; bitsets, or a search from every token (``depth_listed``); otherwise bounds only. ``seconds`` bounds all of it
but the closed forms, which take less than a second for a million tokens.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from thereexists.patterns.depth_listed import by_listing
from thereexists.patterns.depth_result import DepthResult
from thereexists.patterns.depth_rules import full_by_rules, interval_recursion
from thereexists.patterns.depth_without_loops import causal_depth_without_loops, depth_without_loops
from thereexists.patterns.neighbourhood import Neighbourhood
from thereexists.patterns.obstructions import causal_gap, connectivity
from thereexists.patterns.parts import Band, Xor
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step

BITSET_WORK, BITSET_RATE = 4e9, 1e8  # row operations of 512 bits, and those of a core in a second
FEW_LAYERS = 32  # hubs, full rows and classes need no more, and the rules look at every pair of layers
LOWER_BOUND_SECONDS = 3.0  # of set images


def receptive_depth(pattern: Pattern, causal: bool = False, seconds: float = 60.0) -> DepthResult:
    """The depth s of ``pattern``; ``causal`` asks for ``S_k^s = {0..k}`` instead of ``[n]``."""
    if not all(step.self_loops.all() for step in pattern.steps):
        if causal:
            return causal_depth_without_loops(pattern, lambda prefix: receptive_depth(prefix, True, seconds))
        return depth_without_loops(pattern, min(BITSET_WORK, BITSET_RATE * seconds))
    found = _by_intervals(pattern, causal) or _by_butterfly(pattern, causal) or _by_hypercube(pattern, causal)
    return found or _by_directions(pattern, causal) or _by_connectivity(pattern, causal, perf_counter() + seconds)


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


def _by_hypercube(pattern: Pattern, causal: bool) -> DepthResult | None:
    """One step of exchanges ``k XOR mask`` whose log2 n masks are independent: as many layers as masks.

    The tokens seen after t layers are ``k XOR`` the sums of at most t masks, and the sum of all has no shorter form.
    """
    n, parts = pattern.n, pattern.steps[0].parts
    if causal or pattern.cycle > 1 or pattern.steps[0].causal or n & (n - 1):
        return None
    masks = [part.mask for part in parts if isinstance(part, Xor) and part.mask < n]
    if len(masks) != len(parts) or len(masks) != n.bit_length() - 1:
        return None
    basis: dict[int, int] = {}
    for mask in masks:
        while mask and mask.bit_length() in basis:
            mask ^= basis[mask.bit_length()]
        if not mask:
            return None
        basis[mask.bit_length()] = mask
    return _exactly(len(masks), "independent exchanges", (0, int(np.bitwise_xor.reduce(masks))))


def _by_directions(pattern: Pattern, causal: bool) -> DepthResult | None:
    """Neighbourhoods in one grid: ``S_k^t`` is the product of what is seen in each direction, so the slowest decides.

    In one direction the rows are intervals around their tokens whose ends never decrease: the recursion for windows.
    """
    parts = [step.parts[0] for step in pattern.steps if len(step.parts) == 1 and not step.causal]
    grids = [part for part in parts if isinstance(part, Neighbourhood)]
    if causal or len(grids) < pattern.cycle or len({part.shape for part in grids}) > 1:
        return None
    depth, pair, stride = 1, None, 1
    for axis in reversed(range(len(grids[0].shape))):
        side = grids[0].shape[axis]
        c = np.arange(side)
        first = [part.first(axis, c) for part in grids]
        ends = [(low, low + part.window[axis] - 1) for low, part in zip(first, grids, strict=True)]
        lines = [Step(side, (Band(0, 0),)) for _ in grids]  # names for the windows of this direction
        found, (k, j) = interval_recursion(lines, dict(zip(lines, ends, strict=True)), False)
        if found is None:
            return DepthResult(None, "directions of a grid", never=(k * stride, j * stride))
        if found > depth:
            depth, pair = found, (k * stride, j * stride)
        stride *= side
    return _exactly(depth, "directions of a grid", pair)


def _by_connectivity(pattern: Pattern, causal: bool, deadline: float) -> DepthResult:
    """Some token may never see some other; if every token sees every token in the end, s ≤ p(n − 1)."""
    if causal:
        gap = causal_gap(pattern.union_step())
        pair, settled = ((gap.v, gap.u) if gap else None), True
    else:
        pair, settled = connectivity(pattern, _share(deadline))
    if pair:
        return DepthResult(None, "closure", never=pair)
    return _by_bounds(pattern, causal, deadline, pattern.cycle * max(pattern.n - 1, 1) if settled else None)


def _share(deadline: float) -> float:
    """Seconds for one of several bounds."""
    return max(min(LOWER_BOUND_SECONDS, (deadline - perf_counter()) / 4), 0.05)


def _by_bounds(pattern: Pattern, causal: bool, deadline: float, trivial: int | None) -> DepthResult:
    lower, pair = _lower_bound(pattern, causal, _share(deadline))
    t = next((t for t in range(lower, min(lower + 3, FEW_LAYERS)) if full_by_rules(pattern, t, causal)), None)
    if t == lower:
        return _exactly(lower, "bounds that meet", pair)
    cores = {step: step.interval_around() for step in dict.fromkeys(pattern.steps)}
    by_core, _ = interval_recursion(pattern.steps, cores, causal)
    upper = min((u for u in (t, by_core, trivial) if u is not None), default=None)
    if upper == lower:
        return _exactly(lower, "bounds that meet", pair)
    found = by_listing(pattern, causal, lower, BITSET_WORK, deadline)
    return found or DepthResult(None, "bounds only", pair, lower=lower, upper=upper)


def _lower_bound(pattern: Pattern, causal: bool, seconds: float) -> tuple[int, tuple[int, int] | None]:
    """Grow "who sees j" for a few tokens j; the slowest gives a bound and the pair that proves it."""
    n = pattern.n
    best, pair, began = 1, None, perf_counter()
    beside = int(np.argmin(pattern.steps[0].common_columns()))  # the first that is no sink
    for j in sorted({0, n - 1, n // 2, n // 3, min(1, n - 1), max(n - 2, 0), beside}):
        seers, t = np.zeros(n, bool), 0
        seers[j] = True
        goal = np.arange(n) >= (j if causal else 0)
        while perf_counter() - began < seconds:
            grown = pattern.steps[t % pattern.cycle].preimage(seers)
            t += 1
            if (grown | ~goal).all():
                break
            seers = grown
            if t + 1 > best:
                best, pair = t + 1, (int(np.argmin(grown | ~goal)), j)
    return best, pair
