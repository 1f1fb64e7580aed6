"""The compiled solver behind ``convex``: coordinate ascent on ``max_{mu >= 0} b·mu - mu^T H mu / 2``, row by row."""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from thereexists.core.compiled import njit


@njit(cache=True)
@no_type_check
def ascend(H, b, valid, start, base, limit):  # pragma: no cover - compiled
    """``mu``, the dual values plus ``base``, and which rows passed ``limit``. Stops at a residual of 1e-3 max b."""
    rows, w = b.shape
    mu = start.copy()
    value = np.empty(rows)
    passed = np.zeros(rows, np.bool_)
    for i in range(rows):
        g = b[i].copy()  # b - H mu
        for c in range(w):
            if mu[i, c] != 0.0:
                for e in range(w):
                    g[e] -= H[i, e, c] * mu[i, c]
        scale = max(1.0, np.abs(b[i]).max())
        for _ in range(2000):
            worst = 0.0
            for c in range(w):
                if not valid[i, c] or H[i, c, c] <= 1e-12:
                    if valid[i, c] and b[i, c] > 1e-9:
                        passed[i] = True  # 0·q >= b > 0: the key of column c lies in the span of the support
                    continue
                new = max(0.0, mu[i, c] + g[c] / H[i, c, c])
                delta = new - mu[i, c]
                if delta != 0.0:
                    worst = max(worst, abs(delta) * H[i, c, c])
                    mu[i, c] = new
                    for e in range(w):
                        g[e] -= H[i, e, c] * delta
            if worst < 1e-3 * scale or passed[i]:
                break
            # b·mu - mu^T H mu / 2 = mu·(b + g) / 2 with g = b - H mu
            total = 0.0
            for c in range(w):
                total += mu[i, c] * (b[i, c] + g[c])
            if base[i] + 0.5 * total > limit:
                passed[i] = True
                break
        total = 0.0
        for c in range(w):
            total += mu[i, c] * (b[i, c] + g[c])
        value[i] = base[i] + 0.5 * total
    return mu, value, passed
