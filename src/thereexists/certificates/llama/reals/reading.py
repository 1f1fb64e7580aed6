"""What a linear layer makes of rows behind RMSNorm, in a dtype; and how far its weights are from those that are wanted.

*Norm.* Row 0 holds C, a power of two, d is a power of four, and the squares of all other rows together are below
C²/2^26. Added to C² in float32, in any order, they change nothing: a sum with C² in it is C² each time, for what is
added is below half a unit in the last place, and sums are rounded to the nearest. So the mean is C²/d, and a row is
multiplied by √d/C up to two slips: of epsilon and the reciprocal root, the ``common`` one of all rows, and of the
products, each its own. In bfloat16 the cast removes both, as in ``certificates/llama/rounding.py``: a row is a number
of bfloat16, times a power of two.

*Linear layer.* With weights W, here times √d (row 0) or √d/C (others), so that row 0 stands for 1: let S = Σ|W_r| M_r,
M_r the most that a row can be, and V ≤ S bound |Σ W_r row_r|. What is computed differs from Σ W_r row_r by the common
slip of V, by S times (a row's own slip + the rounding of products and sums in float32), by what is flushed to 0, and by
one rounding to the dtype.

*Weights.* Wanted is κ·form. Σ W_r row_r differs from that by at most Σ|W_r − κ c_r| M_r. A weight on a row that is not
in the form is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.certificates.llama.reals.network import CONSTANT, Form
from thereexists.certificates.llama.rounding import RSQRT, SLACK, STEP, Rounding, sums
from thereexists.core.errors import NotProved
from thereexists.core.rounded_figures import rounded_down, rounded_up
from thereexists.functions.target import Array

FLUSHED = 2.0**-100
HIGHEST = 2.0**100  # that any number on the way may be
_FLOAT64 = 2.0**-48  # of exact numbers and scales that are read as float64
LEAST_SHARE = 2.0**-26  # of C², that the other rows' squares stay below


@dataclass(frozen=True)
class Read:
    """Of every row of a matrix at every token, (n, k): the most it can be, its error in the run, how far it is off."""

    size: Array
    error: Array
    away: Array

    @property
    def highest(self) -> Array:
        return self.size + self.error


@dataclass(frozen=True)
class Reader:
    """``scale`` (d,): what a row's weight counts, √d or √d/C. ``most`` (n, d): what rows can be, filled on the way."""

    rounding: Rounding
    scale: Array
    common: float
    own: float
    most: Array

    @classmethod
    def of(cls, rounding: Rounding, n: int, d: int, C: float, eps: float) -> Reader:
        scale = np.full(d, np.sqrt(d) / C)
        scale[CONSTANT] = np.sqrt(d)
        most = np.zeros((n, d))
        most[:, CONSTANT] = 1.0
        return cls(rounding, scale, *_slips(rounding, d, C, eps), most)

    def read(self, W: Array, forms: list[Form], factor: Array, reach: Array) -> Read:
        """Rows of a matrix (k, d), wanted to be ``factor`` (k,) times these forms, which are up to ``reach`` (n, k)."""
        wanted, counted = self.wanted(forms, W.shape[1]) * factor[:, None], W * self.scale
        if (strange := (counted != 0) & (wanted == 0)).any():
            raise NotProved(f"row {int(strange.any(axis=0).argmax())} is read and must not be.")
        away = finite(self.most @ (np.abs(counted - wanted) + _FLOAT64 * np.abs(wanted)).T * SLACK)
        return Read(*self.computed(W, self.most, reach * np.abs(factor) * SLACK + away), away)

    def computed(self, W: Array, most: Array, value: Array | float = np.inf) -> tuple[Array, Array]:
        """The most that rows of a matrix (k, d) give for rows up to ``most`` (n, d), and how far the run is off.

        ``value``: what else is known of the most.
        """
        size = finite(most @ np.abs(W * self.scale).T * SLACK)
        terms = (W != 0).sum(axis=1)
        rounded = np.array([sums(int(k)) for k in terms])
        error = size * (1 + self.common) * (self.own + rounded * (1 + self.own))
        size = np.minimum(size, value)
        error = error + self.common * size + FLUSHED * (1 + terms + np.abs(W).sum(axis=1))
        return size, finite((error + self.rounding.u * (size + error)) * SLACK)

    def wanted(self, forms: list[Form], d: int) -> Array:
        found = np.zeros((len(forms), d))
        for k, form in enumerate(forms):
            found[k, list(form)] = [float(c) for c in form.values()]
        return found

    def squares(self) -> float:
        """Of all rows but the constant, at the token where that is most."""
        return float((np.delete(self.most, CONSTANT, axis=1) ** 2).sum(axis=1).max()) * SLACK


def _slips(rounding: Rounding, d: int, C: float, eps: float) -> tuple[float, float]:
    common, own = (eps * d / (2 * C * C) + RSQRT + STEP) * SLACK, 2 * STEP
    if rounding.name == "float32":
        return common, own
    if common + own < 2.0**-11:
        return 0.0, 0.0
    raise NotProved(f"a norm slips by {rounded_up(common, 3)} in {rounding.name}; less than 2^-11 is cast away.")


def finite(numbers: Array) -> Array:
    if not (numbers <= HIGHEST).all():
        raise NotProved(f"a number on the way may be beyond {rounded_down(HIGHEST, 3)}.")
    return numbers
