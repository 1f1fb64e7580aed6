"""A stated modulus of continuity ω: |f(X) − f(Y)| ≤ ω(r) for all X and Y no farther apart than r.

So ω does not decrease. Of a function that does, such as 2|sin πr| for f(x) = sin 2πx, the inequality may hold for all
pairs that are exactly r apart, and no pair refutes it; but a certificate takes ω(r) for all distances *up to* r. So
wherever ω is used it is compared with its values on a ladder of radii.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thereexists.core.errors import InvalidTarget, ThereExistsError
from thereexists.core.memory import unless_memory
from thereexists.core.plain_text import in_full
from thereexists.core.printed import printed_to_stderr

_ROUNDED = 1 - 2.0**-40  # what its own rounding may take from a modulus
_RUNGS, _PER_OCTAVE = 320, 8  # of the ladder, from the width of the domain down


@dataclass(frozen=True)
class Modulus:
    """``stated`` is the caller's, of the function ``name``; no two points are farther apart than ``width``."""

    stated: Callable[[float], float]
    name: str
    width: float

    def at(self, radius: float) -> float:
        """ω(radius), not below what it is at the next rung below, nor above that at the next one above."""
        found, (radii, values) = self._called(radius), self._ladder
        above = bisect_left(radii, radius)
        if above > 0:
            self._refuse_fall((radii[above - 1], values[above - 1]), (radius, found))
        if above < len(radii):
            self._refuse_fall((radius, found), (radii[above], values[above]))
        return found

    @cached_property
    def _ladder(self) -> tuple[list[float], list[float]]:
        """Radii, which increase, and ω there."""
        radii = [self.width * 2.0 ** (i / _PER_OCTAVE) for i in range(-_RUNGS, 1)]
        values = [self._called(radius) for radius in radii]
        for i in range(_RUNGS):
            self._refuse_fall((radii[i], values[i]), (radii[i + 1], values[i + 1]))
        return radii, values

    def _refuse_fall(self, near: tuple[float, float], far: tuple[float, float]) -> None:
        if fall := falling(near, far):
            raise InvalidTarget(f"{self.name} is not what it claims to be: {fall}.")

    def _called(self, radius: float) -> float:
        """The caller's answer: a number of at least 0."""
        try:
            with printed_to_stderr():
                found = np.asarray(self.stated(radius))
            if found.ndim or found.dtype.kind not in "biuf" or not found >= 0:  # NaN is not at least 0
                raise TypeError(f"it returns {found!r}, and a number of at least 0 is wanted")
            return float(found)
        except ThereExistsError:
            raise
        except (Exception, SystemExit) as error:
            reason = unless_memory(error)
            raise InvalidTarget(f"The modulus of {self.name} cannot be called: {reason}.") from error


def falling(near: tuple[float, float], far: tuple[float, float]) -> str | None:
    """Whether a modulus decreases between two radii, each given with ω there: a sentence, or None."""
    if far[1] >= near[1] * _ROUNDED:
        return None
    (r, first), (s, second) = ((in_full(float(x)) for x in pair) for pair in (near, far))
    return (
        f"its modulus of continuity ω decreases from ω({r}) = {first} to ω({s}) = {second}. ω(r) bounds |f(X) − f(Y)| "
        "for all X and Y no farther apart than r: state the largest value up to r"
    )
