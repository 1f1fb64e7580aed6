"""The target: a sparse attention matrix, checked once and never densified.

Paper C (Likhosherstov, Choromanski, Weller) asks for ``A >= 0`` with at most ``k`` non-zeros in every row and every
column, the non-zeros of a row within a factor ``gamma`` of each other. Only ratios inside a row matter, so the target
keeps the logarithms of the non-zeros, relative to the row's largest, in CSR order, and ``k`` and ``gamma`` are
*measured*, not believed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.owned_arrays import owned
from thereexists.core.plain_numbers import seed_from, shown, whole
from thereexists.core.sparse_arrays import check_compressed, with_plain_data

_LARGEST_LOG = 709.0  # e^709 is the last whole power of e that is a float64

MOST_NONZEROS = 1 << 25  # of a random matrix: about a gigabyte while it is made


@dataclass(frozen=True, eq=False)
class AttentionMatrix:
    """``indptr``, ``indices``, ``log_values``: CSR of ``log A`` on the support, columns sorted inside every row.

        target = te.heads.random_matrix(16, 2)
        target.length, target.nonzeros, target.k, target.gamma

    Args:
        length: how many tokens.
        indptr: where every row begins.
        indices: the columns.
        log_values: the logarithms of the non-zeros.
    """

    length: int
    indptr: np.ndarray  # (L + 1,) int64
    indices: np.ndarray  # (nnz,) int64
    log_values: np.ndarray  # (nnz,) float64

    def __post_init__(self) -> None:
        for name, dtype in (("indptr", np.int64), ("indices", np.int64), ("log_values", np.float64)):
            object.__setattr__(self, name, owned(getattr(self, name), dtype))

    @property
    def k_row(self) -> int:
        return int(np.diff(self.indptr).max())

    @property
    def k_column(self) -> int:
        return int(np.bincount(self.indices, minlength=self.length).max())

    @property
    def k(self) -> int:
        """The paper's k: the most non-zeros in any row or column."""
        return max(self.k_row, self.k_column)

    @property
    def nonzeros(self) -> int:
        return len(self.indices)

    @property
    def log_gamma(self) -> float:
        """Largest ``log(max / min)`` over the non-zeros of a row."""
        starts = self.indptr[:-1]
        spread = np.maximum.reduceat(self.log_values, starts) - np.minimum.reduceat(self.log_values, starts)
        return float(spread.max())

    @property
    def gamma(self) -> float:
        if self.log_gamma > _LARGEST_LOG:
            raise InvalidInput(
                f"The non-zeros of a row of the target are up to a factor e^{self.log_gamma:.0f} apart, which float64 "
                "cannot hold; drop the smallest entries."
            )
        return math.exp(self.log_gamma)

    def rows(self) -> np.ndarray:
        """The row of every stored entry."""
        return np.repeat(np.arange(self.length), np.diff(self.indptr))

    def padded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Supports as rectangles: columns (L, k) (first column repeated as filler), log values (L, k), mask (L, k)."""
        counts = np.diff(self.indptr)
        width = int(counts.max())
        slot = np.arange(width)[None, :]
        real = slot < counts[:, None]
        where = self.indptr[:-1, None] + np.where(real, slot, 0)
        return self.indices[where], self.log_values[where], real

    def probabilities(self) -> np.ndarray:
        """The non-zeros, every row normalised to sum 1, in CSR order."""
        starts, counts = self.indptr[:-1], np.diff(self.indptr)
        value = np.exp(self.log_values - np.repeat(np.maximum.reduceat(self.log_values, starts), counts))
        return value / np.repeat(np.add.reduceat(value, starts), counts)

    def to_scipy(self) -> Any:
        """The matrix ``A`` with rows normalised to sum 1, as ``scipy.sparse.csr_array``."""
        from scipy.sparse import csr_array

        return csr_array((self.probabilities(), self.indices, self.indptr), shape=(self.length, self.length))


def as_matrix(A: Any) -> AttentionMatrix:
    """Check a scipy sparse matrix (or pass a checked target through).

        from scipy.sparse import eye_array

        te.heads.as_matrix(eye_array(4, format="csr"))

    Args:
        A: a scipy sparse matrix, square and not negative.

    Returns:
        The target, checked.

    Raises:
        InvalidInput: it is not such a matrix.
    """
    if isinstance(A, AttentionMatrix):
        return A
    if not (hasattr(A, "tocsr") and hasattr(A, "shape")):
        raise InvalidInput(_not_sparse(A))
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise InvalidInput(
            f"The target must be a square matrix. Got shape {tuple(A.shape)}; an attention matrix is L×L."
        )
    csr = _checked_csr(A)
    if csr.shape[0] == 0:
        raise InvalidInput("The target has no rows. Give an L×L matrix with L >= 1.")
    if csr.dtype.kind not in "fiub":
        raise InvalidInput(f"The target must hold real numbers. Got dtype {csr.dtype}; convert it to float64.")
    csr.sum_duplicates()
    return from_csr(csr.indptr, csr.indices, csr.data.astype(np.float64))


def _checked_csr(A: Any) -> Any:
    """A copy as CSR. scipy's own code does not look at the index arrays of a CSR array: it writes where they say."""
    if getattr(A, "format", None) in ("csr", "csc", "bsr"):
        check_compressed(A)
    return with_plain_data(A).tocsr().copy()


