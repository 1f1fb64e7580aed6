"""How far a computed logit can be from the real one: roundings and underflow, flushed to zero or not.

Claim. ``z = Σ_c q_c k_c`` with ``q = Σ_a X_a W_ac``, and ``k`` alike, evaluated in a dtype of unit roundoff ``u`` and
smallest normal number ``N``: in any order of summation, with or without fused multiply-add, the sums kept in this dtype
or in a wider one, subnormal numbers kept or replaced by zero where they are read or where they are written. Then

    |ẑ - z| ≤ g A·B + (1 + g) (A·U_K + U_Q·B + (2 m' + 1) N),        g = γ_n,  γ_n = n u / (1 - n u)

with ``n = m + 2d`` roundings on the longest path (``m`` where the weights only copy coordinates), ``A = |X||W_Q|+U_Q``
and ``B = |X||W_K|+U_K``, ``m'`` the number of non-zero products ``q_c k_c``, and

    U = (2 k + 1) N + N (S_X |W| + |X| S_W),     U = N S_X |W| where the weights only copy.

``S`` marks the subnormal entries of an array; ``k`` counts the non-zeros in a column of ``W``. This holds as long as
nothing overflows; where the bound on a partial sum exceeds the largest number of the dtype, the answer is infinity.

Proof. (1) *One operation* gives ``(a op b)(1 + δ) + η``, |δ| ≤ u. A value that is not subnormal has η = 0 (Higham,
*Accuracy and Stability*, section 2.1). One below N becomes zero, itself or its subnormal neighbour, when written or
when next read: it is off by at most N in all, since nothing further happens to a zero. (2) *One sum* of k non-zero
products: adding or multiplying by zero is exact, so at most k products, k additions and, from a wider dtype, one last
rounding have an η, and each η grows by at most ``1 + γ`` on its way. Entries of X and W may be read as zero: that
moves the sum by at most ``N (S_X |W| + |X| S_W)`` and increases no absolute value. With section 3.1 of Higham,
``|q̂ - q| ≤ γ_d |X||W| + (1 + γ_d) U``. A column with one non-zero, ±1, commits no rounding; only its entry of X may
be read as zero. (3) *The logit.* ``|q̂| ≤ (1 + γ_d) A``, ``|k̂| ≤ (1 + γ_d) B``; by (2) for ``ẑ``

    |ẑ - z| ≤ γ_m |q̂|·|k̂| + (1 + γ_m)(2 m' + 1) N + |q̂·k̂ - q·k|.

Let E and F be the two errors of (2). The last term is at most ``(|X||W_Q| + E)·(|X||W_K| + F) - |X||W_Q|·|X||W_K|``,
and everything together at most ``((1 + γ_d)² (1 + γ_m) - 1) A·B + (1 + γ_m)(1 + γ_d)² (A·U_K + U_Q·B) + …``. Finally
``(1 + γ_d)² (1 + γ_m) ≤ 1 + γ_n`` (Higham, lemma 3.3). ∎

The bound is evaluated in float64, where the processor may flush as well. It is a sum of non-negative terms, so that
costs a relative ``n 2^-52`` and, by (2), what four more N in ``U``, and ``8 m + 8`` times the N of float64 at the end,
make good. Which entries are subnormal is read off their bits: a processor that flushes compares them with zero wrongly.
"""

from __future__ import annotations

import math

import numpy as np
import torch

_BITS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
_SMALLEST = torch.finfo(torch.float64).smallest_normal


def logit_rounding(X: torch.Tensor, W_Q: torch.Tensor, W_K: torch.Tensor, picked: np.ndarray) -> np.ndarray:
    """The bound of the module docstring for the rows ``picked``, for all columns, in float64."""
    info = torch.finfo(X.dtype)
    d, m = W_Q.shape
    exact = selects(W_Q) and selects(W_K)
    steps = m + (0 if exact else 2 * d) + 2  # two to spare, for the differences of logits that the verifier takes
    unit = info.eps / 2
    if steps * unit >= 0.5:
        return np.full(len(picked), math.inf)
    g = steps * unit / (1 - steps * unit)
    rows = torch.from_numpy(picked).to(X.device)
    A, U_Q = _size_and_underflow(X[rows], W_Q)  # (rows, m), (rows or 1, m)
    B, U_K = (t.amax(0) for t in _size_and_underflow(X, W_K))  # (m,)
    products = int((_nonzero(W_Q).any(0) & _nonzero(W_K).any(0)).sum())
    whole = A @ B  # (rows,)
    last = (2 * products + 1) * info.smallest_normal + (8 * m + 8) * _SMALLEST
    rho = (g * whole + (1 + g) * (A @ U_K + U_Q @ B + last)) * (1 + steps * 2.0**-50)
    largest = torch.maximum(torch.maximum(A.amax(1), B.max()), whole + rho) * (1 + g)
    rho = torch.where(largest < info.max, rho, math.inf)  # not a number counts as too large
    return rho.cpu().numpy()


def apply(X: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
    """``X W``; a ``W`` that only copies, negates or drops coordinates is applied by indexing, exactly."""
    if not selects(W):
        return X @ W
    return X[:, W.abs().argmax(0)] * W.sum(0)


def selects(W: torch.Tensor) -> bool:
    """Whether ``W`` only copies, negates or drops coordinates."""
    size = W.abs()
    unit = bool(((size == 0) | (size == 1)).all() and ((size != 0).sum(0) <= 1).all())
    return unit and not bool(_subnormal(W).any())


def _size_and_underflow(X: torch.Tensor, W: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """``|X||W| + U`` (L, m) and ``U`` (L or 1, m) of the claim."""
    normal = torch.finfo(X.dtype).smallest_normal
    X_small, W_small = _subnormal(X), _subnormal(W)
    size, weights = X.abs().double(), W.abs().double()
    A = apply(size, weights) if selects(W) else size @ weights
    if selects(W):
        read = apply(X_small.double(), weights) if bool(X_small.any()) else torch.zeros_like(weights[:1])
        return A + normal * read, normal * read
    count = _nonzero(W).sum(0, keepdim=True).double()
    U = torch.where(count > 0, (2 * count + 5) * normal, 0.0)  # (1, m)
    if bool(X_small.any()):
        U = U + normal * (X_small.double() @ weights)
    if bool(W_small.any()):
        U = U + normal * (size @ W_small.double())
    return A + U, U


def _magnitude(t: torch.Tensor) -> torch.Tensor:
    """The absolute values as integers, in the same order."""
    whole = _BITS[t.dtype]
    return t.contiguous().view(whole) & torch.iinfo(whole).max


def _subnormal(t: torch.Tensor) -> torch.Tensor:
    least = _magnitude(torch.tensor(torch.finfo(t.dtype).smallest_normal, dtype=t.dtype)).item()
    bits = _magnitude(t)
    return (bits > 0) & (bits < least)


def _nonzero(t: torch.Tensor) -> torch.Tensor:
    return _magnitude(t) > 0
