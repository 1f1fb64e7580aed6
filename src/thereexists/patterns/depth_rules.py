"""Closed forms and sufficient rules for "every token sees everything after t steps", each with its proof.

All of them assume ``k ∈ A_k^l`` for all k and l, so that ``S_k^t`` only grows with t. ``j ∈ S_k^t`` means a walk
``k → … → j`` whose first move is in step t, the next in step t − 1, …, the last in step 1 (steps taken modulo p).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from thereexists.patterns.parts import BlockBand, Residue
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step

Ends = tuple[np.ndarray, np.ndarray]


def interval_recursion(
    steps: Sequence[Step], ends: Mapping[Step, Ends | None], causal: bool
) -> tuple[int | None, tuple[int, int]]:
    """Depth when row k of step l is ``[lo_l(k), hi_l(k)] ∋ k`` with non-decreasing ends; and the farthest pair.

    By induction ``S_k^t`` is an interval with non-decreasing ends: the union over ``j ∈ [lo, hi]`` of intervals around
    j is an interval, from the low end at lo to the high end at hi. So all rows are full as soon as token 0 sees n − 1
    and token n − 1 sees 0. The tokens that see n − 1 after t steps are ``[r_t, n)``, ``r_t`` the first token whose row
    in step t reaches ``r_{t−1}``; likewise ``[0, q_t]`` for token 0. In the causal case only the latter is asked for.
    A step without ends is taken for rows ``{k}``.
    """
    n, p = steps[0].n, len(steps)
    moves = {step: _moves(found, n) for step, found in ends.items()}
    r, q, t, still = (0 if causal else n - 1), 0, 0, 0
    pair = (n - 1, 0)
    while r > 0 or q < n - 1:
        if still >= p:
            return None, ((0, n - 1) if r > 0 else (n - 1, 0))
        pair = (0, n - 1) if r > 0 else (n - 1, 0)
        first, last = moves[steps[t % p]]
        before = r, q
        r, q, t = first[r], last[q], t + 1
        still = still + 1 if before == (r, q) else 0
    return max(t, 1), pair


def _moves(ends: Ends | None, n: int) -> tuple[Sequence[int], Sequence[int]]:
    """For every token the first whose row reaches it from below, and the last whose row reaches it from above."""
    if ends is None:
        return range(n), range(n)
    lo, hi = ends
    tokens = np.arange(n)
    return np.searchsorted(hi, tokens, "left").tolist(), (np.searchsorted(lo, tokens, "right") - 1).tolist()


def full_by_rules(pattern: Pattern, t: int, causal: bool) -> bool:
    """Whether one of the rules below proves that every token sees everything after t steps."""
    steps = [pattern.steps[i % pattern.cycle] for i in range(t)]  # steps[i] is step i + 1 of the recursion
    if causal:
        return any(_causal_chain(steps[a], steps[a - 1]) for a in range(1, t))
    return _common_columns(steps) or _full_rows(steps) or any(_classes(steps[a], steps[a - 1]) for a in range(1, t))


def _common_columns(steps: list[Step]) -> bool:
    """Wherever a token has got to by step a, it sees there the columns C common to all rows; C then has to see all."""
    for a in range(len(steps)):
        reached = steps[a].common_columns()
        if steps[a].causal:
            reached[1:] = False  # a column j is cut off for the rows before it
        if not reached.any():
            continue
        for b in range(a - 1, -1, -1):
            reached = reached | steps[b].image(reached)
        if reached.all():
            return True
    return False


def _full_rows(steps: list[Step]) -> bool:
    """Every token reaches, before step a, one that sees everything in step a."""
    for a in range(len(steps)):
        seers = steps[a].degrees == steps[a].n
        if not seers.any():
            continue
        for step in steps[a + 1 :]:
            seers = seers | step.preimage(seers)
        if seers.all():
            return True
    return False


def _classes(step: Step, following: Step) -> bool:
    """A token sees its whole class in ``step``; every class, as a set, has to see everything in ``following``."""
    if step.causal or following.causal:
        return False
    for cls in _partitions(step):
        order = np.argsort(cls, kind="stable")
        same = cls[order][1:] == cls[order][:-1]
        core = following.interval_around()
        if core is not None:
            # Members ascend and so do the ends of their rows: the rows cover [0, n) iff they leave no gap.
            lo, hi = core[0][order], core[1][order]
            first, last = np.append(True, ~same), np.append(~same, True)
            n = step.n
            if (lo[first] == 0).all() and (hi[last] == n - 1).all() and (lo[1:] <= hi[:-1] + 1)[same].all():
                return True
        for other in _partitions(following):
            meets = np.unique(cls * (int(other.max()) + 1) + other)
            if len(meets) == len(np.unique(cls)) * len(np.unique(other)):
                return True
    return False


def _causal_chain(step: Step, following: Step) -> bool:
    """Token k sees a chain of earlier tokens in ``step``, and each link's row in ``following`` starts where the one
    before it ends: the rows of the chain then cover ``[0, k]``, by induction on k."""
    core = following.interval_around()
    if core is None:
        return False
    k = np.arange(step.n)
    chains = [_previous_in_class(cls) for cls in _partitions(step)]
    common = step.common_columns()
    if common.any():
        latest = np.maximum.accumulate(np.where(common, k, -1))
        chains.append(np.concatenate(([-1], latest[:-1])))
    # the row of the previous link ends at that link itself (causal, and it contains itself)
    return any((core[0] <= previous + 1).all() for previous in chains)


def _previous_in_class(cls: np.ndarray) -> np.ndarray:
    """For each token the previous one of its class, −1 for the first."""
    order = np.argsort(cls, kind="stable")
    previous = np.full(len(cls), -1)
    same = cls[order][1:] == cls[order][:-1]
    previous[order[1:][same]] = order[:-1][same]
    return previous


def _partitions(step: Step) -> list[np.ndarray]:
    """Class numbers of the parts that are equivalence relations."""
    k = np.arange(step.n)
    classes = [k % part.modulus for part in step.parts if isinstance(part, Residue)]
    blocks = [p for p in step.parts if isinstance(p, BlockBand) and p.lo == p.hi == 0]
    return classes + [(k + p.shift) // p.size for p in blocks]
