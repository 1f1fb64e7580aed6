"""Corrected projection (beyond the paper): random keys, logits exact on the support.

Keys ``G`` (L, m): random signs over ``sqrt(m)``. The query of row ``i`` lives in the span of its own keys, ``q_i =
sum_{j in S_i} c_j G_j``, with the Gram system ``(G_S G_S^T) c = T_i 1 + log A_S`` solved in one batch of k×k systems:
the logits on the support are ``T_i + log A_ij`` exactly, whatever ``m``, so ``eps2`` costs nothing. Off the support
they are ``T_i u_l + v_l`` with ``u, v`` the logits of the right-hand sides ``1`` and ``log A - min``. The row
separates iff every ``u_l < 1``, and then

    T_i = max_l (log(1/eps1) + margin + v_l) / (1 - u_l)

is the smallest height that works. ``bound.corrected_hidden_size`` proves ``m = O(k^2 log L)`` suffices for every
target; measured, ``O(k log L)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thereexists.heads.matrix import AttentionMatrix

MARGIN = 0.05  # on the log scale: the leakage aims at eps1·e^-0.05, so that rounding cannot push it over
SEPARABLE = 0.995  # a row whose u_l comes closer to 1 than this would need a height above 200·log(1/eps1): it is failed


@dataclass(frozen=True, eq=False)
class CorrectedRows:
    """Queries for the rows that separate, and the indices of those that do not."""

    queries: np.ndarray
    failed: np.ndarray


def random_keys(length: int, m: int, seed: int) -> np.ndarray:
    """Random signs over ``sqrt(m)``: every row has norm exactly 1 up to rounding."""
    return np.random.default_rng([seed, m]).choice([-1.0, 1.0], size=(length, m)) / math.sqrt(m)


def correct(target: AttentionMatrix, keys: np.ndarray, *, eps1: float, rows: np.ndarray | None = None) -> CorrectedRows:
    """The queries of ``rows`` (all of them by default) against the given keys."""
    columns, log_values, real = target.padded()
    if rows is not None:
        columns, log_values, real = columns[rows], log_values[rows], real[rows]
    ones, values = support_basis(keys, columns, log_values, real)
    height, failed = _heights(target, keys, ones, values, eps1, np.arange(target.length) if rows is None else rows)
    return CorrectedRows(height[:, None] * ones + values, failed)


def support_basis(
    keys: np.ndarray, columns: np.ndarray, log_values: np.ndarray, real: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Minimum-norm vectors with logits ``1`` and ``log A - min log A`` on the support, both (rows, m)."""
    k = columns.shape[1]
    own = keys[columns] * real[:, :, None]  # (rows, k, m)
    gram = own @ own.transpose(0, 2, 1)
    gram[:, np.arange(k), np.arange(k)] += ~real  # filler slots: an identity block that decouples
    low = np.where(real, log_values, np.inf).min(1, keepdims=True)
    right = np.stack([real.astype(float), np.where(real, log_values - low, 0.0)], axis=-1)  # (rows, k, 2)
    # Two keys of a support may coincide or be opposite at tiny m: a ridge far below rounding keeps LAPACK from
    # raising, and such a row then fails its check like any other.
    gram[:, np.arange(k), np.arange(k)] += 1e-14
    coefficients = np.linalg.solve(gram, right)  # (rows, k, 2)
    both = np.einsum("rkm,rkt->trm", own, coefficients, optimize=True)
    return both[0], both[1]


def _heights(
    target: AttentionMatrix, keys: np.ndarray, ones: np.ndarray, values: np.ndarray, eps1: float, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``T_i`` of every row, streamed over tiles of columns; rows that do not separate get a large finite height."""
    wanted = -math.log(eps1) + MARGIN
    single = keys.astype(np.float32).T.copy()
    height = np.full(len(rows), wanted)
    separable = np.ones(len(rows), bool)
    step = max(1, min(256, 2**25 // max(1, target.length)))
    for start in range(0, len(rows), step):
        block = slice(start, min(start + step, len(rows)))
        u = ones[block].astype(np.float32) @ single  # (step, L)
        v = values[block].astype(np.float32) @ single
        chosen = rows[block]
        counts = np.diff(target.indptr)[chosen]
        local = np.repeat(np.arange(len(chosen)), counts)
        entries = np.repeat(target.indptr[chosen] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        u[local, target.indices[entries + np.arange(counts.sum())]] = -np.inf
        top = u.max(1)
        separable[block] = top < SEPARABLE
        with np.errstate(invalid="ignore", divide="ignore"):
            need = np.where(u < SEPARABLE, (wanted + v) / (1 - u), 0.0).max(1)
        height[block] = np.maximum(need, height[block])
    # float32 logits here are good to 1e-4 of the height, which the relative margin absorbs; the verifier decides.
    return height * (1 + 1e-3), rows[~separable]
