"""Does a head attend as told? Every row is checked, in tiles, from ``X``, ``W_Q``, ``W_K`` and the target alone.

This file shares nothing with the fitting code. With ``z = X W_Q (X W_K)^T`` and ``S_i`` the support of row ``i``:

    leakage_i     = exp( max_{j not in S_i} z_ij - min_{j in S_i} z_ij )          has to be <  eps1
    ratio_error_i = exp( max_{S_i} (z - log A) - min_{S_i} (z - log A) ) - 1       has to be <= eps2

are the largest zero/non-zero ratio and the largest relative error of a non-zero/non-zero ratio of ``softmax(z)``: the
normaliser of the row cancels in both, so no exponential is taken on a tile and no L×L array exists.

Rounding. Each computed logit differs from the real one by at most ``rho_i``, the bound that ``rounding.py`` proves: for
every order of summation, with or without fused multiply-add, subnormal numbers kept or flushed to zero at any stage.
Another evaluation may be as far from it on the other side: 2ρ from ours, and 4ρ in a difference of two logits. The
verdict is True only if the conditions hold within that, hence in exact arithmetic *and* in any evaluation in this
dtype; False only if they fail everywhere within it; otherwise it is undecided. Where a partial sum may overflow the
bound is infinite, and whatever comes out, not a number among it, shows nothing of the real logits.
"""

from __future__ import annotations

import dataclasses
import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from thereexists.core.devices import as_device
from thereexists.core.errors import InvalidInput
from thereexists.core.neutral import neutral
from thereexists.core.plain_text import brief, in_full
from thereexists.core.rounded_figures import rounded_up
from thereexists.core.verdict import Verdict
from thereexists.heads.matrix import AttentionMatrix, as_matrix, log_rounding
from thereexists.heads.rounding import apply, logit_rounding

DTYPES = {
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
}

CHANGED = "an array or a tolerance was changed after it was verified"
LEAST_EPS1, LEAST_EPS2 = 1e-100, 1e-30
_LARGEST = torch.finfo(torch.float64).max
_COMPARING = 2.0**-50  # three subtractions, each of at most twice the sum of a logit and a logarithm


@dataclass(frozen=True)
class Arithmetic:
    """In which numbers a head is run, and on which device.

        te.heads.Arithmetic(dtype="float32")

    Args:
        dtype: of the run.
        device: ``cpu`` or ``cuda``.
    """

    dtype: str = "float64"
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise InvalidInput(f"dtype must be one of {', '.join(DTYPES)}. Got {self.dtype!r}.")


@dataclass(frozen=True)
class Verification:
    """What was measured, on how many rows, in which arithmetic; ``verdict.evidence`` is the worst row.

        te.heads.fit(te.heads.random_matrix(16, 2)).verification.verdict

    ``max_logit`` is a size. In a dtype: of the logits that decide, those on the support and the largest other one of
    every row. In balls: of all logits, an upper bound.

    Args:
        verdict: whether every row keeps both tolerances.
        leakage: the worst weight off the support.
        ratio_error: the worst.
        max_logit: the size of the logits.
        rounding: what it may be off by.
        worst_row: where.
        rows: how many were checked.
        dtype: of the run.
        device: of the run.
        seconds: how long it took.
    """

    verdict: Verdict
    leakage: float
    ratio_error: float
    max_logit: float
    rounding: float
    worst_row: int
    rows: int
    dtype: str
    device: str
    seconds: float

    def __repr__(self) -> str:
        return brief(f"{type(self).__name__}: {self.verdict.in_words()}", *self._found())

    def of_changed_arrays(self) -> Verification:
        """What this says of other arrays: nothing."""
        unknown = dict.fromkeys(("leakage", "ratio_error", "max_logit", "rounding"), math.nan)
        return dataclasses.replace(self, verdict=Verdict(None, (f"{CHANGED}: verify it again",)), rows=0, **unknown)

    def errors(self) -> str:
        return f"leakage {rounded_up(self.leakage, 3)}, ratio error {rounded_up(self.ratio_error, 3)}"

    def _found(self) -> tuple[str, ...]:
        return (
            f"{self.errors()}, worst in row {self.worst_row:,}",
            f"{self.rows:,} rows in {self.dtype} on {self.device}, rounding at most {rounded_up(self.rounding, 3)}",
            *self.verdict.reasons,
        )


