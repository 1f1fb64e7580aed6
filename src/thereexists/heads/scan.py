"""For the fitting side: the largest off-support logit of every row, streamed in tiles on the CPU."""

from __future__ import annotations

import numpy as np

from thereexists.heads.matrix import AttentionMatrix


def off_support_maximum(
    queries: np.ndarray, keys: np.ndarray, target: AttentionMatrix, rows: np.ndarray | None = None
) -> np.ndarray:
    """``max_{l not in S_i} q_i·k_l`` for the given rows of the target (``queries`` has one row for each)."""
    import torch

    rows = np.arange(target.length) if rows is None else rows
    q, kt = torch.from_numpy(np.ascontiguousarray(queries)), torch.from_numpy(np.ascontiguousarray(keys.T))
    top = torch.empty(len(rows), dtype=q.dtype)
    for start, local, columns in support_tiles(target, rows, 256):
        stop = min(start + 256, len(rows))
        best = torch.full((stop - start,), -torch.inf, dtype=q.dtype)
        for c in range(0, target.length, 2048):
            z = q[start:stop] @ kt[:, c : c + 2048]
            inside = (columns >= c) & (columns < c + 2048)
            z[torch.from_numpy(local[inside]), torch.from_numpy(columns[inside] - c)] = -torch.inf
            best = torch.maximum(best, z.amax(1))
        top[start:stop] = best
    return top.numpy()


def support_tiles(target: AttentionMatrix, rows: np.ndarray, size: int):
    """For every tile of rows: its start, and the (local row, column) of each support entry in it."""
    counts = np.diff(target.indptr)[rows]
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        n = counts[start : start + size]
        first = np.repeat(target.indptr[block], n)
        ramp = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        yield start, np.repeat(np.arange(len(block)), n), target.indices[first + ramp]
