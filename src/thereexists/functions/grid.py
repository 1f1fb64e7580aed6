"""Step 0 of the proof: the grid of cubes on which the target becomes piecewise constant.

Each feature i of each token is cut into N = 1/δ intervals of length ``step[i]``, K = N^d cells per token. Every
interval is half open, [e_k, e_{k+1}), except the last, which is closed: the upper end of the domain belongs to it.

Two choices make the arithmetic exact in float64. ``origin`` and ``step`` are dyadic rationals with few bits: a box
whose width is not N times such a number is covered with a slight overhang (relative size at most 2^-10). And with a
positional encoding, token j is moved by j·(N+1) steps, one step more than the paper's N, so that the closed upper end
of one position never touches the first cell of the next.

A domain that is not a box has only those cubes that may meet it (``domains/cover.py``): ``cells`` and ``cube`` count
and number these, and whoever builds, certifies or verifies goes through them. The value of such a cube is f at a point
of the domain, in the cube where one is found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import power_of_two
from thereexists.functions.domains.cover import Axes, found_cells, one_of
from thereexists.functions.domains.domain import Domain
from thereexists.functions.target import Array, Target

STEP_BITS = 11
RAMP_SHARE = 2.0**-20
SMALLEST = 2.0**-400
LARGEST = 2.0**400  # of the domain's ends; cells are between both wide, so that squares of them are ordinary numbers
MOST_EDGE_CUBES = 1 << 18  # that are looked through
MOST_CELLS = 1 << 52  # of a feature: float64 tells no more apart


@dataclass(frozen=True)
class Grid:
    """``n`` tokens, ``d`` features, ``N`` cells per feature. Column ids are counted in units of ``step[0]``.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        witness.grid.cells, witness.grid.N

    Args:
        n: how many tokens.
        d: how many features.
        N: cells per feature.
        origin: the lower corner.
        step: the width of a cell, by feature.
        high: the upper corner.
        positional: whether positions move the tokens apart.
        slots: how many positions.
        low: the lower corner of the domain.
        domain: another set than a box.
    """

    n: int
    d: int
    N: int
    origin: tuple[float, ...]
    step: tuple[float, ...]
    high: tuple[float, ...]
    positional: bool
    slots: tuple[int, ...] = ()  # which range each token moves to; () means token j to range j
    low: tuple[float, ...] = ()  # the box from low to high is guarded: what is outside is answered by 0; () means not
    domain: Domain | None = field(default=None, compare=False)  # a set of sequences; None: the box

    def __post_init__(self) -> None:
        whole = all(type(x) is int and x >= 1 for x in (self.n, self.d)) and type(self.N) is int and self.N >= 2
        sides = (self.origin, self.step, self.high)
        boxed = all(len(side) == self.d and all(math.isfinite(x) for x in side) for side in sides)
        placed = not self.slots or (len(self.slots) == self.n and sorted(self.slots) == list(range(self.n)))
        sized = boxed and all(SMALLEST <= x <= LARGEST for x in self.step)
        sized = sized and (not self.low or (len(self.low) == self.d and all(math.isfinite(x) for x in self.low)))
        if not (whole and sized and placed):
            raise InvalidInput(f"{self} is not a grid: sizes, sides or slots do not fit together.")

    @classmethod
    def for_target(cls, target: Target, delta: float | str | Fraction, slots: tuple[int, ...] = ()) -> Grid:
        N = cells_per_axis(delta)
        sides = list(zip(target.low.tolist(), target.high.tolist(), strict=True))
        steps = {side: _dyadic_step(*side, N) for side in dict.fromkeys(sides)}  # few are different
        origin, step = zip(*(steps[side] for side in sides), strict=True)
        high = tuple(float(h) for h in target.high)
        low = tuple(float(l) for l in target.low) if target.compact_support else ()
        grid = cls(target.n, target.d, N, origin, step, high, not target.equivariant or bool(slots), slots, low)
        return grid.on(target.region)

    def on(self, domain: Domain | None) -> Grid:
        """The same grid with those cubes alone that may meet the domain."""
        return self if domain is self.domain else replace(self, domain=domain)

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Grid:
        """The inverse of ``describe``, through JSON; the domain stands in the record of the function."""
        if "domain" in stored:
            raise InvalidInput("The record of a grid must not hold a domain.")
        sides = {key: tuple(stored[key]) for key in ("origin", "step", "high", "slots", "low") if key in stored}
        grid = cls(**{**stored, **sides})
        numbers = all(type(x) in (int, float) for x in (*grid.origin, *grid.step, *grid.high, *grid.low))
        if not (numbers and all(type(x) is int for x in grid.slots) and type(grid.positional) is bool):
            raise InvalidInput(
                "The record of a grid must hold numbers, whole numbers as slots, and true or false for positions."
            )
        return grid

    def describe(self) -> dict[str, Any]:
        """As plain data, for a record."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "domain"}

    @property
    def delta(self) -> Fraction:
        return Fraction(1, self.N)

    @property
    def K(self) -> int:
        """Cells per token."""
        return self.N**self.d

    @property
    def cells(self) -> int:
        """Cubes of the whole domain: those that may meet it."""
        if self.domain is None:
            return self.K**self.n
        return len(self._cover) ** one_of(self.domain)[1]

    @property
    def token_cells(self) -> int:
        """Cells of a token, where all tokens have the same ones and all combinations of them are cubes."""
        return self.K if self.domain is None else len(self._cover)

    @property
    def _cover(self) -> Array:
        """The cells of one token that may meet the domain (of all tokens together, where they depend on each other)."""
        assert self.domain is not None
        return found_cells(one_of(self.domain)[0], self._axes)

    @property
    def _axes(self) -> Axes:
        """Of as many entries as the set has that is searched."""
        assert self.domain is not None
        sides = (self.origin, self.step, tuple(self.ramp.tolist()), self.high)
        return Axes(self.N, *(side * (self.n // one_of(self.domain)[1]) for side in sides))

    @property
    def unit(self) -> float:
        return self.step[0]

    @cached_property
    def level(self) -> Array:
        """How far apart a feature's values are once they are quantised: λ_i, the unit times a power of two, ≥ step_i.

        Where step_i is such a number itself, λ_i = step_i. Else the quantiser moves the k-th edge to k·λ_i, so that the
        digits of an id are measured in one unit and u^T z is exact, whatever the ratios of the sides are.
        """
        unit = Fraction(self.step[0])
        return np.array([float(unit * _power_of_two_from(Fraction(s) / unit)) for s in self.step])

    @cached_property
    def u(self) -> Array:
        """``u^T z`` is the id of a column: base-N digits, each feature measured in its own level: exact."""
        return np.array([self.N**i * (self.step[0] / s) for i, s in enumerate(self.level.tolist())])

    @property
    def pitch(self) -> Array:
        """How far a position moves the features: N+1 steps, or 0 without positional encoding."""
        return (self.N + 1) * np.array(self.step) if self.positional else np.zeros(self.d)

    @property
    def id_pitch(self) -> int:
        """The same in units of the column id: (N+1)·Σ N^i."""
        return (self.N + 1) * sum(self.N**i for i in range(self.d)) if self.positional else 0

    @property
    def slot(self) -> Array:
        """The number of each token's range."""
        return np.array(self.slots) if self.slots else np.arange(self.n)

    @property
    def encoding(self) -> Array | None:
        """E (n, d): moves each token to its own range, and the domain's origin to 0."""
        return self.slot[:, None] * self.pitch - np.array(self.origin) if self.positional else None

    @property
    def max_column_id(self) -> int:
        return (self.n - 1) * self.id_pitch + self.K - 1

    @property
    def ramp(self) -> Array:
        """η: the width of the quantiser's falling ramp, a power of two close to 2^-20 of a step."""
        return np.array([_power_of_two_below(s) * RAMP_SHARE for s in self.step])

    @property
    def window(self) -> float:
        """w: how far below an id its value layer begins to act, a power of two of at most half the unit."""
        return _power_of_two_below(self.unit) / 2

    def index(self, X: Array) -> Array:
        """The cell of every entry: integers in 0 … N−1, same shape as X (…, n, d)."""
        edges = np.array(self.origin) + np.arange(1, self.N)[:, None] * np.array(self.step)  # exact: (N−1, d)
        return np.stack([np.searchsorted(edges[:, i], X[..., i], side="right") for i in range(self.d)], axis=-1)

    def cube(self, number: Array) -> Array:
        """Cube numbers 0 … cells−1 as cell indices: (…,) -> (…, n, d), the last entry counting fastest."""
        if self.domain is not None:
            cover, count = self._cover, one_of(self.domain)[1]
            at = number[..., None] // len(cover) ** np.arange(count - 1, -1, -1) % len(cover)
            return cover[at].reshape(*number.shape, self.n, self.d)
        digits = number[..., None] // self.N ** np.arange(self.n * self.d - 1, -1, -1) % self.N
        return digits.reshape(*number.shape, self.n, self.d)

    def centre(self, index: Array) -> Array:
        """The middle of a cell's part inside the domain."""
        lower = np.array(self.origin) + index * np.array(self.step)
        return (lower + np.minimum(lower + np.array(self.step), np.array(self.high))) / 2

    @property
    def reach(self) -> float:
        """How far a point of a cube may be from where f is asked about it, if that is in the cube: maximum norm."""
        return max(self.step) / (2 if self.domain is None else 1)

    def covered(self) -> tuple[Domain, int, Array, Array]:
        """Of a domain that is not a box: the set of a token (or of the sequence), how many tokens have it, and the
        boxes of its cells: (cells, entries) each."""
        assert self.domain is not None
        part, count = one_of(self.domain)
        low, high = self._axes.whole().box(self._cover, self._cover + 1)
        return part, count, low, high

    def edge_cubes(self) -> Array | None:
        """The cubes that the domain may meet on ramps alone, which have no value: (cubes, n, d); None if very many."""
        assert self.domain is not None
        part, count = one_of(self.domain)
        whole = found_cells(part, self._axes.whole())
        if len(whole) ** count > MOST_EDGE_CUBES:
            return None
        rows = np.arange(len(whole) ** count)[:, None] // len(whole) ** np.arange(count - 1, -1, -1) % len(whole)
        digits = self.N ** np.arange(whole.shape[1])
        met = np.isin(whole @ digits, self._cover @ digits)[rows].all(axis=1)
        return whole[rows[~met]].reshape(-1, self.n, self.d)

    def representative(self, index: Array) -> Array:
        """Where f is asked about these cells (cells, n, d): their middles, or points of the domain."""
        if self.domain is None:
            return self.centre(index)
        low = np.array(self.origin) + index * np.array(self.step)
        high = np.minimum(low + np.array(self.step), np.array(self.high))
        return self.domain.point(*(side.reshape(len(index), -1) for side in (low, high))).reshape(index.shape)

    def values(self, target: Target, index: Array) -> Array:
        """f̄ on these cells: the target where it is asked about them; what is below 2^-400 becomes 0.

        Numbers that small would make weights whose products underflow, which no enclosure can follow; the certificate
        compares f with the 0 that is then stored.
        """
        values = target(self.representative(index))
        return np.where(np.abs(values) < SMALLEST, 0.0, values)

    def on_ramp(self, X: Array) -> Array:
        """Whether an entry of a sequence lies on a falling ramp, where the quantiser is not exact: (batch,)."""
        index = self.index(X)
        upper = np.array(self.origin) + (index + 1) * np.array(self.step)
        on = (upper - X <= self.ramp) & (index < self.N - 1)
        if self.low:  # rounding may move an end of the box by a little
            guard = self.ramp * (1 + 2.0**-10)
            on |= (X - np.array(self.low) <= guard) | (np.array(self.high) - X <= guard)
        return np.asarray(on.any(axis=(-2, -1)))

    def column_ids(self, index: Array) -> Array:
        """The id of every token's cell, in units: Σ N^i k_i, plus the position's share. (…, n, d) -> (…, n)."""
        digits = index @ (self.N ** np.arange(self.d, dtype=np.int64))
        return digits + self.id_pitch * self.slot

    def columns(self, position: int = 0) -> Array:
        """The ids of the cells that the token there may have, in increasing order, its position's share left out."""
        if self.domain is None:
            return np.arange(self.K)
        cover = self._cover.reshape(len(self._cover), -1, self.d)  # of one token, or of all of them
        return np.unique(cover[:, position % cover.shape[1]] @ (self.N ** np.arange(self.d, dtype=np.int64)))

    def equal_column_share(self) -> float:
        """The share of cubes in which two tokens fall into one cell (0 with a positional encoding)."""
        if self.positional:
            return 0.0
        return 1.0 - math.prod((self.token_cells - i) / self.token_cells for i in range(self.n))

    def ramp_share(self) -> float:
        """An upper bound on the share of the domain that lies on a ramp: 1 − Π (1 − η_i/step_i)^n.

        N − 1 inner edges of a feature have one, and both ends of a box that is guarded.
        """
        ramps = (self.N + 1) / self.N if self.low else 1.0
        return float(-np.expm1(self.n * np.log1p(-ramps * self.ramp / np.array(self.step)).sum()))


def cells_per_axis(delta: float | str | Fraction) -> int:
    """N = 1/δ, which must be an integer of at least 2."""
    try:
        value = Fraction(float(delta) if isinstance(delta, np.floating) else delta)
        N = round(1 / value) if value > 0 else 0
    except (ValueError, ZeroDivisionError, TypeError, OverflowError):
        raise InvalidInput(f"'delta' must be 1/2, 1/3, 1/4, …; got {delta!r} instead.") from None
    if N > MOST_CELLS:
        raise InvalidInput("'delta' must be 1/2, 1/3, 1/4, … down to 2^-52; got a smaller one.")
    if N < 2 or (value != Fraction(1, N) and float(value) != 1 / N):
        raise InvalidInput(f"'delta' must divide 1 into at least two cells, as 1/2, 1/3, 1/4, …; got {delta} instead.")
    return N


def check_ends(low: float, high: float, N: int = 2) -> None:
    """Refuse a side of a domain whose cells, or whose ends, no grid can have."""
    if not (abs(low) <= LARGEST and abs(high) <= LARGEST and (high - low) / N >= 2 * SMALLEST):
        raise InvalidInput(
            f"A domain in {N} cells per feature must have cells of at least {power_of_two(2 * SMALLEST)}, and ends of "
            f"at most {power_of_two(LARGEST)}; got [{in_full(low)}, {in_full(high)}] instead. Rescale the function."
        )


def _dyadic_step(low: float, high: float, N: int) -> tuple[float, float]:
    """A dyadic origin ≤ low and a step of at most STEP_BITS bits with origin + N·step ≥ high."""
    check_ends(low, high, N)
    quantum = _power_of_two_below((high - low) / N) * 2.0 ** (1 - STEP_BITS)
    origin = math.floor(Fraction(low) / Fraction(quantum)) * Fraction(quantum)
    steps = math.ceil((Fraction(high) - origin) / N / Fraction(quantum))
    return float(origin), float(steps * Fraction(quantum))


def _power_of_two_from(x: Fraction) -> Fraction:
    """The smallest power of two that is at least x."""
    power = Fraction(2) ** (x.numerator.bit_length() - x.denominator.bit_length())  # within a factor of 2 of x
    while power < x:
        power *= 2
    while power / 2 >= x:
        power /= 2
    return power


def _power_of_two_below(x: float) -> float:
    return 2.0 ** math.floor(math.log2(x))
