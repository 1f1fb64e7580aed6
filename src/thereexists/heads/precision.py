"""Which dtype carries a head: first from the rounding bound, then by running the verification in that dtype.

The verifier's bound is ``rho = γ_n M`` with ``M = max_i (|X||W_Q|)_i · max_j (|W_K|^T|X|^T)_j`` (``rounding.py``).
Storing ``X`` and the weights in a dtype of unit roundoff ``u`` adds at most four roundings per product. A dtype is
*predicted* to do if twice that ``rho`` fits between what float64 measures and what is tolerated, and *needed* means:
the smallest one, predicted or asked for, whose own run is verified.

A number of *bits* is a claim about numbers of that significand, rounded to nearest, whose exponents never run out: in
every order of summation the tolerances are kept. ``bits_that_carry`` is the one rule for it, for whoever states it and
whoever checks it: the head holds, as float64 or balls measure it. What was measured is itself rounded, so four times
the measurement's own bound (two for a difference of logits, two for comparing it) are taken off what is left. A head
that does not hold, or has nothing left, has no such number: its bits are unknown.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from thereexists.core.errors import InvalidInput
from thereexists.heads.matrix import AttentionMatrix
from thereexists.heads.rounding import apply, selects
from thereexists.heads.verify import DTYPES, Arithmetic, Verification, verify

UNKNOWN = "an unknown number of bits, if any"
_LEAST = torch.finfo(torch.float64).smallest_normal  # a smaller leakage may have been rounded to zero
_LOG_ERROR = 1e-12  # of exp and log: relative, and absolute for logarithms up to 745


def dtype_needed(
    X: torch.Tensor,
    W_Q: torch.Tensor,
    W_K: torch.Tensor,
    target: AttentionMatrix,
    found: Verification,
    eps1: float,
    eps2: float,
) -> str:
    """The smallest of bfloat16, float16, float32, float64 whose run is verified, as the docstring above says."""
    # Fewer bits measure their own rounding; the room that is left is what float64 measures.
    exact, in_float64 = found, Arithmetic("float64", found.device)
    if found.dtype != "float64":
        exact = verify(X, W_Q, W_K, target, eps1=eps1, eps2=eps2, arithmetic=in_float64)
    runs = {run.dtype: run for run in (found, exact)}
    room, size = room_left(exact, eps1, eps2), size_of(X, W_Q, W_K)
    for name, kind in DTYPES.items():
        if name in runs:
            if runs[name].verdict.holds:
                return name
            continue
        info = torch.finfo(kind)
        if float(X.abs().max()) > info.max or 2 * _gamma(steps_of(W_Q, W_K), info.eps / 2) * size >= room:
            continue
        if verify(X, W_Q, W_K, target, eps1=eps1, eps2=eps2, arithmetic=Arithmetic(name)).verdict.holds:
            return name
    return UNKNOWN  # float64 does not show that the head holds, so nothing bounds the bits


def bits_that_carry(
    X: torch.Tensor, W_Q: torch.Tensor, W_K: torch.Tensor, found: Verification, eps1: float, eps2: float
) -> int | None:
    """A number of bits that is enough, from what float64 or balls found; None where nothing shows one."""
    room = room_left(found, eps1, eps2)
    if found.verdict.holds is not True or found.dtype in DTYPES.keys() - {"float64"} or not room > 0:
        return None
    return bits_needed(size_of(X, W_Q, W_K), steps_of(W_Q, W_K), room)


def bits_needed(size: float, steps: int, room: float) -> int:
    """Smallest significand length ``p`` with ``2 γ_steps size <= room`` at ``u = 2^-p``, and one bit to spare.

    ``γ = s u / (1 - s u) <= G`` is ``u <= G / (s (1 + G))``; with ``G = room / (2 size)`` it is
    ``2^p >= s (1 + 2 size / room)``.
    """
    ratio = 1 + math.log2(max(size, 1e-300)) - math.log2(room)  # on the log scale: the quotient may overflow
    return max(2, math.ceil(math.log2(steps) + float(np.logaddexp2(0.0, ratio))) + 1)


def room_left(found: Verification, eps1: float, eps2: float) -> float:
    """How far every logit difference may move, on the log scale, from what was measured, its own rounding taken off."""
    if not math.isfinite(found.leakage + found.ratio_error + found.rounding):
        return -math.inf
    leak = math.log(eps1) - math.log(max(found.leakage, _LEAST)) - _LOG_ERROR
    ratio = math.log1p(eps2) * (1 - _LOG_ERROR) - math.log1p(found.ratio_error)
    if found.dtype in DTYPES:  # logarithms of the target, up to 709, were subtracted in float64; balls count that
        ratio -= _LOG_ERROR
    return min(leak, ratio) - 4 * found.rounding


def size_of(X: torch.Tensor, W_Q: torch.Tensor, W_K: torch.Tensor) -> float:
    queries, keys = apply(X.abs(), W_Q.abs()), apply(X.abs(), W_K.abs())
    size = float((queries @ keys.amax(0)).max())
    if not math.isfinite(size):
        raise InvalidInput(
            "The products of X, W_Q and W_K go beyond the largest float64, so no number of bits can be stated that "
            "carries this head; make X or the weights smaller."
        )
    return size


def steps_of(W_Q: torch.Tensor, W_K: torch.Tensor) -> int:
    """Roundings on the longest path: m products, storing X and the weights, 2d if either of them mixes coordinates."""
    d, m = W_Q.shape
    return m + 6 + (0 if selects(W_Q) and selects(W_K) else 2 * d)


def _gamma(steps: int, unit: float) -> float:
    return steps * unit / (1 - steps * unit) if steps * unit < 0.5 else math.inf
