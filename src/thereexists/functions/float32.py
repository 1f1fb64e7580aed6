"""Whether a function computes in float32 (or less), told from its answers: certificates assume float64."""

from __future__ import annotations

import numpy as np

_DISTINCT = 32  # answers of one binade, from which its rounding is read


def in_float32(Y: np.ndarray) -> bool:
    """Whether answers are rounded as float32 rounds: 24 bits of every answer, whatever its size.

    Answers may all be float32 numbers because they are multiples of one power of two, as whole numbers are. But these
    have one step whatever their size, and float32 has steps that double from one binade [2^e, 2^{e+1}) to the next. So
    two binades must have been rounded to their own 24th bit: some answer of each needs that bit, and none of
    ``_DISTINCT`` different ones or more needs a finer bit. Of multiples of 2^k those of the upper binade would all have
    to lack a bit that those of the lower one have.
    """
    values = np.unique(np.abs(Y[Y != 0]))
    if values.max(initial=0.0) > 1e38 or not (values.astype(np.float32).astype(np.float64) == values).all():
        return False
    mantissa, binade = np.frexp(values)
    needs_all = mantissa * 2.0**24 % 2 == 1
    full = [
        needs_all[binade == e].any()
        for e, count in zip(*np.unique(binade, return_counts=True), strict=True)
        if count >= _DISTINCT
    ]
    return sum(full) >= 2
