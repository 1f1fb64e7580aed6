"""The receptive depth by definition, in bits: exact for any pattern whose edges can be listed.

``S_k^t ∩ J`` for a chunk ``J`` of 512 target tokens is one row of eight words; the recursion
``S_k^t = ∪_{j ∈ A_k^l} S_j^{t−1}`` is an OR of rows, and chunks do not interact. Memory is two n × 8 word buffers a
thread instead of n² bits, and a buffer stays in cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np

from thereexists.core.compiled import njit, prange, start_threads

WORDS = 8


@dataclass(frozen=True)
class BitsetDepth:
    """``depth`` is None when some pair never connects; ``k`` misses ``j`` at depth − 1 (or for ever)."""

    depth: int | None
    k: int
    j: int
    limit_reached: bool


def depth_by_bitsets(
    steps: list[tuple[np.ndarray, np.ndarray]], causal: bool, limit: int, loops: bool = True
) -> BitsetDepth:
    """The smallest s with ``S_k^s = [n]`` for all k (``[0..k]`` when ``causal``), at most ``limit`` rounds.

    ``steps`` holds CSR arrays, row k = A_k^l. With ``loops``, ``k ∈ A_k^l`` for all k and l: the sets only grow, so a
    full row stays full, and p rounds without growth are final. Without, only "all full" lasts, and not when causal:
    then ask with ``causal=False``, and nothing but the limit ends a search in vain.
    """
    n = len(steps[0][0]) - 1
    chunks = -(-n // (64 * WORDS))
    starts = np.stack([indptr for indptr, _ in steps]).astype(np.int64)
    columns = np.concatenate([indices for _, indices in steps]).astype(
        np.uint32
    )  # unsigned: no wrap-around test at every access
    offsets = np.cumsum([0] + [len(indices) for _, indices in steps[:-1]]).astype(np.int64)
    if chunks == 1:  # threads would cost more than the work
        one = _one_chunk(starts, columns, offsets, n, 0, causal, limit, loops)
        rounds, miss_k, miss_j = (np.array([x]) for x in one)
    else:
        start_threads()
        rounds, miss_k, miss_j = _all_chunks(starts, columns, offsets, n, chunks, causal, limit, loops)
    worst = int(np.argmax(rounds))  # never-connecting chunks carry limit + 1, unfinished ones limit + 2
    found = int(rounds[worst])
    pair = int(miss_k[worst]), int(miss_j[worst])
    if found == limit + 2 and (rounds == limit + 1).any():
        worst = int(np.flatnonzero(rounds == limit + 1)[0])
        return BitsetDepth(None, int(miss_k[worst]), int(miss_j[worst]), False)
    return BitsetDepth(None if found > limit else found, *pair, limit_reached=found == limit + 2)


@njit(cache=True, parallel=True)
@no_type_check
def _all_chunks(starts, columns, offsets, n, chunks, causal, limit, loops):
    rounds = np.zeros(chunks, np.int64)
    miss_k = np.zeros(chunks, np.int64)
    miss_j = np.zeros(chunks, np.int64)
    for chunk in prange(chunks):
        found = _one_chunk(starts, columns, offsets, n, chunk * 64 * WORDS, causal, limit, loops)
        rounds[chunk], miss_k[chunk], miss_j[chunk] = found
    return rounds, miss_k, miss_j


@njit(cache=True)
@no_type_check
def _target(first, k, n, causal, word):
    """The bits that row k has to reach in this word: tokens below n, and up to k when causal."""
    low = first + 64 * word
    top = min(n, k + 1) if causal else n
    count = min(max(top - low, 0), 64)
    if count == 64:
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    return (np.uint64(1) << np.uint64(count)) - np.uint64(1)


@njit(cache=True)
@no_type_check
def _aligned_rows(n):
    """n zero rows of one cache line each; unaligned rows would straddle two."""
    words = np.zeros(n * WORDS + WORDS, np.uint64)
    shift = (-(words.ctypes.data // 8)) % WORDS
    return words[shift : shift + n * WORDS].reshape((n, WORDS))


@njit(cache=True)
@no_type_check
def _one_chunk(starts, columns, offsets, n, first, causal, limit, loops):
    p = starts.shape[0]
    old, new = _aligned_rows(n), _aligned_rows(n)
    some = np.zeros(n, np.bool_)  # whether the row of old has any bit
    for i in range(min(64 * WORDS, n - first)):
        old[first + i, i // 64] |= np.uint64(1) << np.uint64(i % 64)
        some[first + i] = True
    full = np.zeros(n, np.bool_)
    ones = np.uint64(0xFFFFFFFFFFFFFFFF)
    still, miss_k, miss_j = 0, first, first
    for t in range(limit + 1):
        # here old = S^t; find a pair that is missing
        missing = False
        for k in range(n):
            if full[k] and loops:
                continue
            done = True
            for w in range(WORDS):
                lack = _target(first, k, n, causal, w) & ~old[k, w]
                if lack:
                    done = False
                    if not missing:
                        missing, miss_k = True, k
                        bit = 0
                        while not (lack >> np.uint64(bit)) & np.uint64(1):
                            bit += 1
                        miss_j = first + 64 * w + bit
                    break
            full[k] = done
        if not missing:
            return max(t, 1), miss_k, miss_j
        if loops and still >= p:
            return limit + 1, miss_k, miss_j
        if t == limit:
            break
        l = t % p
        grew = False
        for k in range(n):
            some[k] = False
            for w in range(WORDS):
                some[k] |= old[k, w] != 0
        for k in range(n):
            if full[k] and loops:  # k ∈ A_k, so it stays full
                for w in range(WORDS):
                    new[k, w] = old[k, w]
                continue
            a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = np.uint64(0)
            for e in range(offsets[l] + starts[l, k], offsets[l] + starts[l, k + 1]):
                j = columns[e]
                if not some[j]:
                    continue
                a0 |= old[j, 0]
                a1 |= old[j, 1]
                a2 |= old[j, 2]
                a3 |= old[j, 3]
                a4 |= old[j, 4]
                a5 |= old[j, 5]
                a6 |= old[j, 6]
                a7 |= old[j, 7]
                if a0 & a1 & a2 & a3 & a4 & a5 & a6 & a7 == ones:
                    break
            changed = (
                (a0 ^ old[k, 0])
                | (a1 ^ old[k, 1])
                | (a2 ^ old[k, 2])
                | (a3 ^ old[k, 3])
                | (a4 ^ old[k, 4])
                | (a5 ^ old[k, 5])
                | (a6 ^ old[k, 6])
                | (a7 ^ old[k, 7])
            )
            grew |= changed != 0
            new[k, 0], new[k, 1], new[k, 2], new[k, 3] = a0, a1, a2, a3
            new[k, 4], new[k, 5], new[k, 6], new[k, 7] = a4, a5, a6, a7
        still = 0 if grew else still + 1
        old, new = new, old
    return limit + 2, miss_k, miss_j


def depth_by_searches(indptr: np.ndarray, indices: np.ndarray, causal: bool) -> BitsetDepth:
    """The same for a cycle of one step, by a breadth-first search from every token: better when the depth is large.

    With self-loops and p = 1, ``S_k^t`` is the set of tokens within t moves of k.
    """
    n = len(indptr) - 1
    search = _few_searches
    if n > 64 * WORDS:
        start_threads()
        search = _all_searches
    far, last, count = search(indptr.astype(np.int64), indices.astype(np.uint32), n)
    goal = np.arange(1, n + 1) if causal else np.full(n, n)
    short = np.flatnonzero(count < goal)
    if len(short):
        k = int(short[0])
        return BitsetDepth(None, k, int(_unseen(indptr.astype(np.int64), indices.astype(np.uint32), n, k)), False)
    k = int(np.argmax(far))
    return BitsetDepth(max(int(far[k]), 1), k, int(last[k]), False)


@njit(cache=True, parallel=True)
@no_type_check
def _all_searches(indptr, indices, n):
    far, last, count = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for part in prange(16):
        _searches(indptr, indices, part * n // 16, (part + 1) * n // 16, far, last, count)
    return far, last, count


@njit(cache=True)
@no_type_check
def _few_searches(indptr, indices, n):
    far, last, count = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    _searches(indptr, indices, 0, n, far, last, count)
    return far, last, count


@njit(cache=True)
@no_type_check
def _searches(indptr, indices, first, stop, far, last, count):
    n = len(far)
    level, queue = np.empty(n, np.int32), np.empty(n, np.int64)
    for k in range(first, stop):
        size = _search(indptr, indices, k, level, queue)
        last[k] = queue[size - 1]
        far[k], count[k] = level[last[k]], size


@njit(cache=True)
@no_type_check
def _search(indptr, indices, k, level, queue):
    level[:] = -1
    level[k], queue[0] = 0, k
    head, tail = 0, 1
    while head < tail:
        at = queue[head]
        head += 1
        for e in range(indptr[at], indptr[at + 1]):
            j = indices[e]
            if level[j] < 0:
                level[j] = level[at] + 1
                queue[tail] = j
                tail += 1
    return tail


@njit(cache=True)
@no_type_check
def _unseen(indptr, indices, n, k):
    level, queue = np.empty(n, np.int32), np.empty(n, np.int64)
    _search(indptr, indices, k, level, queue)
    for j in range(n):
        if level[j] < 0:
            return j
    return -1


def diameter(indptr: np.ndarray, indices: np.ndarray, searches: int) -> tuple[int, int, int] | None:
    """``(s, k, j)``: the largest distance, between k and j, of a connected graph whose edges go both ways.

    None when they do not, or when ``searches`` are not enough (see ``depth_listed``).
    """
    from thereexists.patterns.patching import _symmetric

    starts, columns = indptr.astype(np.int64), indices.astype(np.int64)
    if not _symmetric(starts, columns):
        return None
    far, k, j = _diameter(starts, columns, searches)
    return None if far < 0 else (max(int(far), 1), int(k), int(j))


@njit(cache=True)
@no_type_check
def _diameter(indptr, indices, searches):
    n = len(indptr) - 1
    level, queue = np.empty(n, np.int32), np.empty(n, np.int64)
    if _search(indptr, indices, 0, level, queue) < n:
        return -1, 0, 0
    # Twice from the farthest token to the one farthest from it; then the token whose farthest of those four is nearest.
    v, k, j, best = queue[n - 1], 0, 0, 0
    radius = np.zeros(n, np.int32)
    for turn in range(4):
        _search(indptr, indices, v, level, queue)
        radius = np.maximum(radius, level)
        if level[queue[n - 1]] > best:
            k, j = v, queue[n - 1]
            best = level[j]
        v = queue[n - 1]
        if turn == 1:  # another beginning: far from what is half-way between the first two
            _search(indptr, indices, np.argmin(radius), level, queue)
            v = queue[n - 1]
    _search(indptr, indices, np.argmin(radius), level, queue)
    around, order = level.copy(), queue.copy()
    searches -= 7
    for at in range(n - 1, -1, -1):
        v = order[at]
        if best >= 2 * around[v]:
            return best, k, j
        if searches <= 0:
            return -1, 0, 0
        _search(indptr, indices, v, level, queue)
        searches -= 1
        if level[queue[n - 1]] > best:
            k, j = v, queue[n - 1]
            best = level[j]
    return best, k, j
