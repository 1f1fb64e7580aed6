"""Hamiltonian paths by rotations and extensions (Pósa 1976), where tokens see each other.

A path ``p_0 … p_m`` grows while one of its ends has a neighbour that is not on it. When none has, an edge from the end
``p_m`` to some ``p_i`` turns it into ``p_0 … p_i p_m … p_{i+1}``, a path through the same tokens with another end: a
rotation. Before one is made, two rotations ahead are looked at for an end that can grow, since looking costs a few
numbers and turning costs a piece of the path. When both ends are joined, the path is a circuit and may be opened beside
any of its tokens that can grow. Otherwise the end that was an end least often is taken, and after many rotations in
vain the search begins again elsewhere. The answer is a path or nothing; it is never a proof that there is none.

Rotations run the path backwards in part, so only arcs that go both ways are used: a path of those is a path.
"""

from __future__ import annotations

import time
from typing import no_type_check

import numpy as np

from thereexists.core.compiled import njit

MOST_ARCS = 20_000_000
WORK = 10_000, 500_000_000  # tokens moved in one attempt: for each token, and at most (about a second)
LOOKED_AT = 24  # neighbours of an end, and of an end to be, at most


def rotated_path(indptr: np.ndarray, indices: np.ndarray, seconds: float, seed: int = 0) -> np.ndarray | None:
    """A path ``γ`` with ``γ(i) ∈ A_{γ(i+1)}``, or None after ``seconds`` and one attempt. Rows of the arrays ascend."""
    deadline = time.perf_counter() + seconds
    n = len(indptr) - 1
    if n == 1:
        return np.zeros(1, np.int64)
    found = both_ways(indptr, indices) if len(indices) <= MOST_ARCS else None
    if found is None:
        return None
    starts, columns = found
    attempt = 0
    while attempt == 0 or time.perf_counter() < deadline:
        path = _rotate(starts, columns, min(WORK[0] * n, WORK[1]), seed + attempt)
        if len(path) == n:
            return path
        attempt += 1
    return None


def both_ways(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The arcs that go both ways, from a token to another; None where they do not connect all tokens."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(indptr) - 1
    row, column = np.repeat(np.arange(n), np.diff(indptr)), indices.astype(np.int64)
    key = row * n + column  # ascends
    mirrored = column * n + row
    keep = (key[np.minimum(np.searchsorted(key, mirrored), len(key) - 1)] == mirrored) & (row != column)
    row, column = row[keep], column[keep]
    starts = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=n))))
    graph = csr_array((np.ones(len(column), np.int8), column, starts), shape=(n, n))
    return (starts, column) if connected_components(graph, directed=False)[0] == 1 else None


@njit(cache=True)
@no_type_check
def _rotate(starts, columns, work, seed):
    """The longest path that ``work`` moves of a token lead to, among a few beginnings."""
    np.random.seed(seed)  # noqa: NPY002  (numba's own generator, not numpy's global one)
    n = len(starts) - 1
    path = np.empty(2 * n + 1, np.int64)  # from the middle on, in both directions
    place, free, ended = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    patience = 2_000 + n // 4
    while work > 0:
        place[:] = -1
        ended[:] = 0
        for v in range(n):
            free[v] = starts[v + 1] - starts[v]
        low = high = n
        _take(starts, columns, path, place, free, np.random.randint(n), n)  # noqa: NPY002
        work -= n
        vain = 0
        while vain < patience and work > 0:
            if free[path[high]] > 0:
                high += 1
                _take(starts, columns, path, place, free, _next(starts, columns, place, free, path[high - 1]), high)
                vain = 0
                continue
            if free[path[low]] > 0:
                low -= 1
                _take(starts, columns, path, place, free, _next(starts, columns, place, free, path[low + 1]), low)
                vain = 0
                continue
            if high - low + 1 == n:
                return path[low : high + 1].copy()
            if _opened(starts, columns, path, place, free, low, high):
                work -= n
                continue
            way = 1 if np.random.randint(2) else -1  # noqa: NPY002
            work -= _turn(starts, columns, path, place, free, ended, low, high, way)
            vain += 1
    return path[low : high + 1].copy()


@njit(cache=True)
@no_type_check
def _take(starts, columns, path, place, free, v, at):
    path[at], place[v] = v, at
    for e in range(starts[v], starts[v + 1]):
        free[columns[e]] -= 1


@njit(cache=True)
@no_type_check
def _next(starts, columns, place, free, v):
    """Of the neighbours that are not on the path, one with the fewest ways on: it would be lost soonest."""
    best, least, ties = -1, 0, 0
    for e in range(starts[v], starts[v + 1]):
        u = columns[e]
        if place[u] >= 0:
            continue
        if best < 0 or free[u] < least:
            best, least, ties = u, free[u], 1
        elif free[u] == least:
            ties += 1
            if np.random.randint(ties) == 0:  # noqa: NPY002
                best = u
    return best


@njit(cache=True)
@no_type_check
def _opened(starts, columns, path, place, free, low, high):
    """Where the two ends are joined: cut the circuit beside a token that can grow, which becomes the last one."""
    first, last = path[low], path[high]
    joined = False
    for e in range(starts[last], starts[last + 1]):
        joined |= columns[e] == first
    if not joined or high - low < 2:
        return False
    at = low
    while at <= high and free[path[at]] == 0:
        at += 1
    if at > high:
        return False
    turned = np.concatenate((path[at + 1 : high + 1], path[low : at + 1]))
    for i in range(len(turned)):
        path[low + i] = turned[i]
        place[turned[i]] = low + i
    return True


@njit(cache=True)
@no_type_check
def _turn(starts, columns, path, place, free, ended, low, high, way):
    """One rotation, or two that lead to an end which can grow; returns how many tokens were moved."""
    end = high if way > 0 else low
    v = path[end]
    degree = starts[v + 1] - starts[v]
    shift, count = np.random.randint(degree), min(degree, LOOKED_AT)  # noqa: NPY002
    best, rarest, ties = -1, 0, 0
    for c in range(count):
        i = place[columns[starts[v] + (shift + c) % degree]]
        if i + way == end:
            continue  # the edge of the path itself
        z = path[i + way]
        if free[z] > 0:
            return _reverse(path, place, i + way, end)
        if best < 0 or ended[z] < rarest:
            best, rarest, ties = i, ended[z], 1
        elif ended[z] == rarest:
            ties += 1
            if np.random.randint(ties) == 0:  # noqa: NPY002
                best = i
    if best < 0:
        return 1
    for c in range(count):
        i = place[columns[starts[v] + (shift + c) % degree]]
        if i + way == end:
            continue
        z = path[i + way]
        ways = starts[z + 1] - starts[z]
        for e in range(min(ways, LOOKED_AT)):
            # After the first rotation the token at p beyond i stands at mirror − p, and z at the end.
            p, mirror = place[columns[starts[z] + e]], end + i + way
            beyond = (p - i) * way > 0
            following = (mirror - p if beyond else p) + way
            if (end - following) * way <= 0:
                continue
            beyond = (following - i) * way > 0
            if free[path[mirror - following if beyond else following]] > 0:
                moved = _reverse(path, place, i + way, end)
                return moved + _reverse(path, place, following, end)
    ended[path[best + way]] += 1
    return _reverse(path, place, best + way, end)


@njit(cache=True)
@no_type_check
def _reverse(path, place, a, b):
    """Run the piece between two places backwards."""
    if a > b:
        a, b = b, a
    moved = b - a + 1
    while a < b:
        path[a], path[b] = path[b], path[a]
        place[path[a]], place[path[b]] = a, b
        a += 1
        b -= 1
    return moved