def from_csr(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray) -> AttentionMatrix:
    """Build a target from raw CSR arrays with unique columns in every row; every defect is named with its place."""
    indptr, indices = np.asarray(indptr, np.int64), np.asarray(indices, np.int64)
    values = np.asarray(values, np.float64)
    L = len(indptr) - 1
    if (
        L < 1
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or len(indices) != len(values)
        or (np.diff(indptr) < 0).any()
    ):
        raise InvalidInput("The CSR arrays do not fit together: indptr must rise from 0 to len(indices) == len(data).")
    if len(indices) and (indices.min() < 0 or indices.max() >= L):
        raise InvalidInput(f"A column index lies outside 0..{L - 1}. Got {indices.min()}..{indices.max()}.")
    rows = np.repeat(np.arange(L), np.diff(indptr))
    for broken, word in ((~np.isfinite(values), "NaN or infinite"), (values < 0, "negative")):
        if broken.any():
            e = int(np.flatnonzero(broken)[0])
            raise InvalidInput(
                f"The target has a {word} entry: A[{rows[e]}, {indices[e]}] = {values[e]}. "
                "Attention weights are finite and non-negative; repair or drop that entry."
            )
    keep = values > 0
    rows, indices, values = rows[keep], indices[keep], values[keep]
    order = np.lexsort((indices, rows))
    rows, indices, values = rows[order], indices[order], values[order]
    counts = np.bincount(rows, minlength=L)
    if (counts == 0).any():
        empty = int(np.flatnonzero(counts == 0)[0])
        raise InvalidInput(
            f"Row {empty} of the target is empty ({int((counts == 0).sum())} such rows). A softmax row sums to 1: "
            "give every row at least one non-zero, for example a self-loop on the diagonal."
        )
    if ((np.diff(indices) == 0) & (np.diff(rows) == 0)).any():
        raise InvalidInput("The CSR arrays repeat a column inside a row; sum the duplicates first.")
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    _ = AttentionMatrix(L, indptr, indices, np.log(values)).gamma  # refused here, where the entries were given
    largest = np.repeat(np.maximum.reduceat(values, indptr[:-1]), counts)
    return AttentionMatrix(L, indptr, indices, np.log(values / largest))


def log_rounding(log_values: np.ndarray) -> np.ndarray:
    """By how much logarithms relative to their row's largest may be off: those of a target's numbers, as stored.

    A quotient is rounded by 2^-53 of itself (2^-51 where it is subnormal), and ``log`` is right to four units in the
    last place. It is 0 for equal numbers only, and exact then: numbers that differ have a quotient below 1.
    """
    return np.where(log_values == 0, 0.0, 2.0**-50 * (1 + np.abs(log_values)))


def random_matrix(length: int, k: int, gamma: float = 2.0, seed: int = 0) -> AttentionMatrix:
    """k disjoint random permutations (exactly k non-zeros per row and column), log-uniform values within gamma.

        te.heads.random_matrix(16, 2)

    Args:
        length: how many tokens.
        k: non-zeros in every row and column.
        gamma: how many times larger than another one a non-zero of the same row may be.
        seed: of the draw.

    Returns:
        The target.

    Raises:
        InvalidInput: k is larger than the length, γ is below 1, or the seed is not a whole number from 0 on.
    """
    whole(length, "The length")
    whole(k, "'k'")
    if length < 1 or not 1 <= k <= length:
        raise InvalidInput(f"k must lie between 1 and the length. Got length {length}, k {k}.")
    if not (isinstance(gamma, int | float | np.number) and 1 <= gamma < math.inf):
        raise InvalidInput(f"gamma is a ratio max/min and must be finite and >= 1. Got {shown(gamma)}.")
    if length * k > MOST_NONZEROS or gamma > math.exp(_LARGEST_LOG):
        raise InvalidInput(f"A matrix has at most {MOST_NONZEROS:,} non-zeros, and gamma at most e^{_LARGEST_LOG:g}.")
    if k > length // 2 and k > 8:
        raise InvalidInput(f"k = {k} of {length} columns is not sparse. Choose k at most length/2.")
    rng = np.random.default_rng(seed_from(seed))
    columns = np.stack([rng.permutation(length) for _ in range(k)], axis=1)  # (L, k)
    # A row where two permutations agree swaps one of its entries with a random row: rows and columns stay balanced.
    for _ in range(1000):
        by_row = np.sort(columns, axis=1)
        clash = np.flatnonzero((np.diff(by_row, axis=1) == 0).any(axis=1))
        if len(clash) == 0:
            break
        for i in clash:
            slot, j = rng.integers(k), rng.integers(length)
            columns[i, slot], columns[j, slot] = columns[j, slot], columns[i, slot]
    else:
        rng_shift = rng.permutation(length)  # dense corner (k close to length): shifted permutations never clash
        columns = rng_shift[(np.arange(length)[:, None] + np.arange(k)[None, :]) % length]
    values = np.exp(rng.uniform(0.0, math.log(gamma), size=(length, k)))
    return from_csr(np.arange(length + 1) * k, columns.reshape(-1), values.reshape(-1))


def _not_sparse(A: Any) -> str:
    if hasattr(A, "shape") and len(A.shape) == 2:
        cells = int(A.shape[0]) * int(A.shape[1])
        return (
            f"The target is a dense {type(A).__name__} of shape {tuple(A.shape)}. It has to be scipy.sparse: a dense "
            f"target of this size holds {cells:,} numbers ({cells * 8 / 1e6:,.1f} MB in float64, and 8·L² bytes at any "
            "L) and every row may then need a head as wide as the sequence. Use scipy.sparse.csr_array(A) if most "
            "entries are zero."
        )
    return f"The target must be a square scipy.sparse matrix. Got {type(A).__name__}; use scipy.sparse.csr_array."
