"""Why a connected pattern may have no Hamiltonian path: a few tokens hold too many parts together.

Directions do not matter here: two tokens are *joined* when one of them attends to the other.

- **Scattered**: without some k tokens the others fall into at least k + 2 parts. Those k tokens cut a path into at most
  k + 1 pieces, each inside one part (Chvátal 1973, toughness, for paths instead of circuits).
- **Dangling**: three sets, no two with a common token, each joined to one outside token at most. Every one of them
  holds an end of every path: a piece of the path inside, with no end in it, has an outside token before it and another
  one behind it, and there are no two. A path has two ends.

Finding the first is hard in general; single tokens are all tried (one depth-first search), then sets grown from what is
left of them: the tokens beside an independent set, and either colour of a colouring in two that few edges contradict.
The second is decided: three dangling sets exist exactly when the blocks of the pattern form a tree with three leaves.

The loops are plain Python, compiled where the pattern is large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from thereexists.patterns.obstructions import Dangling, Scattered

FEW_EDGES = 20_000  # so many are done before anything is compiled
TRIES = 6


def weak_token(indptr: np.ndarray, indices: np.ndarray) -> Scattered | Dangling | None:
    """A reason in single tokens why no path can visit all of a connected pattern, or None; in linear time."""
    starts, columns = joined(indptr, indices)
    return _cut_token(starts, columns) or _leaves(starts, columns)


def weak_set(indptr: np.ndarray, indices: np.ndarray, seed: int = 0) -> Scattered | None:
    """A reason in a set of tokens, or None, which says nothing: not all sets are tried."""
    return _scattered(*joined(indptr, indices), seed)


def joined(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tokens each token is joined with, itself aside."""
    n = len(indptr) - 1
    row, column = np.repeat(np.arange(n), np.diff(indptr)), indices.astype(np.int64)
    key = np.unique(np.concatenate([row * n + column, column * n + row]))
    row, column = key // n, key % n
    row, column = row[row != column], column[row != column]
    return np.concatenate(([0], np.cumsum(np.bincount(row, minlength=n)))), column


def _cut_token(starts: np.ndarray, columns: np.ndarray) -> Scattered | None:
    """One token without which three parts are left: in the search tree, it has that many children cut off by it."""
    cut, parent, _, _ = _cut_children(starts, columns, 0)
    parts = np.bincount(parent[cut], minlength=len(starts) - 1)
    parts[1:] += parts[1:] > 0  # what lies above it in the tree; the root has nothing above
    worst = int(np.argmax(parts))
    return Scattered(np.array([worst]), int(parts[worst])) if parts[worst] >= 3 else None


def _leaves(starts: np.ndarray, columns: np.ndarray) -> Dangling | None:
    """Search again from inside one leaf of the tree of blocks: the other leaves are then subtrees."""
    first = _least_subtrees(starts, columns, 0)
    if not first:
        return None
    root, inside = first[0][0], np.sort(first[0][1])
    others = [tokens for _, tokens in _least_subtrees(starts, columns, root) if not np.isin(tokens, inside).any()]
    return Dangling((inside, np.sort(others[0]), np.sort(others[1]))) if len(others) >= 2 else None


def _least_subtrees(starts: np.ndarray, columns: np.ndarray, root: int) -> list[tuple[int, np.ndarray]]:
    """Subtrees that one token cuts off, without a smaller one inside: their tops and their tokens; three at most."""
    cut, _, entered, size = _cut_children(starts, columns, root)
    tops = np.flatnonzero(cut)
    tops = tops[np.argsort(entered[tops])]
    ends = entered[tops] + size[tops]
    least = np.append(entered[tops][1:] >= ends[:-1], True) if len(tops) else np.zeros(0, bool)
    order = np.argsort(entered)
    return [(int(c), order[entered[c] : entered[c] + size[c]]) for c in tops[least][:4]]


def _cut_children(starts: np.ndarray, columns: np.ndarray, root: int):
    parent, entered, low, size = _fast(depth_first, len(columns))(starts, columns, root)
    cut = np.zeros(len(parent), bool)
    has = parent >= 0
    cut[has] = low[has] >= entered[parent[has]]
    return cut, parent, entered, size