@neutral()
def verify(
    X: Any,
    W_Q: Any,
    W_K: Any,
    target: Any,
    *,
    eps1: float,
    eps2: float,
    arithmetic: Arithmetic = Arithmetic(),
    rows: Any = None,
) -> Verification:
    """Check every row (or the given ``rows``) of the head against the target, in the arithmetic asked for.

        head = te.heads.fit(te.heads.random_matrix(16, 2))
        te.heads.verify(head.X, head.W_Q, head.W_K, head.target, eps1=1e-3, eps2=1e-2)

    Args:
        X: (length, d), what the head looks at; a tensor or an array.
        W_Q: (d, m).
        W_K: (d, m).
        target: the matrix that it should show, as for ``te.heads.fit``.
        eps1: the leakage that is allowed.
        eps2: the relative error of a ratio that is allowed.
        arithmetic: dtype and device.
        rows: which ones to check, by their numbers or by a mask; None for all.

    Returns:
        The worst leakage and ratio error, and a verdict.

    Raises:
        InvalidInput: the shapes do not fit, or the rows are none of the target's.
    """
    started = time.perf_counter()
    check_tolerances(eps1, eps2)
    dtype, device = arithmetic.dtype, as_device(arithmetic.device)
    target, X, W_Q, W_K = as_matrix(target), *map(_as_tensor, (X, W_Q, W_K))
    if X.ndim != 2 or X.shape[0] != target.length or W_Q.shape != W_K.shape or W_Q.shape[0] != X.shape[1]:
        raise InvalidInput(
            f"The head does not fit the target: X {tuple(X.shape)}, W_Q {tuple(W_Q.shape)}, W_K {tuple(W_K.shape)}, "
            f"target length {target.length}. Wanted X (L, d), W_Q and W_K (d, m)."
        )
    kind = DTYPES[dtype]
    X, W_Q, W_K = (t.to(device=device, dtype=kind) for t in (X, W_Q, W_K))
    if not (torch.isfinite(X).all() and torch.isfinite(W_Q).all() and torch.isfinite(W_K).all()):
        return _not_finite(X, dtype, str(device), time.perf_counter() - started)
    picked = np.arange(target.length) if rows is None else _picked(rows, target.length)

    queries, keys = apply(X, W_Q), apply(X, W_K)  # (L, m)
    rho = logit_rounding(X, W_Q, W_K, picked)  # (rows,) float64
    gap, spread, slack, largest = _scan(queries, keys, target, picked)
    with np.errstate(invalid="ignore"):  # an infinite bound decides nothing
        leak_low, leak_high = gap - 4 * rho, gap + 4 * rho
        ratio_low, ratio_high = spread - 4 * rho - slack, spread + 4 * rho + slack
    # Badness in units of the tolerance, on the log scale: positive means the row fails.
    log1, log2 = math.log(eps1), math.log1p(eps2)
    badness = np.maximum(gap - log1, spread - log2)
    worst = int(np.argmax(np.where(np.isnan(badness), np.inf, badness)))
    with np.errstate(over="ignore"):
        leakage, ratio_error = float(np.exp(gap.max())), float(np.expm1(spread.max()))
    holds: bool | None
    if (leak_high < log1).all() and (ratio_high <= log2).all():
        holds, why = True, "every row meets both tolerances for every value within the rounding bound"
    elif (leak_low >= log1).any() or (ratio_low > log2).any():
        failing = int(((leak_low >= log1) | (ratio_low > log2)).sum())
        holds, why = False, f"{failing} of {len(picked)} rows miss a tolerance by more than the rounding bound"
    elif np.isinf(rho).any():
        holds, why = None, f"a logit may overflow on its way in {dtype}: verify in more bits"
    else:
        holds, why = (
            None,
            f"some row is closer to its tolerance than the rounding of {dtype} logits: verify in more bits",
        )
    evidence = _describe(
        int(picked[worst]), queries, keys, target, float(gap[worst]), float(spread[worst]), float(rho[worst])
    )
    if rows is not None:
        why += f" (only {len(picked)} of {target.length} rows were checked)"
    return Verification(
        Verdict(holds, (why,), evidence),
        leakage,
        ratio_error,
        largest,
        float(rho.max()),
        int(picked[worst]),
        len(picked),
        dtype,
        str(device),
        time.perf_counter() - started,
    )


