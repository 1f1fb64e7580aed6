"""Hamiltonian paths by patching: a matching gives a cover of the tokens by circuits, exchanges join the circuits.

A dummy token with arcs to and from all tokens closes a path to a circuit. A maximum matching of tokens with tokens they
attend to, completed by the dummy, covers all n + 1 tokens by circuits. If ``a → b`` and ``c → d`` lie on different
circuits and ``a → d``, ``c → b`` are arcs too, exchanging them joins the two circuits (Karp and Steele). When no
exchange joins, random exchanges inside a circuit split it, and joining starts again. The answer is a path or nothing;
it is never a proof that there is none.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from thereexists.core.compiled import njit


def patched_path(indptr: np.ndarray, indices: np.ndarray, passes: int = 400, seed: int = 0) -> np.ndarray | None:
    """A path ``γ`` with ``γ(i) ∈ A_{γ(i+1)}``, or None. Rows of the CSR arrays ascend and may hold the token."""
    n = len(indptr) - 1
    follow = _cover(indptr, indices)
    if follow is None:
        return None
    if not _join(indptr.astype(np.int64), indices.astype(np.int64), follow, _symmetric(indptr, indices), passes, seed):
        return None
    path, at = np.empty(n, np.int64), int(follow[n])
    for i in range(n - 1, -1, -1):
        path[i] = at
        at = int(follow[at])
    return path


def _cover(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray | None:
    """``follow[k]`` for tokens 0..n−1 and the dummy n: a permutation without fixed points along arcs."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    n = len(indptr) - 1
    row = np.repeat(np.arange(n), np.diff(indptr))
    keep = row != indices
    starts = np.concatenate(([0], np.cumsum(np.bincount(row[keep], minlength=n))))
    graph = csr_array((np.ones(int(keep.sum()), np.int8), indices[keep], starts), shape=(n, n))
    partner = maximum_bipartite_matching(graph, perm_type="column")
    alone = np.flatnonzero(partner < 0)
    if len(alone) > 1:
        return None
    follow = np.append(partner, n).astype(np.int64)
    end = int(alone[0]) if len(alone) else 0  # a perfect matching: cut anywhere, the dummy goes in between
    start = int(np.setdiff1d(np.arange(n), partner)[0]) if len(alone) else int(partner[0])
    follow[end], follow[n] = n, start
    return follow


@njit(cache=True)
@no_type_check
def _is_arc(indptr, indices, a, b):
    n = len(indptr) - 1
    if a == n or b == n:
        return a != b
    if a == b:
        return False
    low, high = indptr[a], indptr[a + 1]
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < b:
            low = middle + 1
        else:
            high = middle
    return low < indptr[a + 1] and indices[low] == b


@njit(cache=True)
@no_type_check
def _symmetric(indptr, indices):
    for a in range(len(indptr) - 1):
        for e in range(indptr[a], indptr[a + 1]):
            if indices[e] != a and not _is_arc(indptr, indices, indices[e], a):
                return False
    return True


@njit(cache=True)
@no_type_check
def _label(follow, label):
    """Number the circuits; returns how many."""
    label[:] = -1
    count = 0
    for first in range(len(follow)):
        at = first
        if label[at] >= 0:
            continue
        while label[at] < 0:
            label[at] = count
            at = follow[at]
        count += 1
    return count


@njit(cache=True)
@no_type_check
def _root(parent, c):
    while parent[c] != c:
        parent[c] = parent[parent[c]]
        c = parent[c]
    return c


@njit(cache=True)
@no_type_check
def _reverse(follow, before, first):
    """Turn the circuit through ``first`` round."""
    at = first
    while True:
        after = follow[at]
        follow[at], before[at] = before[at], after
        at = after
        if at == first:
            return


@njit(cache=True)
@no_type_check
def _join(indptr, indices, follow, symmetric, passes, seed):
    np.random.seed(seed)  # noqa: NPY002  (numba's own generator, not numpy's global one)
    n = len(indptr) - 1
    before = np.empty(n + 1, np.int64)
    for k in range(n + 1):
        before[follow[k]] = k
    label = np.empty(n + 1, np.int64)
    parent = np.empty(n + 1, np.int64)
    for _ in range(passes):
        count = _label(follow, label)
        for c in range(count):
            parent[c] = c
        joined = True
        while joined and count > 1:
            joined = False
            for a in range(n):
                for e in range(indptr[a], indptr[a + 1] + 1):
                    d = indices[e] if e < indptr[a + 1] else n
                    if d == a or d == follow[a]:
                        continue
                    c = before[d]
                    ra, rc = _root(parent, label[a]), _root(parent, label[c])
                    b = follow[a]
                    if ra != rc and _is_arc(indptr, indices, c, b):
                        follow[a], follow[c] = d, b
                        before[d], before[b] = a, c
                        parent[ra] = rc
                        count -= 1
                        joined = True
                    elif ra != rc and symmetric and _is_arc(indptr, indices, follow[d], b):
                        # a → b and d → g become a → d and g → b, the circuit of d running backwards
                        _reverse(follow, before, d)
                        g = before[d]
                        follow[a], follow[g] = d, b
                        before[d], before[b] = a, g
                        parent[ra] = rc
                        count -= 1
                        joined = True
        if count == 1:
            return True
        # Stuck: a few random exchanges inside circuits (each splits one) let the next pass join differently.
        splits = 0
        for _ in range(40 * (count + 4)):
            a = np.random.randint(n)  # noqa: NPY002
            if indptr[a + 1] == indptr[a]:
                continue
            d = indices[indptr[a] + np.random.randint(indptr[a + 1] - indptr[a])]  # noqa: NPY002
            c, b = before[d], follow[a]
            if d in (a, b) or c == b or not _is_arc(indptr, indices, c, b):
                continue
            follow[a], follow[c] = d, b
            before[d], before[b] = a, c
            splits += 1
            if splits > count + 4:
                break
    return False
