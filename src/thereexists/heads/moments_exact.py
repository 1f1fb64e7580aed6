"""Moments beyond float64: the circle of ``moments.py`` in multiprecision, through ``python-flint``.

The head is returned as words: float64 arrays whose exact sum is ``X``. Two words carry 106 bits, three 159, and so
on. It is verified on that exact sum with ball arithmetic (``verify_exact.py``).
"""

from __future__ import annotations

import math

import numpy as np
import torch

from thereexists.core.errors import CannotBuild
from thereexists.heads.fit import FitOptions, Proposal
from thereexists.heads.matrix import AttentionMatrix
from thereexists.heads.moments import MARGIN, _smallest_beside_zero
from thereexists.heads.places import blocks_of_rows, clustered_order, spread_order
from thereexists.heads.precision import UNKNOWN, bits_needed, bits_that_carry
from thereexists.heads.verify_exact import verify_exact

LONGEST = 2048


def extended_moments(target: AttentionMatrix, options: FitOptions) -> Proposal:
    """The moment head with as many words as its dynamic range asks for."""
    if target.length > LONGEST:
        raise CannotBuild(
            f"Moments need more than float64 here; multiprecision stops at L = {LONGEST} (got {target.length}). "
            "Use method 'auto', 'convex' or 'corrected'."
        )
    try:
        import flint
    except ImportError:
        raise CannotBuild("Moments need more than float64 here; install python-flint, or use another method.") from None
    layouts = [np.arange(target.length), clustered_order(target), spread_order(target, options.seed)]
    place, left, right = min(
        ((p, *blocks_of_rows(target, p)) for p in layouts),
        key=lambda layout: (layout[1].shape[1], _cost(target, *layout)),
    )
    degree = left.shape[1]
    smallest = _smallest_beside_zero(target, place, left, right, 2 * math.pi / target.length)
    guess = 60 + int(2 * np.log2(1 / smallest.min())) + 4 * degree
    before = flint.ctx.prec
    try:
        flint.ctx.prec = 64 + guess
        try:
            queries, keys, size = _rows(target, place, left, right, smallest, options.eps1)
        except ZeroDivisionError:  # at L places, waves of frequency n and L − n are the same
            raise CannotBuild(
                f"A row of this target has more keys than moments of degree {degree} tell apart at {target.length} "
                "places. Use method 'auto', 'convex' or 'corrected'."
            ) from None
        bits = bits_needed(size, 2 * degree + 6, math.log1p(options.eps2) / 8)
        count = math.ceil((bits + 4) / 53)
        words = torch.stack(
            [torch.cat([q, k], dim=1) for q, k in zip(_words(queries, count), _words(keys, count), strict=True)]
        )
    finally:
        flint.ctx.prec = before
    m = 2 * degree
    one, nil = torch.eye(m, dtype=torch.float64), torch.zeros(m, m, dtype=torch.float64)
    W_Q, W_K = torch.cat([one, nil]), torch.cat([nil, one])
    checked = verify_exact(words, W_Q, W_K, target, eps1=options.eps1, eps2=options.eps2, bits=53 * count + 64)
    enough = bits_that_carry(words[0], W_Q, W_K, checked, options.eps1, options.eps2)
    settings = {
        "scales": 1,
        "degree": degree,
        "dynamic_range": size,
        "words": count,
        # The bits that were aimed at, or more where the rounding of the check leaves less room.
        "dtype_needed": UNKNOWN if enough is None else f"{max(bits, enough)} bits",
    }
    return Proposal("moments", words[0].clone(), W_Q, W_K, options.seed, settings, checked, words)


def _cost(target: AttentionMatrix, place: np.ndarray, left: np.ndarray, right: np.ndarray) -> float:
    return -float(_smallest_beside_zero(target, place, left, right, 2 * math.pi / target.length).min())


def _rows(
    target: AttentionMatrix, place: np.ndarray, left: np.ndarray, right: np.ndarray, smallest: np.ndarray, eps1: float
):
    """Queries and keys as lists of lists of balls; and the largest ``||q||_1``."""
    from flint import acb, arb, arb_mat, fmpq

    L, degree = target.length, left.shape[1]
    turn = [(arb.cos_pi_fmpq(fmpq(2 * p, L)), arb.sin_pi_fmpq(fmpq(2 * p, L))) for p in range(L)]
    keys = [
        [turn[n * int(p) % L][0] for n in range(1, degree + 1)]
        + [turn[n * int(p) % L][1] for n in range(1, degree + 1)]
        for p in place
    ]
    queries, size = [], 0.0
    for i in range(L):
        F = [acb(0)] * (2 * degree + 1)
        F[degree] = acb(1)
        for a, b in zip(left[i].tolist(), right[i].tolist(), strict=True):
            if a < 0:
                continue
            up = acb(-arb.cos_pi_fmpq(fmpq(a + b, L)) / 2, arb.sin_pi_fmpq(fmpq(a + b, L)) / 2)
            centre = acb(arb.cos_pi_fmpq(fmpq(b - a, L)))
            down = up.conjugate()
            F = [
                centre * F[n] + (up * F[n - 1] if n > 0 else 0) + (down * F[n + 1] if n < 2 * degree else 0)
                for n in range(2 * degree + 1)
            ]
        span = slice(target.indptr[i], target.indptr[i + 1])
        own = [keys[j] for j in target.indices[span].tolist()]
        logs = target.log_values[span]
        values = (logs - logs.mean()).tolist()
        K = arb_mat(own)
        coefficients = (K * K.transpose()).solve(arb_mat([[arb(v)] for v in values]))
        r = [entry for row in (K.transpose() * coefficients).tolist() for entry in row]
        headroom = -math.log(eps1) + MARGIN + float(sum((abs(x) for x in r), arb(0)).mid()) - min(values)
        height = arb(headroom / float(smallest[i]) * (1 + 1e-6))
        bump = [-2 * height * F[degree + n].real for n in range(1, degree + 1)]
        bump += [2 * height * F[degree + n].imag for n in range(1, degree + 1)]
        q = [x + y for x, y in zip(r, bump, strict=True)]
        size = max(size, sum(abs(float(x.mid())) for x in q))
        queries.append(q)
    return queries, keys, size


def _words(balls: list, count: int) -> list[torch.Tensor]:
    """Split the midpoints into ``count`` float64 arrays, largest first."""
    from flint import arb

    out = np.zeros((count, len(balls), len(balls[0])))
    for i, row in enumerate(balls):
        for j, x in enumerate(row):
            rest = x.mid()
            for w in range(count):
                out[w, i, j] = float(rest)
                rest = (rest - arb(out[w, i, j])).mid()
    return list(torch.from_numpy(out))
