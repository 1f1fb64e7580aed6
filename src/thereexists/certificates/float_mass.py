"""How large can a compact network's output be in floating point, on any input of the box, on ramps too?

In exact arithmetic the mass lemma (``mass.py``) says: the units a_C that write outputs sum to at most 1. On a machine
with unit roundoff u, the network being of the kinds of ``float_run.py``:

1. A literal r = ReLU(w x + b) reads one number x, an input or a sum, with a power of two w: w x is exact, and the sum
   is rounded once, r̃ = (1 + δ) r with |δ| ≤ u. Both literals of a pair read the same x, so r̃⁺ + r̃⁻ ≥ 1 − u. Put e = 2u.
2. With q^± = 1 − min(1, r^∓), q⁺ + q⁻ ≤ 1 + e. Divide all q by 1 + e: the lemma's events again, so the numbers
   a_C = ReLU(1 − Σ r), of the literals that the machine has, sum to at most (1 + e)^pairs.
3. The machine's own ã_C comes from a sum of m numbers: for Σ r = R it is at most 1 − R + γ_m (1 + R), which is below 0
   if R > 1 + 3γ_m. So ã_C ≤ a_C + 3γ_m.
4. An output adds a constant and w_C ã_C in some order: γ_M·(|constant| + Σ |w_C| ã_C) of rounding, M the number of
   terms (and some for the layers between them, and for the rounding of w_C itself).

Where open units are not known to contradict each other, Σ |w_C|·1 is all that is known of the sum, as over the reals.
"""

from __future__ import annotations

import math

from thereexists.certificates.float_run import FloatRun
from thereexists.certificates.mass import Mass
from thereexists.core.dtypes import SIGNIFICAND

_UP = 1 + 2.0**-20


def mass_in_floats(run: FloatRun, mass: Mass | None, name: str) -> list[float]:
    """An upper bound of |output_i| of the run in a dtype; infinity where nothing is known."""
    if mass is None:
        return [math.inf] * len(run.out)
    u = 2.0 ** -SIGNIFICAND[name]
    e, small = 2 * u, 3 * _gamma(mass.literals + 4, u)
    terms = _gamma(mass.units + 2 * len(run.weights.b_2) + 8, u)  # the rounding of w_C to the dtype included
    if not (small <= 2.0**-4 and terms <= 2.0**-4):
        return [math.inf] * len(run.out)
    beyond = math.expm1(mass.pairs * math.log1p(e))  # of Σ a_C, more than 1
    bounds = []
    for bound, constant, largest, total in zip(mass.bounds, mass.constant, mass.largest, mass.total, strict=True):
        more = largest * beyond + total * small if mass.disjoint else total * small
        sizes = constant + (largest * (1 + beyond) if mass.disjoint else total) + total * small
        bounds.append((bound + more + terms * sizes) * _UP)
    return bounds


def _gamma(m: int, u: float) -> float:
    return m * u / (1 - m * u) * _UP if m * u < 0.5 else math.inf