def check_tolerances(eps1: float, eps2: float) -> None:
    """Large enough that no underflow counts, in the verifiers or in the theorem's ``1 / log(1 + eps2)^2``."""
    if not (LEAST_EPS1 <= eps1 < 1):
        raise InvalidInput(
            f"eps1 is the largest allowed zero/non-zero ratio and must lie in [{in_full(LEAST_EPS1)}, 1). Got {eps1}."
        )
    if not (LEAST_EPS2 <= eps2 <= _LARGEST):
        raise InvalidInput(
            f"eps2 is the allowed relative error of the ratios and must be at least {in_full(LEAST_EPS2)} and finite. "
            f"Got {eps2}."
        )


def comparing_rounds(max_logit: float, log_gamma: float) -> float:
    """A bound on what ``_scan_rows`` adds to a spread of errors for its three subtractions, in any row."""
    return _COMPARING * (max_logit + log_gamma)


def _scan(
    queries: torch.Tensor, keys: torch.Tensor, target: AttentionMatrix, picked: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Per row: log leakage, log ratio spread, what comparing ratios rounds; and the size of the largest logit used."""
    on_gpu = queries.device.type == "cuda"
    tile_rows = 8192 if on_gpu else 256
    keys_t = keys.T.contiguous()
    tiles = [picked[start : start + tile_rows] for start in range(0, len(picked), tile_rows)]

    def work(block: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        return _scan_rows(queries, keys, keys_t, target, block)

    if on_gpu or len(tiles) == 1:
        parts = [work(block) for block in tiles]
    else:
        # One thread per tile of rows instead of many threads per small product: no barrier in the inner loop.
        threads = torch.get_num_threads()
        try:
            with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                parts = list(pool.map(work, tiles))
        finally:
            torch.set_num_threads(threads)
    return (
        np.concatenate([part[0] for part in parts]),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
        max(part[3] for part in parts),
    )


def _scan_rows(
    queries: torch.Tensor, keys: torch.Tensor, keys_t: torch.Tensor, target: AttentionMatrix, block: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """One tile of rows against all columns, a tile of columns at a time.

    Only ratios within a row count, so its logarithms are taken relative to their largest. Each of the three
    subtractions that lead to the spread rounds by at most 2^-53 of its result, at most |logit| + |logarithm|, twice;
    and the logarithms themselves are rounded.
    """
    L, device = target.length, queries.device
    width = 16384 if device.type == "cuda" else 2048
    counts = target.indptr[block + 1] - target.indptr[block]
    entries = np.repeat(target.indptr[block], counts) + _ramp(counts)
    local = torch.from_numpy(np.repeat(np.arange(len(block)), counts)).to(device)
    columns = torch.from_numpy(target.indices[entries]).to(device)
    log_values = torch.from_numpy(target.log_values[entries]).to(device)
    q = queries[torch.from_numpy(block).to(device)]  # (rows, m)
    on = (q[local] * keys[columns]).to(torch.float64).sum(-1)  # (entries,)
    floor = _per_row(on, local, len(block), "amin")
    log_values = log_values - _per_row(log_values, local, len(block), "amax")[local]
    offset = on - log_values
    spread = _per_row(offset, local, len(block), "amax") - _per_row(offset, local, len(block), "amin")
    stored = torch.from_numpy(log_rounding(log_values.cpu().numpy())).to(device)
    slack = _per_row(_COMPARING * (on.abs() + log_values.abs()) + 2 * stored, local, len(block), "amax")
    ceiling = torch.full((len(block),), -math.inf, dtype=q.dtype, device=device)
    order = torch.argsort(columns)
    local, columns = local[order], columns[order]
    cuts = torch.searchsorted(columns, torch.arange(0, L + width, width, device=device)).tolist()
    for t, c in enumerate(range(0, L, width)):
        z = q @ keys_t[:, c : c + width]  # (rows, columns)
        here = slice(cuts[t], cuts[t + 1])
        z[local[here], columns[here] - c] = -math.inf
        ceiling = torch.maximum(ceiling, z.amax(1))
    off = ceiling[ceiling > -math.inf]  # a full row has none
    largest = max(float(on.abs().max()), float(off.abs().max()) if len(off) else 0.0)
    return (ceiling.to(torch.float64) - floor).cpu().numpy(), spread.cpu().numpy(), slack.cpu().numpy(), largest


def _per_row(values: torch.Tensor, local: torch.Tensor, rows: int, how: str) -> torch.Tensor:
    start = torch.full((rows,), -math.inf if how == "amax" else math.inf, dtype=values.dtype, device=values.device)
    return start.scatter_reduce(0, local, values, how)


def _ramp(counts: np.ndarray) -> np.ndarray:
    """0..counts[0]-1, 0..counts[1]-1, ... in one array."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1]) - np.repeat(ends - counts, counts)


def _describe(
    row: int, queries: torch.Tensor, keys: torch.Tensor, target: AttentionMatrix, gap: float, spread: float, rho: float
) -> dict[str, object]:
    """The worst row, with the columns that make it the worst."""
    span = slice(target.indptr[row], target.indptr[row + 1])
    support = target.indices[span]
    z = (keys.double() @ queries[row].double()).cpu().numpy()
    off = z.copy()
    off[support] = -np.inf
    error = z[support] - target.log_values[span]
    return {
        "row": row,
        "leakage": float(np.exp(min(gap, 700.0))),
        "ratio_error": float(np.expm1(min(spread, 700.0))),
        "rounding": rho,
        "largest_zero_column": int(np.argmax(off)) if len(support) < target.length else None,
        "smallest_support_column": int(support[np.argmin(z[support])]),
        "ratio_columns": [int(support[np.argmax(error)]), int(support[np.argmin(error)])],
    }


def _picked(rows: Any, length: int) -> np.ndarray:
    """Numbers of rows, from numbers or from a mask: what is checked must be what was asked for."""
    given = np.asarray(rows)
    if given.dtype == np.bool_ and given.shape == (length,):
        given = np.flatnonzero(given)
    if (
        given.ndim != 1
        or given.dtype.kind not in "iu"
        or not len(given)
        or not 0 <= given.min() <= given.max() < length
    ):
        raise InvalidInput(f"'rows' must be some of the numbers 0 to {length - 1}, or a mask of {length} rows.")
    return np.unique(given.astype(np.int64))


def _as_tensor(given: Any) -> torch.Tensor:
    """A matrix of real numbers, where no imaginary part would be dropped."""
    array = torch.from_numpy(given) if isinstance(given, np.ndarray) and given.dtype.kind in "biuf" else given
    if not isinstance(array, torch.Tensor) or array.is_complex():
        raise InvalidInput(f"X, W_Q and W_K must be tensors or arrays of real numbers; got {type(given).__name__}.")
    return array


def _not_finite(X: torch.Tensor, dtype: str, device: str, seconds: float) -> Verification:
    bad = torch.nonzero(~torch.isfinite(X).all(1))
    row = int(bad[0]) if len(bad) else 0
    verdict = Verdict(False, (f"the head is not finite in {dtype}",), {"row": row})
    return Verification(verdict, math.inf, math.inf, math.inf, math.inf, row, X.shape[0], dtype, device, seconds)
