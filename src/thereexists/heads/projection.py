"""The paper's method: random projections of the log-matrix ``B`` (paper C; the bound is derived in ``bound.py``).

Two factorings of ``B`` (at most ``k`` non-zeros per row and column, entries up to ``b``):

- ``signs``: ``X1 = B G``, ``X2 = G`` with ``G`` (L, m) random signs over ``sqrt(m)``. Entry noise about ``||B_i|| /
  sqrt(m)``.
- ``svd``: ``B = Y Z^T`` with ``Y = U sqrt(S)``, ``Z = V sqrt(S)``; ``X1 = Y P``, ``X2 = Z P``, ``P`` Gaussian over
  ``sqrt(m)``.
  Entry noise about ``||y_i|| ||z_j|| / sqrt(m)``, plus ``B_ij``'s own relative noise ``sqrt(1/m)``. It needs a dense
  SVD.

``smallest working m`` is found by the caller; each draw is verified independently.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.heads.matrix import AttentionMatrix

LARGEST_SVD = 2048
FACTORINGS = ("signs", "svd")


def log_matrix(target: AttentionMatrix, eps1: float, eps2: float):
    """``B`` as ``scipy.sparse.csr_array``: ``log(A_ij / min_i) + log((1+eps2)/eps1)`` on the support."""
    from scipy.sparse import csr_array

    low = np.minimum.reduceat(target.log_values, target.indptr[:-1])
    height = math.log1p(eps2) - math.log(eps1)
    values = target.log_values - np.repeat(low, np.diff(target.indptr)) + height
    return csr_array((values, target.indices, target.indptr), shape=(target.length, target.length))


def project(
    target: AttentionMatrix, m: int, *, eps1: float, eps2: float, seed: int, factoring: str = "signs"
) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys (L, m) of one random draw."""
    if factoring not in FACTORINGS:
        raise InvalidInput(f"The factoring must be one of {', '.join(FACTORINGS)}. Got {factoring!r}.")
    rng = np.random.default_rng([seed, m])
    B = log_matrix(target, eps1, eps2)
    if factoring == "signs":
        G = (rng.integers(0, 2, size=(target.length, m), dtype=np.int8) * 2.0 - 1.0) / math.sqrt(m)
        return B @ G, G
    Y, Z = svd_factors(target, eps1, eps2)
    P = rng.standard_normal((target.length, m)) / math.sqrt(m)
    return Y @ P, Z @ P


def trivial(target: AttentionMatrix, eps1: float, eps2: float) -> tuple[np.ndarray, np.ndarray]:
    """No projection at all: ``X1 = B``, ``X2 = I``, hidden size ``2L``, exact. The end of every search."""
    return log_matrix(target, eps1, eps2).toarray(), np.eye(target.length)


def svd_factors(target: AttentionMatrix, eps1: float, eps2: float) -> tuple[np.ndarray, np.ndarray]:
    """``Y, Z`` with ``B = Y Z^T``."""
    L = target.length
    if L > LARGEST_SVD:
        raise CannotBuild(
            f"The SVD factoring needs a dense {L}×{L} decomposition ({3 * 8 * L * L / 1e9:.1f} GB). "
            f"It is limited to L = {LARGEST_SVD}; use the factoring 'signs'."
        )
    return _decomposed(target, eps1, eps2)


@lru_cache(maxsize=1)
def _decomposed(target: AttentionMatrix, eps1: float, eps2: float) -> tuple[np.ndarray, np.ndarray]:
    """The last one is kept, of this very target: a search over m asks for it again and again."""
    U, s, Vt = np.linalg.svd(log_matrix(target, eps1, eps2).toarray())
    return U * np.sqrt(s), Vt.T * np.sqrt(s)
