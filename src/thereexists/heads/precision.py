"""Which dtype carries a head: first from the rounding bound, then by running the verification in that dtype.

The verifier's bound is ``rho = g(n, u) M`` with ``M = max_i (|X||W_Q|)_i · max_j (|W_K|^T|X|^T)_j``. Storing ``X``
and the weights in a dtype of unit roundoff ``u`` adds at most four roundings per product. A dtype is *predicted* to
do if twice that ``rho`` fits between what was measured and what is tolerated, and *needed* means: the smallest
predicted one whose own run is verified.
"""

from __future__ import annotations

import math

import torch

from thereexists.core.errors import InvalidInput
from thereexists.heads.matrix import AttentionMatrix
from thereexists.heads.rounding import apply, selects
from thereexists.heads.verify import DTYPES, Arithmetic, Verification, verify


def dtype_needed(
    X: torch.Tensor,
    W_Q: torch.Tensor,
    W_K: torch.Tensor,
    target: AttentionMatrix,
    found: Verification,
    eps1: float,
    eps2: float,
) -> str:
    """The smallest of bfloat16, float16, float32, float64 predicted and confirmed; else the bits that would do."""
    if found.dtype != "float64" and not found.verdict.holds:  # measured in too few bits: start from what float64 says
        found = verify(X, W_Q, W_K, target, eps1=eps1, eps2=eps2)
    room = room_left(found, eps1, eps2)
    size = size_of(X, W_Q, W_K)
    for name, kind in DTYPES.items():
        info = torch.finfo(kind)
        if float(X.abs().max()) > info.max or 2 * _gamma(steps_of(W_Q), info.eps / 2) * size >= room:
            continue
        if name == found.dtype and found.verdict.holds:
            return name
        if verify(X, W_Q, W_K, target, eps1=eps1, eps2=eps2, arithmetic=Arithmetic(name)).verdict.holds:
            return name
    if found.dtype == "float64" and found.verdict.holds:
        return "float64"
    return f"{bits_needed(size, steps_of(W_Q), room if room > 0 else math.log1p(eps2) / 4)} bits"


def bits_needed(size: float, steps: int, room: float) -> int:
    """Smallest significand length ``p`` with ``2 · steps · 2^-p · size < room`` (and one bit to spare)."""
    return max(2, math.ceil(math.log2(2 * steps * max(size, 1e-300) / room)) + 1)


def room_left(found: Verification, eps1: float, eps2: float) -> float:
    leak = math.log(eps1) - (math.log(found.leakage) if found.leakage > 0 else -math.inf)
    return min(leak, math.log1p(eps2) - math.log1p(found.ratio_error))


def size_of(X: torch.Tensor, W_Q: torch.Tensor, W_K: torch.Tensor) -> float:
    queries, keys = apply(X.abs(), W_Q.abs()), apply(X.abs(), W_K.abs())
    size = float((queries @ keys.amax(0)).max())
    if not math.isfinite(size):
        raise InvalidInput(
            "The products of X, W_Q and W_K go beyond the largest float64, so no number of bits can be stated that "
            "carries this head; make X or the weights smaller."
        )
    return size


def steps_of(W: torch.Tensor) -> int:
    """Roundings on the longest path: m products, storing X and the weights, 2d if the weights mix coordinates."""
    d, m = W.shape
    return m + 6 + (0 if selects(W) else 2 * d)


def _gamma(steps: int, unit: float) -> float:
    return steps * unit / (1 - steps * unit) if steps * unit < 0.5 else math.inf
