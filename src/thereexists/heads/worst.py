"""Is the row that a file calls its worst one of the worst, and is what the file says of it true?

Rows and columns that are equally bad up to rounding are chosen by chance, so none is wanted by its number: each must be
as bad as the worst, up to the rounding bound ρ of a logit (a difference of two, computed twice, moves by at most 4ρ).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from thereexists.heads.figures import SLACK, number, same_leakage, same_ratio_error, same_rounding
from thereexists.heads.head import Head
from thereexists.heads.verify import DTYPES, Arithmetic, Verification, comparing_rounds, verify


def is_worst(head: Head, stated: Verification, found: Verification) -> bool:
    """Whether the stated worst row is as bad as the one found, with its figures and columns right."""
    told, actual, row = stated.verdict.evidence, found.verdict.evidence, stated.worst_row
    if not isinstance(told, dict) or told.keys() != actual.keys() or told["row"] != row:
        return False
    if type(told["row"]) is not int or not 0 <= row < head.target.length:
        return False
    if head.words is not None or "leakage" not in actual or found.dtype not in DTYPES:  # in balls, or not finite
        return row == found.worst_row and _same_figures(told, actual, 0.0, 0.0)
    target, rounding = head.target, 4 * found.rounding
    compared = comparing_rounds(found.max_logit, target.log_gamma)
    tolerances = {"eps1": head.eps1, "eps2": head.eps2}
    in_its_dtype, only = Arithmetic(found.dtype), np.array([row])
    alone = verify(head.X, head.W_Q, head.W_K, target, **tolerances, arithmetic=in_its_dtype, rows=only)
    if not _same_figures(told, alone.verdict.evidence, found.rounding, compared):
        return False
    if _badness(head, alone.verdict.evidence) < _badness(head, actual) - rounding - 2 * compared - SLACK:
        return False
    return _same_columns(head, told, rounding, found.dtype)


def _same_figures(told: dict[str, Any], actual: dict[str, Any], rho: float, compared: float) -> bool:
    stated = {name: number(told[name]) for name in ("leakage", "ratio_error", "rounding") if name in actual}
    figures = {name: value for name, value in stated.items() if value is not None}
    if figures.keys() != stated.keys():
        return False
    if "rounding" in figures and not same_rounding(figures["rounding"], actual["rounding"]):
        return False
    return "leakage" not in figures or (
        same_leakage(figures["leakage"], actual["leakage"], rho)
        and same_ratio_error(figures["ratio_error"], actual["ratio_error"], rho, compared)
    )


def _badness(head: Head, row: dict[str, Any]) -> float:
    """In units of the tolerance, on the log scale, as the verifier ranks rows."""
    leakage = math.log(row["leakage"]) if row["leakage"] > 0 else -math.inf
    return max(leakage - math.log(head.eps1), math.log1p(row["ratio_error"]) - math.log1p(head.eps2))


def _same_columns(head: Head, told: dict[str, Any], rounding: float, dtype: str) -> bool:
    """The columns that make the row what it is: extreme among the zeros, and among the entries, up to rounding."""
    target, row = head.target, told["row"]
    X, W_Q, W_K = (t.to(DTYPES[dtype]).double() for t in (head.X, head.W_Q, head.W_K))
    z = ((X @ W_K) @ (X[row] @ W_Q)).numpy()
    span = slice(target.indptr[row], target.indptr[row + 1])
    support = target.indices[span]
    zero = np.setdiff1d(np.arange(target.length), support)
    error = np.full(target.length, np.nan)
    error[support] = z[support] - target.log_values[span]
    slack = rounding + 1e-12 * float(np.abs(z).max())
    pair = told["ratio_columns"]
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return False
    if (told["largest_zero_column"] is None) != (len(zero) == 0):
        return False
    wanted = [(told["smallest_support_column"], -z, support), (pair[0], error, support), (pair[1], -error, support)]
    wanted += [(told["largest_zero_column"], z, zero)] if len(zero) else []
    return all(
        type(column) is int and bool((among == column).any()) and values[column] >= values[among].max() - slack
        for column, values, among in wanted
    )