def _scattered(starts: np.ndarray, columns: np.ndarray, seed: int) -> Scattered | None:
    n, rng = len(starts) - 1, np.random.default_rng(seed)
    colour, independent = _fast(two_colours, len(columns)), _fast(independent_set, len(columns))
    put_back = _fast(give_back, len(columns))
    tail = np.repeat(np.arange(n), np.diff(starts))
    once = tail < columns
    ends = np.stack([tail[once], columns[once]])
    for _ in range(TRIES):
        side = colour(n, *ends[:, rng.permutation(ends.shape[1])])
        order = np.argsort(np.diff(starts) + rng.random(n), kind="stable")
        for taken in (side == 0, side == 1, ~independent(starts, columns, order)):
            taken = taken.copy()
            parts = put_back(starts, columns, taken, rng.permutation(n))
            if parts >= int(taken.sum()) + 2:
                return Scattered(np.flatnonzero(taken), int(parts))
    return None


# ---- loops, in plain Python and compiled ------------------------------------------------------------------------


def _fast(loop: Callable[..., Any], edges: int) -> Callable[..., Any]:
    from importlib.util import find_spec

    return loop if edges <= FEW_EDGES or find_spec("numba") is None else _compiled(loop)


@cache
def _compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    from thereexists.core.compiled import njit

    return njit(cache=True)(loop)


def depth_first(starts, columns, root):
    """Of a connected graph: parents, numbers in order of entering, the least number that each subtree is joined with,
    and the sizes of the subtrees."""
    n = len(starts) - 1
    parent, entered = np.full(n, -1), np.full(n, -1)
    low, size, at = np.zeros(n, np.int64), np.ones(n, np.int64), starts[:-1].copy()
    entered[root], count, v = 0, 1, root
    while v >= 0:
        if at[v] < starts[v + 1]:
            u = columns[at[v]]
            at[v] += 1
            if entered[u] < 0:
                parent[u], entered[u], low[u] = v, count, count
                count += 1
                v = u
            elif u != parent[v]:
                low[v] = min(low[v], entered[u])
        else:
            p = parent[v]
            if p >= 0:
                low[p] = min(low[p], low[v])
                size[p] += size[v]
            v = p
    return parent, entered, low, size


def two_colours(n, tail, head):
    """Join the ends of edge after edge by different colours, as long as they are not joined already."""
    parent, size = np.arange(n), np.ones(n, np.int64)
    turned = np.zeros(n, np.int64)  # of another colour than the parent
    for e in range(len(tail)):
        a, odd = tail[e], 1
        while parent[a] != a:
            odd += turned[a]
            a = parent[a]
        b = head[e]
        while parent[b] != b:
            odd += turned[b]
            b = parent[b]
        if a != b:
            if size[a] > size[b]:
                a, b = b, a
            parent[a], turned[a] = b, odd % 2
            size[b] += size[a]
    out = np.zeros(n, np.int64)
    for v in range(n):
        a = v
        while parent[a] != a:
            out[v] += turned[a]
            a = parent[a]
    return out % 2


def independent_set(starts, columns, order):
    """Tokens of which no two are joined, taken in this order."""
    chosen, beside = np.zeros(len(order), np.bool_), np.zeros(len(order), np.bool_)
    for v in order:
        if not beside[v]:
            chosen[v] = True
            for e in range(starts[v], starts[v + 1]):
                beside[columns[e]] = True
    return chosen


def give_back(starts, columns, taken, order):
    """Put tokens back that are joined to two parts at most, those to fewer first; returns how many parts there are.

    Putting back one that is joined to a parts leaves a − 1 parts less and one token less that is taken: nothing is lost
    with two of them, and something is gained with one.
    """
    n = len(order)
    parent = np.arange(n)
    parts = 0
    for v in range(n):
        parts += 0 if taken[v] else 1
    for v in range(n):
        for e in range(starts[v], starts[v + 1]):
            u = columns[e]
            if u < v and not taken[v] and not taken[u]:
                a, b = v, u
                while parent[a] != a:
                    parent[a] = parent[parent[a]]
                    a = parent[a]
                while parent[b] != b:
                    parent[b] = parent[parent[b]]
                    b = parent[b]
                if a != b:
                    parent[a] = b
                    parts -= 1
    most, changed = 1, True
    while changed or most == 1:
        if not changed:
            most = 2
        changed = False
        for v in order:
            if not taken[v]:
                continue
            one = other = -1
            many = False
            for e in range(starts[v], starts[v + 1]):
                a = columns[e]
                if taken[a]:
                    continue
                while parent[a] != a:
                    parent[a] = parent[parent[a]]
                    a = parent[a]
                if one < 0 or a == one:
                    one = a
                elif other < 0 or a == other:
                    other = a
                else:
                    many = True
                    break
            if many or (other >= 0 and most == 1):
                continue
            taken[v], changed = False, True
            parts += 1
            if one >= 0:
                parent[one] = v
                parts -= 1
            if other >= 0:
                parent[other] = v
                parts -= 1
    return parts
