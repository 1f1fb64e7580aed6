"""The same two conditions as ``verify.py``, for a head given as an exact sum of float64 words, in ball arithmetic.

Logits are enclosed by ``python-flint`` matrices of balls at a stated number of bits; the verdict uses upper and lower
ends, so it is a statement about the real numbers stored. Nothing of the fitting code is imported.

The ends are compared in float64. ``slack`` of an entry is its ball's radius and 2^-52 of what float64 subtracts there;
converting and subtracting round twice by 2^-53 of that, so a real difference lies within twice the slack, also in the
last place. Each further sum, and the logarithm of a tolerance, costs at most 2^-50 of its size; 2^-49 is taken. What
underflows is below ``_LOST`` in all, and no tolerance is that small (``check_tolerances``).
"""

from __future__ import annotations

import math
import time

import numpy as np
import torch

from thereexists.core.errors import InvalidInput
from thereexists.core.verdict import Verdict
from thereexists.heads.matrix import AttentionMatrix, log_rounding
from thereexists.heads.verify import Verification, check_tolerances

TILE = 64
_LAST_PLACE = 2.0**-49
_LOST = 1e-200


def verify_exact(
    words: torch.Tensor,
    W_Q: torch.Tensor,
    W_K: torch.Tensor,
    target: AttentionMatrix,
    *,
    eps1: float,
    eps2: float,
    bits: int,
) -> Verification:
    """``words`` (w, L, d): ``X`` is their exact sum."""
    import flint
    from flint import arb_mat

    started = time.perf_counter()
    check_tolerances(eps1, eps2)
    if words.ndim != 3 or words.shape[1:] != (target.length, W_Q.shape[0]) or W_Q.shape != W_K.shape:
        raise InvalidInput(
            f"The head does not fit the target: words {tuple(words.shape)}, W_Q {tuple(W_Q.shape)}, "
            f"W_K {tuple(W_K.shape)}, target length {target.length}. Wanted words (w, L, d), W_Q and W_K (d, m)."
        )
    before = flint.ctx.prec
    flint.ctx.prec = bits
    L = target.length
    gap, highest, lowest, spread, radius, stored, largest = *np.empty((6, L)), 0.0
    try:
        X = sum((arb_mat(word.tolist()) for word in words[1:]), arb_mat(words[0].tolist()))
        queries, keys = X * arb_mat(W_Q.tolist()), X * arb_mat(W_K.tolist())
        keys_t, rows_of_queries = keys.transpose(), queries.tolist()
        for start in range(0, L, TILE):
            z = (arb_mat(rows_of_queries[start : start + TILE]) * keys_t).tolist()
            for i, row in enumerate(z, start):
                span = slice(target.indptr[i], target.indptr[i + 1])
                support = target.indices[span]
                gap[i], highest[i], lowest[i], spread[i], radius[i] = _ends(row, support, target.log_values[span])
                stored[i] = 2 * log_rounding(target.log_values[span]).max()  # of both ends of a spread
                largest = max(largest, _largest(row))
    finally:
        flint.ctx.prec = before
    log1, log2 = math.log(eps1), math.log1p(eps2)
    with np.errstate(invalid="ignore", over="ignore"):  # words so large that nothing is known stay undecided
        up, down = 1 + _LAST_PLACE, 1 - _LAST_PLACE
        # A gap beyond twice log(eps1) is on one side whatever its last place says; log(eps1) < 0.
        fine = (highest + 2 * radius + _LOST < log1 * up) & (spread * up + 4 * radius + stored + _LOST <= log2 * down)
        broken = (lowest - 2 * radius - _LOST >= log1 * down) | (
            spread * down - 4 * radius - stored - _LOST > log2 * up
        )
        worst = int(np.argmax(np.maximum(gap - log1, spread - log2)))
    holds = True if fine.all() else (False if broken.any() else None)
    why = {
        True: f"every row meets both tolerances, enclosed in balls of {bits} bits",
        False: f"{int(broken.sum())} of {L} rows miss a tolerance",
        None: f"{bits} bits do not decide some row",
    }[holds]
    with np.errstate(over="ignore", invalid="ignore"):
        leakage, ratio = float(np.exp(gap.max())), float(np.expm1(spread.max()))
        evidence = {"row": worst, "leakage": float(np.exp(gap[worst])), "ratio_error": float(np.expm1(spread[worst]))}
    seconds = time.perf_counter() - started
    return Verification(
        Verdict(holds, (why,), evidence),
        leakage,
        ratio,
        largest,
        float(radius.max()),
        worst,
        L,
        f"{bits} bits",
        "cpu",
        seconds,
    )


def _ends(row: list, support: np.ndarray, logs: np.ndarray) -> tuple[float, float, float, float, float]:
    """Of a row of logits in balls: the gap, its upper and its lower end (up to the slack of the support), the spread of
    the errors, the slack of the support."""
    # Relative to one support entry, subtracted in balls: what is converted to float64 is then as small as the
    # differences that matter, however large the logits themselves are.
    anchor = row[int(support[0])]
    relative = [x - anchor for x in row]
    middle = np.array([float(x.mid()) for x in relative])
    slack = np.array([float(x.rad()) for x in relative]) + np.abs(middle) * 2.0**-52
    slack[support] += np.abs(logs) * 2.0**-52  # the difference below rounds too
    on, error = middle[support], middle[support] - logs
    with np.errstate(invalid="ignore", over="ignore"):  # beyond float64: not a number, and so undecided
        off, high, low = middle + slack, middle + 2 * slack, middle - 2 * slack
        off[support] = high[support] = low[support] = -np.inf
        gap, highest, lowest = (float(end.max() - on.min()) for end in (off, high, low))
        return gap, highest, lowest, float(error.max() - error.min()), float(slack[support].max())


def _largest(row: list) -> float:
    """No logit of the row, on the support or off it, is larger in size: the largest upper end of its balls.

    ``float`` rounds by 2^-53 of the size, which ``figures.py`` allows for; beyond float64 it gives infinity.
    """
    return max(float(x.abs_upper()) for x in row)
