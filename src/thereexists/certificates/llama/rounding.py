"""What the run of a Llama block in a dtype may do to a number, operation by operation, on any conforming machine.

The order is that of ``transformers``: RMSNorm in float32 and a cast; a linear layer adds up in float32 and rounds once;
rotary tables in float32 and a cast; softmax in float32; SiLU, product and residual sum each round once. ``ASSUMPTIONS``
is all that is assumed of a machine. Kernels that round less often, or in another order, are within it.

*Norm.* A row holds the constant C, a power of two, and d is a power of four. Let D bound the other rows' squares. The
mean of squares is C²/d times 1 + θ, θ at most D/C² and the rounding of d squares and sums, so what a row is multiplied
by is √d/C, a power of two, times 1 + ρ (``norm`` adds up ρ). A row of bfloat16 times √d/C is a number of bfloat16, and
its neighbours are 2⁻⁸ of it away: with ρ < 2⁻¹⁰ the cast gives that number itself, and nothing is lost. In float32 the
ρ stays, and is carried along.
"""

from __future__ import annotations

from dataclasses import dataclass

from thereexists.core.dtypes import SIGNIFICAND
from thereexists.core.errors import NotProved
from thereexists.core.rounded_figures import rounded_up

STEP = 2.0**-23  # of an operation in float32, rounded either way
RSQRT = 2.0**-21
FREQUENCY = 2.0**-22  # of an inverse frequency, relative
TABLE = 2.0**-22  # of a cosine or sine in float32
LOGIT_ROUNDINGS = 3.0  # in the dtype: two of scaled queries and keys, one of the product
VANISHES = 128.0  # float32 has no number below exp(−104)
WEIGHT = 2.0**-8  # by which the weight of the only key may differ from 1, as where a kernel folds scale and maximum
SATURATED = 128.0  # silu(x) is x from here on, and 0 below minus this
SLACK = 1.0 + 2.0**-12  # for the float64 in which all this is added up

ASSUMPTIONS = (
    "an operation on numbers of the dtype is within half a unit in the last place; linear layers and attention add up "
    "in float32 or wider, every step within 2^-23, in any order, zero terms adding nothing; below 2^-100 a number may "
    "be flushed to 0",
    "RMSNorm is computed in float32, its reciprocal root within 2^-21, and cast to the dtype to the nearest",
    "the rotary table is float32 whatever the dtype (as from_pretrained leaves it): inverse frequencies within 2^-22, "
    "the same for queries and keys, angles rounded once, cosine and sine within 2^-22, then cast to the dtype",
    "a logit is within three roundings of the dtype; softmax gives 0 to a key that is masked or 128 below the largest, "
    "and a weight within 2^-8 of 1 to a key that is alone",
    "silu(x) is x for x >= 128 and 0 for x <= -128",
    "where a batch is filled up on the left, what stands at a filled place is finite (as it is where masked logits are "
    "lowered by a finite number; a softmax over masked keys only that gives no number would reach other places)",
)


@dataclass(frozen=True)
class Rounding:
    """A dtype: ``u`` is half a unit in the last place, relative."""

    name: str

    @property
    def u(self) -> float:
        return 2.0 ** -SIGNIFICAND[self.name]

    def norm(self, d: int, C: float, squares: float, eps: float) -> float:
        """The relative slip of a normalised row: ρ in float32, and 0 where the cast removes it."""
        rho = (squares + eps * d) / (2 * C * C) + (d + 4) * STEP + RSQRT + STEP
        if self.name == "float32":
            return rho * SLACK
        if rho * SLACK < 2.0**-10:
            return 0.0
        raise NotProved(f"a norm is off by {rounded_up(rho, 3)} in {self.name}; the cast removes less than 2^-10 only.")


def sums(terms: int) -> float:
    """Relative to the sum of sizes: so many terms that are not 0, multiplied and added up in float32."""
    return (terms + 2) * STEP


DTYPES = ("float32", "bfloat16")
REFUSED = {"float16": "its logits end at 65,504, and the lead of the right position takes larger ones"}
