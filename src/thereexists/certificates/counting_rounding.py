"""How far the right position leads when a count is looked up, in a dtype's own rounding and for any order of sums.

Position j has averaged over the positions 0 … j: c ones among them (a letter that was read c times), and one flag. So
it holds μ = (c/(j+1))(1 + θ) and φ = (1/(j+1))(1 + θ'), and asks with 2sμ and −sφ. Position k answers with k and k²:

    logit(k) = s(2μk − φk²) = sφ(2κk − k²), κ = μ/φ;   logit(c) − logit(k) = sφ(D² − 2(κ − c)(k − c)), D = |k − c|

*The means.* With u = 2^-p and γ_k = ku/(1 − ku) (Higham, Accuracy and Stability, Lemma 3.3: k factors 1 ± u make
1 + θ, |θ| ≤ γ_k). All logits are 0, so all weights before division are exp(0) = 1, and their sum j + 1 ≤ n + 1 ≤ 2^p
is exact. A kernel divides once, before or after it adds up; a division, or a reciprocal and a product, is off by 4u at
most; c ones, or c equal weights, are added in at most n roundings, in any order; two more are for conversions. So
|θ| ≤ γ_{n+6}, and |θ'| ≤ γ_6, for of the flag only one term is not 0. Hence |κ − c| ≤ δ = n(γ_{n+6} + γ_6)/(1 − γ_6).

*The logits.* s is a power of two, k and k² are numbers of the dtype: query and key are exact. The two products, their
sum, and perhaps a factor by which a kernel multiplies every logit (log2 e, for powers of 2) round: |float − logit(k)| ≤
w(T + 2|logit(k)|), T = sφ(2κk + k²), w = u(1+u)² (in a wider format and rounded at the end it is less). For k ≤ n and
κ ≤ n + δ this is at most w·sφ(5n² + 6nδ): where 2κ ≥ k the sum is 6κk − k², which grows with k; else 3k² − 2κk ≤ 3n².

*The lead*, with δ ≤ 1/2, so that D² − 2δD ≥ 1 − 2δ for all D ≥ 1, and φ ≥ (1 − γ_6)/(n + 1):

    lead ≥ s (1 − γ_6)/(n + 1) · (1 − 2δ − 2w(5n² + 6nδ))

It holds for all j ≤ n, all counts c ≤ j and all k ≤ j, k ≠ c. The bracket is positive to n = 1,181 in float32 and to
25 million in float64; all of this is computed in rational numbers. ∎
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import torch

from thereexists.certificates.automaton_exact import VANISHES
from thereexists.core.dtypes import SIGNIFICAND, as_dtype
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_down, rounded_up


def share_left(name: str, n: int) -> Fraction:
    """What rounding leaves of the lead s/(n + 1) of exact arithmetic; 0 or less where nothing is proved."""
    u = Fraction(1, 2 ** SIGNIFICAND[name])
    if n + 1 > 2 ** SIGNIFICAND[name] or (n + 6) * u >= 1:
        return Fraction(0)
    mean, flag = (k * u / (1 - k * u) for k in (n + 6, 6))
    delta = n * (mean + flag) / (1 - flag)
    if 2 * delta > 1 or flag >= 1:
        return Fraction(0)
    return (1 - flag) * (1 - 2 * delta - 2 * u * (1 + u) ** 2 * (5 * n * n + 6 * n * delta))


def least_lead(name: str, n: int, scale: float) -> float:
    """The lead that every look-up has at least, in a dtype."""
    return float(Fraction(scale) * share_left(name, n) / (n + 1))


@dataclass(frozen=True)
class Lookup:
    """Counts up to ``n`` looked up with a ``scale``: right in a dtype if the lead makes all other weights vanish."""

    where: str
    n: int
    scale: float

    def holds(self, name: str) -> str | None:
        """Why it fails in a dtype, or None."""
        limits = torch.finfo(as_dtype(name))
        if share_left(name, self.n) <= 0:
            return f"{self.where}: counts up to {self.n:,} cannot be told apart in {name} in every order of sums"
        # The largest products are 2sμk ≤ 2s(1+θ)n; differences of two logits, perhaps times log2 e, stay below 16sn.
        if 16 * self.scale * self.n > limits.max or limits.smallest_normal * 2 * (self.n + 1) > 1:
            return (
                f"{self.where}: logits up to {rounded_up(16 * self.scale * self.n, 6)} are beyond the range of {name}"
            )
        lead = least_lead(name, self.n, self.scale)
        if not lead >= VANISHES:
            least = f"{rounded_down(lead, 6)} only in {name}, not by {in_full(VANISHES)}"
            return f"{self.where}: the right count leads by {least}"
        return None
