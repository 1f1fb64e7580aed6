"""The compiled loops behind ``places.spread_order``: a greedy start, then swaps that mend the worst rows."""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from thereexists.core.compiled import njit


@njit(cache=True)
@no_type_check
def greedy_places(partners, pointers, shuffled, look):  # pragma: no cover - compiled
    """place[token]; distances are cyclic, so the first places count again when the circle closes."""
    L = len(shuffled)
    queue = shuffled.copy()
    last = np.full(L, -L, np.int64)  # latest place of a partner
    first = np.full(L, 2 * L, np.int64)  # earliest place of a partner, plus L
    place = np.empty(L, np.int64)
    for p in range(L):
        best, best_distance = p, -1
        for c in range(p, min(p + look, L)):
            t = queue[c]
            distance = min(p - last[t], first[t] - p)
            if distance > best_distance:
                best, best_distance = c, distance
        token = queue[best]
        queue[best] = queue[p]
        place[token] = p
        for e in range(pointers[token], pointers[token + 1]):
            other = partners[e]
            last[other] = max(last[other], p)
            first[other] = min(first[other], p + L)
    return place


@njit(cache=True)
@no_type_check
def row_cost(row, columns, counts, place, cosines, sines):  # pragma: no cover - compiled
    """max_j sum_{j' != j} -log f(theta_j - theta_j'): how much the other zeros of F depress it next to zero j."""
    worst = 0.0
    scales = cosines.shape[1]
    for a in range(counts[row]):
        p = place[columns[row, a]]
        total = 0.0
        for b in range(counts[row]):
            if b != a:
                q = place[columns[row, b]]
                f = 1e-30
                for r in range(scales):
                    f += 1.0 - cosines[p, r] * cosines[q, r] - sines[p, r] * sines[q, r]
                total -= np.log(f)
        worst = max(worst, total)
    return worst


@njit(cache=True)
@no_type_check
def mend_places(place, columns, counts, rows_of, pointers, cosines, sines, tries, seed):  # pragma: no cover - compiled
    """Swap a token of a too costly row with a random one whenever the worst of the touched rows improves."""
    np.random.seed(seed)  # noqa: NPY002 - inside compiled code this is numba's own generator
    L = len(place)
    cost = np.empty(L)
    for i in range(L):
        cost[i] = row_cost(i, columns, counts, place, cosines, sines)
    left = tries
    while left > 0:
        level = cost.max() * 0.98
        mended = False
        stuck = False
        for i in range(L):
            attempts = 0
            while cost[i] > level and left > 0:
                attempts += 1
                left -= 1
                if attempts > 400:
                    stuck = True
                    break
                a = columns[i, np.random.randint(counts[i])]  # noqa: NPY002
                b = np.random.randint(L)  # noqa: NPY002
                before, after = 0.0, 0.0
                for t in (a, b):
                    for e in range(pointers[t], pointers[t + 1]):
                        before = max(before, cost[rows_of[e]])
                place[a], place[b] = place[b], place[a]
                for t in (a, b):
                    for e in range(pointers[t], pointers[t + 1]):
                        after = max(after, row_cost(rows_of[e], columns, counts, place, cosines, sines))
                if after < before:
                    mended = True
                    for t in (a, b):
                        for e in range(pointers[t], pointers[t + 1]):
                            cost[rows_of[e]] = row_cost(rows_of[e], columns, counts, place, cosines, sines)
                else:
                    place[a], place[b] = place[b], place[a]
        if stuck or not mended:
            break
    return place
