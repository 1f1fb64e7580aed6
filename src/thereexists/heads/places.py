"""Where the tokens sit on the circle: supports spread far apart (small lambda) or side by side (small degree)."""

from __future__ import annotations

import numpy as np

from thereexists.core.plain_numbers import of_63_bits
from thereexists.heads.matrix import AttentionMatrix


def clustered_order(target: AttentionMatrix) -> np.ndarray:
    """``place[token]`` by reverse Cuthill-McKee on "occurs in one support with": bands become runs of neighbours."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    pattern = csr_array(
        (np.ones(target.nonzeros, np.int32), target.indices, target.indptr), shape=(target.length, target.length)
    )
    if int((np.diff(target.indptr) ** 2).sum()) > 50 * target.length * (target.k_row + 1):
        return np.arange(target.length)  # heavy rows: the product would be dense, and clustering hopeless
    together = (pattern.T @ pattern).tocsr()
    order = reverse_cuthill_mckee(together, symmetric_mode=True)
    place = np.empty(target.length, np.int64)
    place[order] = np.arange(target.length)
    return place


def blocks_of_rows(target: AttentionMatrix, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends (left, right) of each row's blocks, (L, D), -1 for none: neighbours pair up, others stay single.

    A run of consecutive places (cyclically) of length ``n`` gives ``ceil(n/2)`` blocks. For a block that wraps around,
    ``right`` is counted past ``L``, so that ``right - left`` is always 0 or 1.
    """
    columns, _, real = target.padded()
    L, k = columns.shape
    at = np.sort(np.where(real, place[columns], L + np.arange(k)), axis=1)  # filler sorts to the end
    count = real.sum(1)
    # Start each row just after a gap, so that a run through 0 is not cut in two.
    rotated = _rotate_to_gap(at, count, L)
    left, right = np.full((L, k), -1, np.int64), np.full((L, k), -1, np.int64)
    used, paired = np.zeros(L, np.int64), np.zeros(L, bool)
    rows = np.arange(L)
    for s in range(k):
        here = (s < count) & ~paired
        mate = np.zeros(L, bool)
        if s + 1 < k:
            mate = here & (s + 1 < count) & (rotated[:, s + 1] - rotated[:, s] == 1)
        left[rows[here], used[here]] = rotated[here, s]
        right[rows[here], used[here]] = np.where(mate, rotated[:, s] + 1, rotated[:, s])[here]
        used += here
        paired = mate
    degree = int(used.max())
    return left[:, :degree], right[:, :degree]


def _rotate_to_gap(at: np.ndarray, count: np.ndarray, L: int) -> np.ndarray:
    """Rows of sorted places, cyclically rotated to begin after a gap; wrapped places continue past L."""
    n, k = at.shape
    slots = np.arange(k)[None, :]
    wraps = (at[:, 0] == 0) & (np.take_along_axis(at, (count - 1)[:, None], 1)[:, 0] == L - 1)
    gap = np.zeros((n, k), bool)
    gap[:, 1:] = (np.diff(at, axis=1) != 1) & (slots[:, 1:] < count[:, None])
    start = np.where(wraps & gap.any(1), gap.argmax(1), 0)
    source = (start[:, None] + slots) % count[:, None]
    rotated = np.take_along_axis(at, np.where(slots < count[:, None], source, slots), 1)
    return rotated + np.where((slots < count[:, None]) & (source < start[:, None]), L, 0)


def spread_order(target: AttentionMatrix, seed: int = 0, base: int | None = None, scales: int = 1) -> np.ndarray:
    """Places that keep the tokens of every support apart on the torus of ``scales`` digits in the given base.

    A greedy start (each place takes, of the next 48 tokens, the one whose partners were placed longest ago), then
    swaps that lower ``max_j sum_{j'} -log f(theta_j - theta_j')`` of the worst rows, which is what ``log lambda``
    pays for crowding.
    """
    from thereexists.heads._spread import greedy_places, mend_places

    L = target.length
    columns, _, real = target.padded()
    partners, pointers = _partners(target)
    rng = np.random.default_rng(seed)
    place = greedy_places(partners, pointers, rng.permutation(L), min(48, L))
    if target.k_row == 1 or target.k_row > 64:
        return place
    base = base or L
    angle = 2 * np.pi * np.stack([np.arange(L) // base**r % base for r in range(scales)], axis=1) / base
    by_column = np.argsort(target.indices, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(target.indices, minlength=L))])
    rows_of = target.rows()[by_column]
    counts = real.sum(1)
    cos, sin, tries = np.cos(angle), np.sin(angle), 60 * L + 20000
    return mend_places(place, columns, counts, rows_of, starts, cos, sin, tries, of_63_bits(seed))


def _partners(target: AttentionMatrix) -> tuple[np.ndarray, np.ndarray]:
    """Adjacency of "occurs in one support with", as CSR with repetitions; heavy rows (over 64) are left out."""
    columns, _, real = target.padded()
    light = real.sum(1) <= 64
    columns, real = columns[light], real[light]
    k = columns.shape[1]
    first = np.repeat(columns, k, axis=1).reshape(-1)
    second = np.tile(columns, (1, k)).reshape(-1)
    both = (np.repeat(real, k, axis=1) & np.tile(real, (1, k))).reshape(-1) & (first != second)
    first, second = first[both], second[both]
    order = np.argsort(first, kind="stable")
    counts = np.bincount(first, minlength=target.length)
    return second[order], np.concatenate([[0], np.cumsum(counts)])
