"""Check a verdict's evidence again, with nothing of what found them.

The finders use formulas for rows, images and ends. This file uses only the definition of a part (``contains``) and the
members of single rows (``rows``), and walks. It imports none of the finders' modules; a test enforces that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thereexists.core.plain_numbers import seed_from
from thereexists.core.verdict import Verdict
from thereexists.patterns.numbers import as_tokens, whole
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step

MOST_ENTRIES = 400_000_000


def recheck_path(pattern: Pattern, path: np.ndarray, edge_steps: np.ndarray | None = None) -> Verdict:
    """``path`` is a permutation of the tokens, and ``path[i] ∈ A^l_{path[i+1]}`` for the stated (or some) step l.

        pattern = te.patterns.window(n=4, window=1)
        te.patterns.recheck_path(pattern, np.arange(4))

    Args:
        pattern: the pattern.
        path: the tokens in the order of the path.
        edge_steps: the step that has each edge, if that is claimed.

    Returns:
        A verdict with its reasons.
    """
    n = pattern.n
    chosen, wrong = _chosen(pattern, path)
    if wrong is not None or len(path) != n or not chosen.all():
        return Verdict(False, (f"the path is not a permutation of 0..{n - 1}",))
    path = as_tokens(path)
    if edge_steps is not None and np.shape(edge_steps) != (n - 1,):
        return Verdict(False, (f"there are {n - 1} edges, and as many steps must be named",))
    k, j = path[1:], path[:-1]
    carried = np.zeros(n - 1, bool)
    for l, step in enumerate(pattern.steps):
        here = np.zeros(n - 1, bool)
        for part in step.parts:
            here |= np.asarray(part.contains(k, j), bool)
        if step.causal:
            here &= j <= k
        carried |= here & (True if edge_steps is None else np.asarray(edge_steps) == l)
    if not carried.all():
        i = int(np.argmin(carried))
        where = "any step" if edge_steps is None else f"step {int(edge_steps[i])}"
        return Verdict(False, (f"token {int(k[i])} does not attend to token {int(j[i])} in {where}",), i)
    return Verdict(True, (f"all {n - 1} edges of the path are in the pattern",))


def recheck_obstruction(pattern: Pattern, obstruction: Any) -> Verdict:
    """The certificate really excludes a Hamiltonian path.

        pattern = te.patterns.from_mask(np.kron(np.eye(2), np.ones((3, 3))).astype(bool))
        te.patterns.recheck_obstruction(pattern, te.patterns.check(pattern).path_result.obstruction)

    Args:
        pattern: the pattern.
        obstruction: what ``te.patterns.check`` gave as the reason that there is no path.

    Returns:
        A verdict with its reasons.
    """
    kind = type(obstruction).__name__
    if kind == "Incomparable":
        _, wrong = _chosen(pattern, [obstruction.u, obstruction.v])
        if wrong is not None:
            return wrong
        pair = int(obstruction.u), int(obstruction.v)
        for u, v in (pair, pair[::-1]):
            if _closure(pattern, u)[v]:
                return Verdict(False, (f"token {u} does reach token {v}",))
        return Verdict(True, ("neither token reaches the other",))
    if kind == "Unmatched":
        taken, wrong = _chosen(pattern, obstruction.tokens)
        if wrong is not None:
            return wrong
        tokens = np.flatnonzero(taken)
        seen = np.zeros(pattern.n, bool)
        for k in tokens.tolist():
            for row in pattern.rows(k):
                seen[row[row != k]] = True
        holds = int(seen.sum()) <= len(tokens) - 2
        return Verdict(holds, (f"{len(tokens)} tokens attend to {int(seen.sum())} tokens apart from themselves",))
    if kind == "Scattered":
        return _recheck_scattered(pattern, obstruction.tokens)
    if kind == "Dangling":
        return _recheck_dangling(pattern, obstruction.sets)
    return Verdict(None, ("an exhaustive search leaves no certificate to check",))


def _recheck_scattered(pattern: Pattern, tokens: Any) -> Verdict:
    """Without these k tokens, more than k + 1 parts are left, two tokens being joined when either attends to the other.

    The parts are found by giving every token the least number among those it is joined with, until nothing changes.
    """
    taken, wrong = _chosen(pattern, tokens)
    if wrong is not None:
        return wrong
    if sum(pattern.connections) > MOST_ENTRIES // 4:
        return Verdict(None, ("the connections are too many to list",))
    k, j = _joined(pattern)
    inside = ~taken[k] & ~taken[j]
    k, j = k[inside], j[inside]
    label = np.arange(pattern.n)
    while (label[k] != label[j]).any():
        np.minimum.at(label, k, label[j])
        np.minimum.at(label, j, label[k])
        label = label[label]  # the part of the token that a token is named after
    parts = len(np.unique(label[~taken]))
    count = int(taken.sum())
    return Verdict(parts > count + 1, (f"without {count} tokens the others fall into {parts} parts",))


def _recheck_dangling(pattern: Pattern, sets: Any) -> Verdict:
    """Three sets, none empty, no two with a common token, each joined to one token outside it at most."""
    if len(sets) != 3:
        return Verdict(False, (f"three sets are needed, one more than a path has ends; got {len(sets)}",))
    if sum(pattern.connections) > MOST_ENTRIES // 4:
        return Verdict(None, ("the connections are too many to list",))
    k, j = _joined(pattern)
    seen = np.zeros(pattern.n, bool)
    for tokens in sets:
        chosen, wrong = _chosen(pattern, tokens)
        if wrong is not None:
            return wrong
        if not chosen.any() or (chosen & seen).any():
            return Verdict(False, ("one of the sets is empty, or two have a common token",))
        seen |= chosen
        beside = np.unique(np.concatenate([j[chosen[k] & ~chosen[j]], k[chosen[j] & ~chosen[k]]]))
        if len(beside) > 1:
            return Verdict(False, (f"tokens {int(beside[0])} and {int(beside[1])} are both joined to one set",))
    return Verdict(True, ("three sets each need one of a path's two ends",))


def _chosen(pattern: Pattern, tokens: Any) -> tuple[np.ndarray, Verdict | None]:
    """A set of tokens as a Boolean array, or what is wrong with it."""
    out, array = np.zeros(pattern.n, bool), np.asarray(tokens)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any() or (array >= pattern.n).any():
        return out, Verdict(False, (f"a set of tokens must be a list of numbers 0..{pattern.n - 1}",))
    out[array] = True
    return out, None


def _joined(pattern: Pattern) -> tuple[np.ndarray, np.ndarray]:
    """All pairs ``(k, j)`` with ``j ∈ A_k`` in some step."""
    every_token = np.arange(pattern.n)
    found = [step.entries(every_token) for step in pattern.steps]
    return np.concatenate([np.repeat(every_token, counts) for counts, _ in found]), np.concatenate(
        [columns for _, columns in found]
    )


def recheck_depth(
    pattern: Pattern,
    depth: int,
    pair: tuple[int, int] | None,
    causal: bool = False,
    sources: int | None = None,
    seed: int = 0,
) -> Verdict:
    """``j ∉ S_k^{depth−1}`` for the pair, and ``S_k^depth`` is full: for all k, or for ``sources`` of them (seeded).

    Full is every token; of a causal pattern, ``{0..k}``, so that a pair with ``j > k`` shows nothing there. Some of the
    tokens can refute a depth and cannot prove it: if they refute nothing, the answer is undecided.

        te.patterns.recheck_depth(te.patterns.star(n=6), depth=2, pair=None)

    Args:
        pattern: the pattern.
        depth: the receptive depth that is claimed.
        pair: two tokens of which the first has not seen the second one layer earlier; None: any two.
        causal: whether it was judged as a causal pattern.
        sources: how many tokens to look at, None for all.
        seed: decides which ones.

    Returns:
        A verdict with its reasons.
    """
    if not isinstance(depth, int | np.integer) or depth < 1:
        return Verdict(False, ("a depth is a whole number of at least 1",))
    depth = int(depth)
    if depth > pattern.n**2 * pattern.cycle:  # more layers than that give no token anything new
        return Verdict(False, (f"no depth of {pattern.n:,} tokens is {depth:,}",))
    if causal and not pattern.causal:
        return Verdict(False, ("some token attends to a later one, so the pattern has no causal depth",))
    if pair is not None:
        _, wrong = _chosen(pattern, list(pair))
        if wrong is not None or len(pair) != 2:
            return Verdict(False, (f"a pair is two tokens of 0..{pattern.n - 1}",))
        pair = int(pair[0]), int(pair[1])
        if causal and pair[1] > pair[0]:
            return Verdict(False, (f"no causal depth connects token {pair[0]} to the later token {pair[1]}",), pair)
        apart = _misses(pattern, depth - 1, *pair)
        if apart is not True:
            said = "does see it" if apart is False else "was too long to walk"
            return Verdict(apart, (f"token {pair[0]} and token {pair[1]} after {depth - 1} steps: {said}",), pair)
    if sources is None:
        chosen = np.arange(pattern.n)
    else:
        rng = np.random.default_rng(seed_from(seed))
        chosen = np.unique(
            np.r_[0, pattern.n - 1, rng.integers(0, pattern.n, max(whole(sources, "'sources'", 1) - 2, 0))]
        )
    missed, walked = pair is not None or depth == 1, True  # some token must have missed another one layer earlier
    for k in chosen.tolist():
        if not missed:
            before = _sees(pattern, k, depth - 1)
            walked &= before is not None
            missed = before is not None and not (before[: k + 1] if causal else before).all()
        seen = _sees(pattern, k, depth)
        if seen is None:
            return Verdict(None, ("the sets were too large to walk",), k)
        goal = seen[: k + 1] if causal else seen
        if not goal.all():
            return Verdict(False, (f"token {k} misses token {int(np.argmin(goal))} after {depth} steps",), k)
    if not walked and not missed:
        return Verdict(None, (f"the sets after {depth - 1} steps were too large to walk",))
    every = len(chosen) == pattern.n
    if not missed:
        told = f"{len(chosen)} of {pattern.n} tokens see everything after {depth - 1} steps already"
        return Verdict(False if every else None, (told,))
    told = f"a pair is missed before, and {len(chosen)} of {pattern.n} tokens see everything"
    return Verdict(True, (told,)) if every else Verdict(None, (f"{told}; the others were not asked",))


def _members(step: Step, tokens: np.ndarray) -> np.ndarray:
    """Every token that some token in ``tokens`` attends to, row by row, the longest rows first."""
    seen = np.zeros(step.n, bool)
    degrees = step.degrees[tokens]
    tokens = tokens[np.argsort(-degrees, kind="stable")]
    every_token = np.arange(step.n)
    if step.contains(np.broadcast_to(tokens[0], step.n), every_token).all():
        return every_token
    stops = np.searchsorted(np.cumsum(np.sort(degrees)[::-1]), np.arange(0, degrees.sum(), 1 << 21), "right")
    for a, b in zip(stops, [*stops[1:], len(tokens)], strict=True):
        seen[step.entries(tokens[a : max(b, a + 1)])[1]] = True
        if seen.all():
            break
    return np.flatnonzero(seen)


def _sees(pattern: Pattern, k: int, t: int) -> np.ndarray | None:
    """``S_k^t`` as a Boolean array: walk from k through steps t, t − 1, …, 1; None when that is too much work."""
    reached, spent = np.array([k]), 0
    for i in range(t - 1, -1, -1):
        step = pattern.steps[i % pattern.cycle]
        if len(reached) == step.n and step.contains(reached, reached).all():
            continue  # all tokens see at least all
        full = int(step.degrees[reached].max()) == step.n  # then one row is enough
        spent += 0 if full else int(step.degrees[reached].sum())
        if spent > MOST_ENTRIES:
            return None
        reached = _members(step, reached)
    out = np.zeros(pattern.n, bool)
    out[reached] = True
    return out


def _misses(pattern: Pattern, t: int, k: int, j: int) -> bool | None:
    """Whether ``j ∉ S_k^t``: by the farthest move of each step where that is enough, by walking otherwise."""
    if t > 8 and sum(pattern.connections) <= MOST_ENTRIES // 4:
        moves = []
        for step in pattern.steps:
            csr = step.to_csr()
            move = csr.indices - np.repeat(np.arange(pattern.n), np.diff(csr.indptr))
            moves.append((min(int(move.min()), 0), max(int(move.max()), 0)))
        down, up = (sum(moves[i % pattern.cycle][side] for i in range(t)) for side in (0, 1))
        if not down <= j - k <= up:
            return True
    seen = _sees(pattern, k, t)
    return None if seen is None else not bool(seen[j])


def _closure(pattern: Pattern, start: int) -> np.ndarray:
    seen = np.zeros(pattern.n, bool)
    seen[start] = True
    frontier = np.array([start])
    while len(frontier):
        new = np.unique(np.concatenate([_members(step, frontier) for step in pattern.steps]))
        frontier = new[~seen[new]]
        seen[frontier] = True
    return seen
