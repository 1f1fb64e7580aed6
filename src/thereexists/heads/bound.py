"""How large a hidden size the theorem asks for, with every constant derived.

Paper C, section on self-attention matrices: for ``A`` with at most ``k`` non-zeros per row and column within a factor
``gamma``, hidden size ``O(k^2 b^2 log L / log^2(1+eps2))`` suffices, ``b = log gamma + log((1+eps2)/eps1)``. The
constants here are not the paper's; they follow from the argument below (spelled out in docs/heads.md).

``B_ij = log(A_ij / min_i) + log((1+eps2)/eps1)`` on the support, 0 off it, so ``0 <= B <= b``. If every entry of
``X1 X2^T`` is within ``t = log(1+eps2)/2`` of ``B``, both tolerances hold: ratios move by at most ``e^{2t} = 1+eps2``,
and a zero against a non-zero is at most ``e^{2t} eps1/(1+eps2) = eps1``.

``X1 = B G``, ``X2 = G``, ``G`` random signs over ``sqrt(m)``: rows of ``G`` have norm exactly 1, so the error of entry
``(i,j)`` is ``sum_{l != j} B_il <G_l, G_j>``. Given ``G_j``, it is a sum of independent signs with squared weights
``sum_l B_il^2 / m <= k b^2 / m`` in total, and Hoeffding's lemma bounds ``P(|error| >= t)`` by
``2 exp(-t^2 m / (2 k b^2))``. A union over the ``L^2`` entries leaves a failure probability below 1/2 as soon as

    m >= 2 k b^2 log(4 L^2) / t^2 = 16 k b^2 log(2L) / log^2(1+eps2),        d = 2m.

A smaller ``m`` would not be covered, so no rounding may make it smaller: it is computed from the exact values of the
arguments to 250 digits, and rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import whole
from thereexists.heads.matrix import AttentionMatrix
from thereexists.heads.verify import check_tolerances

LONGEST = 1 << 62  # more tokens than any machine numbers
_DIGITS = Context(prec=250)


@dataclass(frozen=True)
class Bounds:
    """Hidden sizes at which each method is known to work, before any search. ``None``: no bound is claimed.

        te.heads.bounds(1024, k=2, gamma=2.0, eps1=1e-3, eps2=1e-2).moments_hidden_size

    Args:
        length: how many tokens.
        k: non-zeros in a row or column at most.
        gamma: how many times larger than another one of its row a non-zero may be.
        eps1: the leakage that is allowed.
        eps2: the error of a ratio that is allowed.
        log_height: of the logits.
        theorem_hidden_size: that of the paper.
        trivial_hidden_size: two for each token.
        corrected_hidden_size: of the method.
        moments_hidden_size: of the method.
    """

    length: int
    k: int
    gamma: float
    eps1: float
    eps2: float
    log_height: float
    theorem_hidden_size: int
    trivial_hidden_size: int
    corrected_hidden_size: int
    moments_hidden_size: int


def bounds(length: int, k: int, gamma: float, eps1: float, eps2: float) -> Bounds:
    """The theorem's hidden size and what each method needs for the same target class.

        te.heads.bounds(1024, k=2, gamma=2.0, eps1=1e-3, eps2=1e-2)

    Args:
        length: how many tokens.
        k: non-zeros in a row or column at most.
        gamma: how many times larger than another one a non-zero of the same row may be.
        eps1: the leakage that is allowed.
        eps2: the relative error of a ratio that is allowed.

    Returns:
        The bounds, one for every method.

    Raises:
        InvalidInput: a number is outside its range.
    """
    check_class(length, k, gamma, eps1, eps2)
    return Bounds(
        length,
        k,
        gamma,
        eps1,
        eps2,
        log_height(gamma, eps1, eps2),
        theorem_hidden_size(length, k, gamma, eps1, eps2),
        2 * length,
        corrected_hidden_size(length, k),
        4 * k,
    )


def bounds_for(target: AttentionMatrix, eps1: float, eps2: float, k: int | None = None) -> Bounds:
    """The bounds for a given target; with ``k``, the target must really have at most ``k`` per row and column.

        te.heads.bounds_for(te.heads.random_matrix(16, 2), eps1=1e-3, eps2=1e-2)

    Args:
        target: the matrix.
        eps1: the leakage that is allowed.
        eps2: the relative error of a ratio that is allowed.
        k: what the target is claimed to have, if it is.

    Returns:
        The bounds, one for every method.

    Raises:
        InvalidInput: the target has more than ``k``, or a number is outside its range.
    """
    if k is not None:
        check_sparsity(target, k)
    return bounds(target.length, k or target.k, target.gamma, eps1, eps2)


def check_sparsity(target: AttentionMatrix, k: int) -> None:
    """Refuse a target outside the class of the theorem, naming the offending row or column."""
    rows, columns = np.diff(target.indptr), np.bincount(target.indices, minlength=target.length)
    for counts, name in ((rows, "Row"), (columns, "Column")):
        if counts.max() > k:
            raise InvalidInput(
                f"{name} {int(counts.argmax())} of the target has {int(counts.max())} non-zeros, more than k = {k}. "
                f"The bound holds for at most k per row and column; ask for k = {target.k}, or thin the target."
            )


def log_height(gamma: float, eps1: float, eps2: float) -> float:
    """``b``: the largest entry of the log-matrix ``B``."""
    return math.log(gamma) + math.log1p(eps2) - math.log(eps1)


def theorem_hidden_size(length: int, k: int, gamma: float, eps1: float, eps2: float) -> int:
    """``2m`` for which one draw of the projection succeeds with probability above 1/2 (module docstring).

        te.heads.theorem_hidden_size(1024, k=2, gamma=2.0, eps1=1e-3, eps2=1e-2)

    Args:
        length: how many tokens.
        k: non-zeros in a row or column at most.
        gamma: how many times larger than another one a non-zero of the same row may be.
        eps1: the leakage that is allowed.
        eps2: the relative error of a ratio that is allowed.

    Returns:
        The hidden size.

    Raises:
        InvalidInput: a number is outside its range.
    """
    check_class(length, k, gamma, eps1, eps2)
    with localcontext(_DIGITS):
        ratio, leakage, spread = (Decimal(float(x)) for x in (eps2, eps1, gamma))
        log_ratio = (1 + ratio).ln()
        b = spread.ln() + log_ratio - leakage.ln()  # three terms of one sign
        m = 16 * k * b * b * Decimal(2 * length).ln() / (log_ratio * log_ratio)
        # Each of the dozen operations rounds by a relative 10^-249 at most. 1 + eps2 is exact for eps2 < 1, and its
        # rounding moves the logarithm of a larger one, at least log 2, by less than twice that. Together: far less
        # than 10^-240.
        return 2 * int((m * (1 + Decimal("1e-240"))).to_integral_value(ROUND_CEILING))


def corrected_hidden_size(length: int, k: int) -> int:
    """``2m`` for which the corrected projection works with probability above 1/2 at a suitable height ``T``.

    Let every ``|<G_l, G_j>| <= c``, ``l != j``: by Hoeffding and a union over ``L^2/2`` pairs that has probability
    above 1/2 once ``m >= 2 log(2 L^2) / c^2``. With ``(2k-1) c < 1`` the Gram matrix of a support is ``I + E``,
    ``||E||_inf <= (k-1)c``, so the coefficients of the all-ones logits satisfy ``||c||_inf <= 1/(1-(k-1)c)`` and an
    off-support logit is at most ``k c / (1-(k-1)c) < 1``: raising ``T`` separates it as far as wanted.
    """
    if length < 1 or k < 1:
        raise InvalidInput(f"length and k must be at least 1. Got length {length}, k {k}.")
    coherence = 1 / (2 * k - 1) * (1 - 1e-9) if k > 1 else 1 - 1e-9
    return 2 * math.ceil(2 * math.log(2 * length * length) / coherence**2)


def check_class(length: int, k: int, gamma: float, eps1: float, eps2: float) -> None:
    check_tolerances(eps1, eps2)
    whole(length, "The length")
    whole(k, "'k'")
    if length < 1 or not 1 <= k <= length:
        raise InvalidInput(f"k must lie between 1 and the length. Got length {length}, k {k}.")
    if length > LONGEST:
        raise InvalidInput(f"The length must be at most {LONGEST:,}. Got a number of {len(str(length))} digits.")
    if not (math.isfinite(gamma) and gamma >= 1):
        raise InvalidInput(f"gamma is a ratio max/min and must be finite and >= 1. Got {gamma}.")
