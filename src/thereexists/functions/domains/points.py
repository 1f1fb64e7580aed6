"""Finitely many points. Their measure is their number: d_p is then a sum over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.owned_arrays import owned
from thereexists.functions.domains.domain import SPARE, TOLERANCE, Array, Domain, Ends, moderate, shortly

_AT_ONCE = 1 << 24  # numbers of a table of boxes against points
_ROOM = 2.0**-10  # by which the box around points is wider than they need


@final
@dataclass(frozen=True, eq=False)
class Points(Domain):
    """``points`` (points, size), or (points, n, d) of whole sequences."""

    points: Any
    kind: ClassVar[str] = "points"

    def __post_init__(self) -> None:
        try:
            table = np.asarray(self.points, dtype=np.float64)
            table = table.reshape(len(table), -1)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            table = np.zeros((0, 0))
        if table.size == 0 or not np.isfinite(table).all() or not moderate(table):
            raise InvalidInput(
                f"'points' must be rows of numbers up to 1e50, all of one length; got {shortly(self.points)}."
            )
        object.__setattr__(self, "points", owned(np.unique(table, axis=0)))

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.points.shape[1]

    @property
    def amount(self) -> int:
        return self.points.size

    @property
    def ends(self) -> Ends:
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        room = _ROOM * np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))
        return low - room, high + room

    def contains(self, x: Array) -> Array:
        return self.meets(x, x)

    def meets(self, low: Array, high: Array) -> Array:
        return self._over(low, high, lambda inside: inside.any(axis=1))

    def within(self, low: Array, high: Array) -> Array:
        return np.zeros(len(low), dtype=bool)

    def anchor(self, low: Array, high: Array) -> Array:
        return self.point(low, high)

    def point(self, low: Array, high: Array) -> Array:
        """The one nearest to the middle; one of the box, if there is one."""
        middle, half = (low + high) / 2, np.maximum((high - low) / 2, TOLERANCE * self._scale)
        step = max(1, _AT_ONCE // self.points.size)
        found = [
            (np.abs(self.points - middle[i : i + step, None]) / half[i : i + step, None]).max(axis=2).argmin(axis=1)
            for i in range(0, len(low), step)
        ]
        return self.points[np.concatenate(found)] if found else np.zeros_like(low)

    def reach(self, x: Array, low: Array, high: Array) -> Array:
        """Only as far as the other points of the box."""
        step = max(1, _AT_ONCE // self.points.size)
        parts = []
        for i in range(0, len(x), step):
            inside = self._inside(low[i : i + step], high[i : i + step])
            far = np.abs(self.points - x[i : i + step, None]).max(axis=2)
            parts.append(np.where(inside, far, 0.0).max(axis=1))
        return np.concatenate(parts) if parts else np.zeros(0)

    def measure(self, low: Array, high: Array) -> Array:
        return self._over(low, high, lambda inside: inside.sum(axis=1).astype(float))

    @property
    def flat(self) -> int:
        return self.size

    @property
    def mass(self) -> float:
        return float(len(self.points))

    def least(self, low: Array, high: Array) -> float:
        return self.mass

    def drawn(self, unit: Array, fine: Array) -> tuple[Array, Array]:
        at = np.minimum((unit[:, 0] * len(self.points)).astype(int), len(self.points) - 1)
        return self.points[at], np.ones(len(unit), dtype=bool)

    def words(self) -> str:
        return f"{len(self.points):,} points of {self.size} numbers"

    def measured(self) -> str:
        return "the integral over points is their sum"

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "points": self.points.tolist()}

    @property
    def _scale(self) -> float:
        return float(np.abs(self.points).max(initial=1.0))

    def _inside(self, low: Array, high: Array) -> Array:
        """Which points lie in which boxes: (boxes, points)."""
        spare = SPARE * self._scale
        return ((self.points >= low[:, None] - spare) & (self.points <= high[:, None] + spare)).all(axis=2)

    def _over(self, low: Array, high: Array, of: Any) -> Array:
        step = max(1, _AT_ONCE // self.points.size)
        parts = [of(self._inside(low[i : i + step], high[i : i + step])) for i in range(0, len(low), step)]
        return np.concatenate(parts) if parts else np.zeros(0)
