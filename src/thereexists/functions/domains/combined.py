"""Unions and intersections. Of domains of tokens they are domains of tokens; of mixed ones, of whole sequences."""

from __future__ import annotations

import functools
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, final

import numpy as np

from thereexists.core.errors import InvalidInput, Obstructed
from thereexists.functions.domains.domain import Array, Domain, Ends, shortly

_ROUNDS = 16  # of projections onto the parts in turn
MOST_PARTS = 256
_MOST_IN_ALL = 1 << 14  # numbers of an intersection, which is tried at some ten thousand points before it is believed
_SHOWN = 4  # parts, in a sentence


@dataclass(frozen=True, eq=False)
class Combined(Domain):
    parts: tuple[Domain, ...]

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts or not all(isinstance(part, Domain) for part in parts):
            raise InvalidInput(f"A {self.kind} must be made of at least one domain; got {shortly(self.parts)} instead.")
        check_parts(len(parts))
        object.__setattr__(self, "parts", parts)

    @property
    def size(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.parts[0].size

    @property
    def amount(self) -> int:
        return sum(part.amount for part in self.parts)

    def sized(self, n: int, d: int) -> Self:
        parts = tuple(part.sized(n, d) for part in self.parts)
        if any(part.size != d for part in parts):
            parts = tuple(part.bound(n, d) for part in parts)
        found = replace(self, parts=parts)
        found.check()
        return found

    @abstractmethod
    def check(self) -> None:
        """Refuse parts whose measures do not go together."""

    def words(self) -> str:
        more = len(self.parts) - _SHOWN
        said = [*(part.words() for part in self.parts[:_SHOWN]), *([f"{more} more"] if more > 0 else [])]
        return f"the {self.kind} of {' and '.join(said)}"

    def measured(self) -> str:
        return next((said for part in self.parts if (said := part.measured())), "")

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "parts": [part.describe() for part in self.parts]}

    def with_origin(self, origin: dict[str, Any]) -> Self:
        return replace(self, parts=tuple(part.with_origin(origin) for part in self.parts))

    @property
    def codes(self) -> tuple[Any, ...]:
        return tuple(code for part in self.parts for code in part.codes)

    def assumptions(self) -> list[str]:
        return [said for part in self.parts for said in part.assumptions()]

    def refuted(self, seed: int) -> str | None:
        return next((found for part in self.parts if (found := part.refuted(seed)) is not None), None)

    def _asked(self, question: str, join: Any, *arrays: Array) -> Array:
        return functools.reduce(join, (getattr(part, question)(*arrays) for part in self.parts))


@final
@dataclass(frozen=True, eq=False)
class Union(Combined):
    """The points of any of the parts: ``a | b``."""

    kind: ClassVar[str] = "union"

    def check(self) -> None:
        if any(part.flat for part in self.parts):
            raise InvalidInput(
                "A union must be made of domains with a volume, which a simplex and single points do not have. Put "
                "all points into one te.domains.Points."
            )

    @property
    def ends(self) -> Ends:
        lows, highs = zip(*(part.ends for part in self.parts), strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def contains(self, x: Array) -> Array:
        return self._asked("contains", np.logical_or, x)

    def meets(self, low: Array, high: Array) -> Array:
        return self._asked("meets", np.logical_or, low, high)

    def within(self, low: Array, high: Array) -> Array:
        return self._asked("within", np.logical_or, low, high)

    def anchor(self, low: Array, high: Array) -> Array:
        return self.point(low, high)

    def point(self, low: Array, high: Array) -> Array:
        """The one, of each part's, that is nearest to the middle."""
        found = np.stack([part.point(low, high) for part in self.parts])
        far = np.abs(found - (low + high) / 2).max(axis=2)
        return found[far.argmin(axis=0), np.arange(len(low))]


@final
@dataclass(frozen=True, eq=False)
class Intersection(Combined):
    """The points of all the parts: ``a & b``."""

    kind: ClassVar[str] = "intersection"

    def check(self) -> None:
        flat = [part for part in self.parts if part.flat]
        if len({part.flat for part in flat}) > 1 or (len(flat) > 1 and any(part.flat != part.size for part in flat)):
            raise InvalidInput("An intersection has at most one flat part, a simplex or points.")
        if self.amount > _MOST_IN_ALL:
            raise InvalidInput(
                f"An intersection may be made of at most {_MOST_IN_ALL:,} numbers (inequalities, points and parts, "
                f"each by the entries it asks about); this one has {self.amount:,}."
            )
        with suppress(Obstructed):  # code that is not here cannot be asked
            self.tried(*(end[None] for end in self.ends))  # not empty

    @property
    def _thinnest(self) -> Domain:
        return max(self.parts, key=lambda part: part.flat)

    @property
    def ends(self) -> Ends:
        lows, highs = zip(*(part.ends for part in self.parts), strict=True)
        low, high = np.max(lows, axis=0), np.min(highs, axis=0)
        if not (low < high).all():
            raise InvalidInput(f"{self.words()} is empty: their boxes do not meet.")
        return low, high

    def contains(self, x: Array) -> Array:
        return self._asked("contains", np.logical_and, x)

    def meets(self, low: Array, high: Array) -> Array:
        """All parts meet it, each perhaps elsewhere: then it may."""
        return self._asked("meets", np.logical_and, low, high)

    def within(self, low: Array, high: Array) -> Array:
        return self._asked("within", np.logical_and, low, high)

    def anchor(self, low: Array, high: Array) -> Array:
        """A point of one part near the box that is in all; projections in turn; else what a search finds."""
        found, inside = self._first(low, high)
        if not inside.all():
            x = (low + high)[~inside] / 2
            for _ in range(_ROUNDS):
                for part in self.parts:
                    x = part.nearest(x)
            good = self.contains(x)
            x[~good] = self.tried(low[~inside][~good], high[~inside][~good])
            found[~inside] = x
        return found

    def _first(self, low: Array, high: Array) -> tuple[Array, Array]:
        found, inside = (low + high) / 2, np.zeros(len(low), dtype=bool)
        for part in self.parts:
            x = part.point(low, high)
            good = self.contains(x) & ~inside
            found, inside = np.where(good[:, None], x, found), inside | good
        return found, inside

    def reach(self, x: Array, low: Array, high: Array) -> Array:
        return self._asked("reach", np.minimum, x, low, high)

    def measure(self, low: Array, high: Array) -> Array:
        return np.where(self.meets(low, high), self._thinnest.measure(low, high), 0.0)

    @property
    def flat(self) -> int:
        return self._thinnest.flat

    @property
    def mass(self) -> float:
        return self._thinnest.mass if self.flat else super().mass

    def least(self, low: Array, high: Array) -> float:
        return 0.0 if self.flat else super().least(low, high)

    def drawn(self, unit: Array, fine: Array) -> tuple[Array, Array]:
        if not self.flat:
            return super().drawn(unit, fine)
        x, inside = self._thinnest.drawn(unit, fine)
        return x, inside & self.contains(x)


def check_parts(count: int) -> None:
    if count > MOST_PARTS:
        raise InvalidInput(f"A domain may be made of at most {MOST_PARTS} parts; this one has {count:,}.")
