"""The number of an interval with the fewest bits: what stands for a token that is missing.

*Claim.* The multiple of the largest power of two that [low, high] holds (0, if it holds 0) is a number of every dtype
that has any number there.

*Proof.* Let 0 < low, and y = (2k + 1)·2^f be that multiple, f being the largest. No multiple of 2^(f+1) lies in the
interval, so all of it is between k·2^(f+1) and (k + 1)·2^(f+1). Let x = m·2^e be the dtype's number there, m of at most
p bits. If e ≥ f, x is a multiple of 2^f, and there is one only: y. If e < f, then m > k·2^(f+1−e) ≥ 4k, so 2k + 1 has
no more bits than m, and y is a multiple of 2^e, as x is, in the same range of exponents. ∎

Whole numbers have multiples of 1: if the interval holds one, the simplest number is whole.
"""

from __future__ import annotations

import math


def simplest(low: float, high: float) -> float:
    if low <= 0 <= high:
        return 0.0
    if high < 0:
        return -simplest(-high, -low)
    power = math.frexp(high)[1] - 1  # 2^power ≤ high
    while True:  # at 2^power = the unit in the last place of low, at the latest, low is a multiple
        steps = max(1, math.ceil(math.ldexp(low, -power)))
        if steps <= math.ldexp(high, -power):
            return math.ldexp(steps, power)
        power -= 1
