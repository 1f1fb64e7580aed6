"""What every domain answers: a compact set D of vectors of ``size`` numbers, a token's or a whole sequence's.

Six questions. All but the first are about boxes [low, high], arrays (boxes, size), and all answers lean to the safe
side: ``meets`` may say yes of a box that D misses (it costs a cube), never no of one that it meets; ``within`` may say
no; ``measure`` is at least, ``least`` at most, what they bound.

    contains  is the point in D? A point that is off by rounding (2^-40 of the sizes at hand) counts: that is what D is
    meets     does D meet the box?
    within    is the box part of D?
    point     a point of D, in the box if one is found, near its middle; any point of D will do for a proof
    measure   of the part of D in the box: its volume. Of probability vectors, a flat set, it is the volume of all
              entries but one (whichever one is left out); of finitely many points, their number
    drawn     points of a set that holds D, from numbers in [0, 1] and their next 53 bits, and which of them are in D.
              If the numbers are uniform, so are the points, and the measure of the set that they are drawn from is
              ``mass``. Without the bits no float64 between those of a lattice comes out (``anywhere.py``)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.owned_arrays import owned
from thereexists.functions.anywhere import placed

Array = np.ndarray
Ends = tuple[Array, Array]
TOLERANCE = 2.0**-40  # of the sizes at hand: what rounding may do to a point of D
SPARE = 2.0**-36  # what a test of a box allows: the tolerance, and its own rounding
_BISECTIONS = 24
_TRIED = 32  # points of a box, where no formula gives one of D
_POOL = 4096
AT_ONCE = 1 << 22  # numbers of a table of points against inequalities
MOST_ENTRIES = 4096  # of a sequence whose domain is not a box
MOST_NUMBERS = 1 << 20  # that a domain asks every point with: a record of few bytes must not ask for hours
_SHOWN = 8  # numbers of a row, in a sentence
_LONGEST = 200  # characters of what was given, in a sentence


class Domain(ABC):
    """A compact set. Until it is bound to n and d (``bound``), its size may be open."""

    kind: ClassVar[str]

    size: int | None

    @property
    @abstractmethod
    def ends(self) -> Ends:
        """A box that holds D: (size,) each."""

    @abstractmethod
    def contains(self, x: Array) -> Array: ...

    @abstractmethod
    def meets(self, low: Array, high: Array) -> Array: ...

    @abstractmethod
    def within(self, low: Array, high: Array) -> Array: ...

    @abstractmethod
    def anchor(self, low: Array, high: Array) -> Array:
        """Points of D: in each box, if that is easily found."""

    @property
    def amount(self) -> int:
        """About how many numbers a question about one point takes."""
        return int(self.size or 0)

    @abstractmethod
    def words(self) -> str:
        """The set, in words."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The set as plain data, for a record; the inverse is ``stored.read``."""

    def measured(self) -> str:
        """By what measure d_p is an integral over it, in words; nothing if it is volume."""
        return ""

    def command(self) -> str | None:
        """How --domain names it; None if only Python, or a file, can."""
        return None

    def sized(self, n: int, d: int) -> Domain:
        """The same set, its size known: d numbers, or n·d."""
        if self.size not in (d, n * d):
            raise InvalidInput(
                f"A domain must be a set of tokens of d = {d} numbers, or of sequences of n·d = {n * d}; "
                f"{self.words()} is described by {self.size} numbers."
            )
        return self

    def plain(self, d: int) -> Ends | None:
        """The ends (low, high) of every token, if that is all there is to it: a plain box."""
        return None

    @final
    def bound(self, n: int, d: int) -> Domain:
        """The set of sequences, flattened to n·d numbers: of tokens, each of them in D."""
        if n * d > MOST_ENTRIES:
            raise InvalidInput(
                f"A domain that is not a box holds sequences of at most {MOST_ENTRIES:,} numbers; n·d = {n * d:,}."
            )
        found = self.sized(n, d)
        check_amount(found.amount)
        return found if found.size == n * d else Each(found, n)

    def point(self, low: Array, high: Array) -> Array:
        """From a point of D straight towards the middle of the box, as far as D goes (where D is convex)."""
        middle = (low + high) / 2
        found = middle.copy()
        off = np.flatnonzero(~self.contains(middle))
        if len(off):
            start, goal = self.anchor(low[off], high[off]), middle[off]
            near, far = np.zeros(len(off)), np.ones(len(off))
            for _ in range(_BISECTIONS):
                share = (near + far) / 2
                inside = self.contains(start + share[:, None] * (goal - start))
                near, far = np.where(inside, share, near), np.where(inside, far, share)
            moved = start + near[:, None] * (goal - start)
            found[off] = np.where(self.contains(moved)[:, None], moved, start)
        return found

    def nearest(self, x: Array) -> Array:
        """Points of D near these; a point of D is itself."""
        return self.point(x, x)

    def reach(self, x: Array, low: Array, high: Array) -> Array:
        """At least the largest entry of |y − x| for y in D and the box."""
        return np.maximum(high - x, x - low).max(axis=1)

    def measure(self, low: Array, high: Array) -> Array:
        return np.where(self.meets(low, high), (high - low).prod(axis=1), 0.0)

    @property
    def flat(self) -> int:
        """How many entries the measure leaves out."""
        return 0

    @property
    def symmetric(self) -> bool:
        """Whether it is, by its form, a set of tokens: then it stays what it is if tokens change places."""
        return False

    @property
    def mass(self) -> float:
        """Of the set that ``drawn`` draws from; at least the measure of D."""
        low, high = self.ends
        return float((high - low).prod())

    def least(self, low: Array, high: Array) -> float:
        """At most the measure of D: the boxes within it, which must not overlap."""
        return math.fsum((high - low).prod(axis=1)[self.within(low, high)].tolist()) * (1 - SPARE)

    def drawn(self, unit: Array, fine: Array) -> tuple[Array, Array]:
        x = placed(*self.ends, unit, fine)
        return x, self.contains(x)

    def tried(self, low: Array, high: Array) -> Array:
        """For ``anchor`` where no formula helps: points of the boxes are tried, and else the nearest that is known."""
        rng = np.random.default_rng(0)
        share = rng.random((_TRIED, 1, low.shape[1]))
        found, best = self.near_known((low + high) / 2), np.full(len(low), np.inf)
        middle = (low + high) / 2
        for s in share:
            x = low + s * (high - low)
            far = np.where(self.contains(x), np.abs(x - middle).max(axis=1), np.inf)
            found, best = np.where((far < best)[:, None], x, found), np.minimum(far, best)
        return found

    def near_known(self, x: Array) -> Array:
        """The nearest of some thousand points of D that were found once."""
        return self._pool.data[self._pool.query(x, p=np.inf)[1]]

    @cached_property
    def _pool(self) -> Any:
        from scipy.spatial import KDTree

        rng, parts, count = np.random.default_rng(0), [], 0
        size = int(self.size or 0)
        step = max(1, min(_POOL, AT_ONCE // max(size, 1)))
        for i in range(0, 16 * _POOL, step):
            shape = (min(step, 16 * _POOL - i), size)
            x, inside = self.drawn(rng.random(shape), np.zeros(shape))
            parts.append(x[inside])
            count += len(parts[-1])
            if count >= _POOL:
                break
        found = np.concatenate(parts)[:_POOL]
        if not count:
            raise InvalidInput(
                f"No point of {self.words()} was found among {16 * _POOL:,} tried: the domain is empty, or too thin "
                "for its box. Give a smaller box around it."
            )
        return KDTree(found)

    def with_origin(self, origin: dict[str, Any]) -> Domain:
        """The same set, where it is made of code: with the file that the code is from."""
        return self

    @property
    def codes(self) -> tuple[Any, ...]:
        """The user's functions that it is made of."""
        return ()

    def assumptions(self) -> list[str]:
        """What is taken for granted about these functions, in words."""
        return []

    def refuted(self, seed: int) -> str | None:
        """A counterexample to what is claimed of these functions, in words; None if the search finds none."""
        return None

    def __or__(self, other: Domain) -> Domain:
        from thereexists.functions.domains.combined import Union

        return Union((self, other))

    def __and__(self, other: Domain) -> Domain:
        from thereexists.functions.domains.combined import Intersection

        return Intersection((self, other))

    @cached_property
    def covers(self) -> dict[Any, Array]:
        """The cells that may meet D, by grid: kept because every cube that is looked at asks (``cover.py``)."""
        return {}


@final
@dataclass(frozen=True)
class Each(Domain):
    """Sequences of ``count`` tokens, every one of them in ``token``."""

    token: Domain
    count: int
    kind: ClassVar[str] = "each"

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return int(self.token.size or 0) * self.count

    @property
    def ends(self) -> Ends:
        low, high = self.token.ends
        return np.tile(low, self.count), np.tile(high, self.count)

    @property
    def amount(self) -> int:
        return self.token.amount * self.count

    def contains(self, x: Array) -> Array:
        return self._of_all(self.token.contains(self._tokens(x)))

    def meets(self, low: Array, high: Array) -> Array:
        return self._of_all(self.token.meets(self._tokens(low), self._tokens(high)))

    def within(self, low: Array, high: Array) -> Array:
        return self._of_all(self.token.within(self._tokens(low), self._tokens(high)))

    def anchor(self, low: Array, high: Array) -> Array:
        return self.token.anchor(self._tokens(low), self._tokens(high)).reshape(low.shape)

    def point(self, low: Array, high: Array) -> Array:
        return self.token.point(self._tokens(low), self._tokens(high)).reshape(low.shape)

    def reach(self, x: Array, low: Array, high: Array) -> Array:
        each = self.token.reach(*(self._tokens(part) for part in (x, low, high)))
        return each.reshape(-1, self.count).max(axis=1)

    def measure(self, low: Array, high: Array) -> Array:
        return self.token.measure(self._tokens(low), self._tokens(high)).reshape(-1, self.count).prod(axis=1)

    @property
    def flat(self) -> int:
        return self.token.flat * self.count

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def mass(self) -> float:
        return self.token.mass**self.count

    def drawn(self, unit: Array, fine: Array) -> tuple[Array, Array]:
        x, inside = self.token.drawn(self._tokens(unit), self._tokens(fine))
        return x.reshape(unit.shape), self._of_all(inside)

    def words(self) -> str:
        return f"the sequences whose tokens lie in {self.token.words()}"

    def measured(self) -> str:
        return self.token.measured()

    def command(self) -> str | None:
        return self.token.command()

    def describe(self) -> dict[str, Any]:
        return self.token.describe()

    @property
    def codes(self) -> tuple[Any, ...]:
        return self.token.codes

    def assumptions(self) -> list[str]:
        return self.token.assumptions()

    def refuted(self, seed: int) -> str | None:
        return self.token.refuted(seed)

    def _tokens(self, x: Array) -> Array:
        return x.reshape(-1, x.shape[1] // self.count)

    def _of_all(self, each: Array) -> Array:
        return np.asarray(each.reshape(-1, self.count).all(axis=1))


def numbers(name: str, given: Any) -> Array:
    """Numbers in one row, so small and so large that no product of two leaves float64; a table of them is flattened.

    Ours alone: a caller who goes on with the same array changes no domain.
    """
    try:
        found = owned(given, np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last of tensors with gradients
        found = np.array([np.nan])
    if not (len(found) and np.isfinite(found).all()):
        raise InvalidInput(f"'{name}' must be finite numbers; got {shortly(given)} instead.")
    if not moderate(found):
        raise InvalidInput(f"'{name}' must be 0, or from 1e-50 to 1e50 in size; got {shortly(given)} instead.")
    return found


def check_amount(amount: int) -> None:
    if amount > MOST_NUMBERS:
        raise InvalidInput(f"A domain may be made of at most {MOST_NUMBERS:,} numbers; this one has {amount:,}.")


def shortly(given: Any) -> str:
    """What was given, for a sentence."""
    said = repr(given)
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"


def row_in_words(row: Array) -> str:
    """A list of numbers, for a sentence: of a long one, how it begins."""
    if len(row) <= _SHOWN:
        return str(row.tolist())
    return f"[{', '.join(map(repr, row[:_SHOWN].tolist()))}, … {len(row):,} numbers]"


def moderate(x: Array) -> bool:
    """Whether squares and products of these numbers are numbers of float64 too."""
    sizes = np.abs(x)
    return bool(((sizes == 0) | ((sizes >= 1e-50) & (sizes <= 1e50))).all())
