"""Listed entries on the CPU, with Numba: row by row, the inner loops over the head dimension vectorised.

Arrays are (heads, n, D), contiguous, float32 or float64; batch and heads are one axis.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np

try:
    from thereexists.core.compiled import config, njit, prange, set_num_threads, start_threads
except ImportError as error:  # numba is an extra
    from thereexists.core.errors import CannotBuild

    raise CannotBuild(
        "Irregular rows on the CPU run through Numba, which is not installed; pip install 'thereexists[attention]'."
    ) from error

_FAST = {"reassoc", "contract", "nsz", "arcp"}  # reorder sums, but keep infinities meaningful
_ROWS = 256  # rows of one work item


def set_threads(count: int) -> None:
    """Use at most ``count`` threads."""
    start_threads()
    most: Any = config  # type: ignore[attr-defined]
    set_num_threads(max(1, min(count, most.NUMBA_NUM_THREADS)))


@njit(inline="always")
@no_type_check
def _survives(seed, threshold, head, row, key):
    """See ``call_options.survivors``, the definition."""
    word = np.uint64(0xFFFFFFFF)
    c0, c1, c2, c3 = np.uint64(row), np.uint64(key), np.uint64(head), np.uint64(0)
    k0, k1 = seed & word, (seed >> np.uint64(32)) & word
    for _ in range(10):
        high, low = np.uint64(0xCD9E8D57) * c2, np.uint64(0xD2511F53) * c0
        c0 = (high >> np.uint64(32)) ^ c1 ^ k0
        c2 = (low >> np.uint64(32)) ^ c3 ^ k1
        c1, c3 = high & word, low & word
        k0 = (k0 + np.uint64(0x9E3779B9)) & word
        k1 = (k1 + np.uint64(0xBB67AE85)) & word
    return c0 >= threshold


# The differences of ``log_sums`` are not to be reordered: fast arithmetic, which a caller hands on, is switched off.


@njit(fastmath=False, cache=True, error_model="numpy")
@no_type_check
def _share(lse, lost, high):
    return np.exp((lse - high) + lost)


@njit(fastmath=False, cache=True, error_model="numpy")
@no_type_check
def _in_two(top, rest):
    lse = top + rest
    return lse, rest - (lse - top)


@njit(fastmath=False, cache=True, error_model="numpy")
@no_type_check
def _weight(logit, lse, lost):
    """P · e^lost, and P is at most 1, however the logit was rounded this time."""
    return np.exp(min(logit - lse, lost))


@njit(parallel=True, fastmath=_FAST, cache=True, error_model="numpy")
@no_type_check
def entries_forward(
    q, k, v, out, lse, lost, rows, indptr, indices, pad, scale, cap, biased, bias,
    accumulate, dropout, seed, threshold, gain, head0, group,
):  # fmt: skip
    """Fill (or, with ``accumulate``, merge into) ``out``, ``lse`` and ``lost`` for the listed rows.

    ``bias`` is (heads, 2n − 1) by offset, for as many heads as repeat through the batch; ``cap`` 0 means none.
    """
    heads, n, d = q.shape
    items = (len(rows) + _ROWS - 1) // _ROWS
    longest = 0
    for i in range(len(rows)):
        longest = max(longest, indptr[i + 1] - indptr[i])
    zero = q.dtype.type(0)
    for item in prange(heads * items):
        g, first = item // items, (item % items) * _ROWS
        s = np.empty(longest, q.dtype)
        for i in range(first, min(first + _ROWS, len(rows))):
            row, start, stop = rows[i], indptr[i], indptr[i + 1]
            top, odd = q.dtype.type(-np.inf), False
            for e in range(start, stop):
                key = indices[e]
                if pad[key] == 0:
                    s[e - start] = q.dtype.type(-np.inf)
                    continue
                dot = zero
                for c in range(d):
                    dot += q[g, row, c] * k[g, key, c]
                dot *= scale
                if cap > 0:
                    dot = cap * np.tanh(dot / cap)
                if biased:
                    dot += bias[g % len(bias), key - row + n - 1]
                s[e - start] = dot
                top = max(top, dot)
                odd |= dot != dot
            if odd:  # NaN, which no maximum tells from a row without keys
                lse[g, row], lost[g, row] = np.nan, zero
                out[g, row, :] = np.nan
                continue
            before = lse[g, row] if accumulate else q.dtype.type(-np.inf)
            high = max(top, before)
            if high == -np.inf:
                lse[g, row], lost[g, row] = high, zero
                if not accumulate:
                    out[g, row, :] = zero
                continue
            total = _share(before, lost[g, row], high) if accumulate else zero
            for c in range(d):
                out[g, row, c] = out[g, row, c] * total if accumulate else zero
            for e in range(start, stop):
                weight = np.exp(s[e - start] - high)
                total += weight
                key = indices[e]
                if dropout:
                    weight = weight * gain if _survives(seed, threshold, head0 + g * group, row, key) else zero
                if weight > 0:
                    for c in range(d):
                        out[g, row, c] += weight * v[g, key, c]
            for c in range(d):
                out[g, row, c] /= total
            lse[g, row], lost[g, row] = _in_two(high, np.log(total))


@njit(parallel=True, fastmath=_FAST, cache=True, error_model="numpy")
@no_type_check
def entries_backward(
    do, q, k, v, lse, lost, delta, dq, dk, dv, rows, indptr, indices, pad, scale, cap, biased, bias,
    dropout, seed, threshold, gain, head0, group,
):  # fmt: skip
    """Add the listed pairs' shares to dq, dk, dv, for ``do`` and ``delta`` that are multiplied by e^(−lost) already.

    Heads run in parallel, so that no two share a gradient.
    """
    heads, n, d = q.shape
    zero = q.dtype.type(0)
    for g in prange(heads):
        for i in range(len(rows)):
            row = rows[i]
            if lse[g, row] == np.inf:
                continue
            for e in range(indptr[i], indptr[i + 1]):
                key = indices[e]
                if pad[key] == 0:
                    continue
                dot, dp = zero, zero
                for c in range(d):
                    dot += q[g, row, c] * k[g, key, c]
                    dp += do[g, row, c] * v[g, key, c]
                dot *= scale
                slope = scale
                if cap > 0:
                    bent = np.tanh(dot / cap)
                    dot, slope = cap * bent, scale * (1 - bent * bent)
                if biased:
                    dot += bias[g % len(bias), key - row + n - 1]
                p = _weight(dot, lse[g, row], lost[g, row])
                used = p
                if dropout:
                    if _survives(seed, threshold, head0 + g * group, row, key):
                        used, dp = p * gain, dp * gain
                    else:
                        used, dp = zero, zero
                ds = p * (dp - delta[g, row]) * slope
                for c in range(d):
                    dq[g, row, c] += ds * k[g, key, c]
                    dk[g, key, c] += ds * q[g, row, c]
                    dv[g, key, c] += used * do[g, row, c]
