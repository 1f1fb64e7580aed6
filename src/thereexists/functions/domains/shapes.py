"""Domains with formulas: boxes, ellipsoids and balls, polytopes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.owned_arrays import owned
from thereexists.core.plain_text import in_full
from thereexists.functions.domains.domain import (
    AT_ONCE,
    SPARE,
    TOLERANCE,
    Array,
    Domain,
    Ends,
    check_amount,
    numbers,
    row_in_words,
    shortly,
)

_ROUNDS = 8  # of projections onto half-spaces
_END_BITS = 24  # of the box around an ellipsoid
_ROOM = 1e-6  # by which the box around a polytope is widened beyond what a solver finds


@final
@dataclass(frozen=True, eq=False)
class Box(Domain):
    """low ≤ x ≤ high, entry by entry."""

    low: Any
    high: Any
    kind: ClassVar[str] = "box"

    def __post_init__(self) -> None:
        low, high = (numbers(name, getattr(self, name)) for name in ("low", "high"))
        low, high = np.broadcast_arrays(low, high) if 1 in (len(low), len(high)) else (low, high)
        if len(low) != len(high) or not (low < high).all():
            raise InvalidInput(
                f"A box must have finite low < high; got {shortly(self.low)} and {shortly(self.high)} instead."
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.low)

    def sized(self, n: int, d: int) -> Domain:
        return Box(np.tile(self.low, d), np.tile(self.high, d)) if self.size == 1 else super().sized(n, d)

    def plain(self, d: int) -> Ends | None:
        if self.size not in (1, d):
            return None
        return np.broadcast_to(self.low, (d,)), np.broadcast_to(self.high, (d,))

    @property
    def ends(self) -> Ends:
        return self.low, self.high

    def contains(self, x: Array) -> Array:
        return np.asarray(((x >= self.low) & (x <= self.high)).all(axis=1))

    def meets(self, low: Array, high: Array) -> Array:
        return np.asarray(((high >= self.low) & (low <= self.high)).all(axis=1))

    def within(self, low: Array, high: Array) -> Array:
        return np.asarray(((low >= self.low) & (high <= self.high)).all(axis=1))

    def anchor(self, low: Array, high: Array) -> Array:
        return np.clip((low + high) / 2, self.low, self.high)

    def words(self) -> str:
        return f"the box from {row_in_words(self.low)} to {row_in_words(self.high)}"

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "low": self.low.tolist(), "high": self.high.tolist()}


@final
@dataclass(frozen=True, eq=False)
class Ellipsoid(Domain):
    """{c + M y : ‖y‖₂ ≤ 1}; ``axes`` is the matrix M, or the lengths of half axes along the entries."""

    centre: Any
    axes: Any
    kind: ClassVar[str] = "ellipsoid"

    def __post_init__(self) -> None:
        centre = numbers("centre", self.centre)
        flat = numbers("axes", self.axes)
        along = len(flat) == len(centre)
        if not along and len(flat) != len(centre) ** 2:
            raise InvalidInput(
                f"An ellipsoid with a centre of {len(centre)} numbers must have as many half axes, or a square matrix "
                f"of that side; got {len(flat)} numbers instead."
            )
        check_amount(len(centre) ** 2)
        matrix = np.diag(flat) if along else flat.reshape(len(centre), len(centre))
        if (along and flat.min() <= 0) or not _condition(matrix) < 1e6:
            raise InvalidInput(
                "An ellipsoid must have an interior: half axes above 0, or a matrix that is well conditioned."
            )
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "axes", owned(matrix))

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.centre)

    @property
    def amount(self) -> int:
        return self.size**2

    @cached_property
    def _inverse(self) -> Array:
        if _diagonal(self.axes):
            return np.diag(1 / np.diag(self.axes))
        return np.linalg.inv(self.axes)

    @cached_property
    def _scale(self) -> float:
        """Of what rounds: numbers about as large as |M⁻¹|(|c| + |x − c|), and M⁻¹ itself, by its condition number."""
        sizes = np.abs(self.centre) + np.linalg.norm(self.axes, axis=1)
        return 2.0 + _condition(self.axes) + float((np.abs(self._inverse) @ sizes).max())

    @property
    def ends(self) -> Ends:
        reach = np.linalg.norm(self.axes, axis=1) * (1 + 4 * SPARE * self._scale)
        unit = 2.0 ** (np.floor(np.log2(reach)) - _END_BITS)  # a short number: it is the same on every machine
        return np.floor((self.centre - reach) / unit) * unit, np.ceil((self.centre + reach) / unit) * unit

    def contains(self, x: Array) -> Array:
        return np.linalg.norm((x - self.centre) @ self._inverse.T, axis=1) <= 1 + TOLERANCE * self._scale

    def meets(self, low: Array, high: Array) -> Array:
        """By the box that holds M⁻¹(x − c) for x of the box: for half axes along the entries it is that itself."""
        middle, half = self._turned(low, high)
        return np.linalg.norm(np.maximum(np.abs(middle) - half, 0.0), axis=1) <= 1 + SPARE * self._scale

    def within(self, low: Array, high: Array) -> Array:
        middle, half = self._turned(low, high)
        return np.linalg.norm(np.abs(middle) + half, axis=1) <= 1 - SPARE * self._scale

    def anchor(self, low: Array, high: Array) -> Array:
        """The point of the box nearest to the centre, drawn inside if it is not."""
        away = np.clip(self.centre, low, high) - self.centre
        return self.centre + away / np.maximum(np.linalg.norm(away @ self._inverse.T, axis=1), 1.0)[:, None]

    def words(self) -> str:
        radii = np.diag(self.axes)
        if _diagonal(self.axes) and (radii == radii[0]).all():
            return f"the ball of radius {in_full(float(radii[0]))} around {row_in_words(self.centre)}"
        return f"the ellipsoid around {row_in_words(self.centre)}"

    def command(self) -> str | None:
        radii = np.diag(self.axes)
        if not _diagonal(self.axes):
            return None
        centre, half = (",".join(map(repr, side.tolist())) for side in (self.centre, radii))
        return f"ellipsoid {centre} {half}"

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "centre": self.centre.tolist(), "axes": self.axes.tolist()}

    def _turned(self, low: Array, high: Array) -> tuple[Array, Array]:
        middle = ((low + high) / 2 - self.centre) @ self._inverse.T
        return middle, (high - low) / 2 @ np.abs(self._inverse).T


def _diagonal(matrix: Array) -> bool:
    return np.count_nonzero(matrix) == np.count_nonzero(np.diag(matrix))


def _condition(matrix: Array) -> float:
    """The condition number; of a diagonal matrix, which even a short record can make large, without a decomposition."""
    if not _diagonal(matrix):
        return float(np.linalg.cond(matrix))
    sizes = np.abs(np.diag(matrix))
    return float(sizes.max() / sizes.min()) if sizes.min() > 0 else float("inf")


def Ball(centre: Any, radius: float) -> Ellipsoid:
    """‖x − centre‖₂ ≤ radius."""
    where = numbers("centre", centre)
    (r,) = numbers("radius", radius) if np.ndim(radius) == 0 else (float("nan"),)
    if not r > 0:
        raise InvalidInput(f"The radius of a ball must be a number above 0; got {radius!r} instead.")
    return Ellipsoid(where, np.full(len(where), r))


@final
@dataclass(frozen=True, eq=False)
class Polytope(Domain):
    """{x : A x ≤ b} in the box from ``low`` to ``high``; a solver finds a box that holds it, unless one is given."""

    A: Any
    b: Any
    low: Any = None
    high: Any = None
    kind: ClassVar[str] = "polytope"

    def __post_init__(self) -> None:
        b = numbers("b", self.b)
        flat = numbers("A", self.A)
        if len(flat) % len(b):
            raise InvalidInput(f"'A' must have a row for each of the {len(b)} numbers of 'b'; got {len(flat)} numbers.")
        object.__setattr__(self, "b", b)
        object.__setattr__(self, "A", flat.reshape(len(b), -1))
        given = self.low is not None and self.high is not None
        box = Box(self.low, self.high) if given else _around(self.A, b)
        if box.size != self.size:
            raise InvalidInput(f"The box of a polytope in {self.size} numbers must have as many; got {box.size}.")
        object.__setattr__(self, "low", box.low)
        object.__setattr__(self, "high", box.high)

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.A.shape[1]

    @property
    def ends(self) -> Ends:
        return self.low, self.high

    @property
    def amount(self) -> int:
        return (len(self.b) + 2 * self.size) * self.size  # with its box, as ``_middle`` has it

    @cached_property
    def _scale(self) -> Array:
        return np.abs(self.A) @ np.maximum(np.abs(self.low), np.abs(self.high)) + np.abs(self.b)  # (rows,)

    def contains(self, x: Array) -> Array:
        inside = ((x >= self.low) & (x <= self.high)).all(axis=1)
        return inside & self._below([(x, self.A)], self.b + TOLERANCE * self._scale)

    def meets(self, low: Array, high: Array) -> Array:
        """Each half-space by itself meets it: a corner of the polytope may miss a box of which that is true."""
        over = ((high >= self.low) & (low <= self.high)).all(axis=1)
        return over & self._below(self._corners(low, high), self.b + SPARE * self._scale)

    def within(self, low: Array, high: Array) -> Array:
        inside = ((low >= self.low) & (high <= self.high)).all(axis=1)
        return inside & self._below(self._corners(high, low), self.b - SPARE * self._scale)

    def anchor(self, low: Array, high: Array) -> Array:
        """Projections onto the half-spaces in turn, kept in the box; else a point in the middle of the polytope."""
        x, size = (low + high) / 2, (self.A**2).sum(axis=1)
        least = np.maximum(low, self.low)
        most = np.maximum(np.minimum(high, self.high), least)
        left = np.flatnonzero((most > least).any(axis=1))  # of a single point, one in the middle
        x[(most <= least).all(axis=1)] = self._middle
        for _ in range(_ROUNDS if len(left) else 0):
            y = x[left]
            for i in np.flatnonzero(size > 0):
                y = y - np.maximum(y @ self.A[i] - self.b[i], 0.0)[:, None] / size[i] * self.A[i]
                y = np.clip(y, least[left], most[left])
            x[left] = y
            left = left[~self.contains(y)]
        x[left] = self._middle
        return x

    @cached_property
    def _middle(self) -> Array:
        """The centre of the largest ball inside."""
        A = np.concatenate([self.A, np.eye(self.size), -np.eye(self.size)])
        b = np.concatenate([self.b, self.high, -self.low])
        norms = np.linalg.norm(A, axis=1)
        found = _solved(np.append(np.zeros(self.size), -1.0), np.column_stack([A, norms]), b)
        deep = found is not None and found.x[-1] > 1e-9 * float((self.high - self.low).max())
        if found is None or not deep or not self.contains(found.x[None, :-1]).all():
            raise InvalidInput(
                "A polytope must have an interior; this one is empty or flat. Probability vectors are te.domains."
                "Simplex()."
            )
        return found.x[:-1]

    def words(self) -> str:
        return f"the polytope of {len(self.b)} inequalities in {self.size} numbers"

    def describe(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("A", "b", "low", "high")}
        return {"kind": self.kind, **arrays}

    def _corners(self, at_positive: Array, at_negative: Array) -> list[tuple[Array, Array]]:
        """A x at the corner of every box that these two sides give is the sum of these products."""
        return [(at_positive, np.maximum(self.A, 0)), (at_negative, np.minimum(self.A, 0))]

    def _below(self, products: list[tuple[Array, Array]], most: Array) -> Array:
        """Whether the sum of x @ A.T is at most that, row by row: for some points at a time."""
        step = max(1, AT_ONCE // len(self.b))
        found = np.zeros(len(products[0][0]), dtype=bool)
        for i in range(0, len(found), step):
            part = slice(i, i + step)
            found[part] = (sum(x[part] @ A.T for x, A in products) <= most).all(axis=1)
        return found


def _around(A: Array, b: Array) -> Box:
    """A box that holds {A x ≤ b}, a little wider than the solver says: it is part of what the polytope is.

    **The solver is not believed**; it drops coefficients below 1e-9. Its multipliers y ≥ 0 for a direction e = ± e_i
    prove a bound whatever they are: e·x = y·A x + (e − A^T y)·x ≤ y·b + r·|x| with r = |e − A^T y|. For all directions
    together: |x| ≤ B + M|x|, B and M the larger of both signs. If some X > 0 has B + M X ≤ X and B > 0, then M X < X,
    so M has a spectral radius below 1 (Collatz and Wielandt). A direction d along which the set is unbounded has
    A d ≤ 0, so |d| ≤ M|d|, so d = 0; and |x| ≤ (1 − M)^-1 B ≤ X. So e·x ≤ y·b + r·X. ∎ Sums are rounded upwards by γ.
    """
    rows, size = A.shape
    largest = np.abs(A).max(axis=1)
    scale = np.ldexp(1.0, -np.frexp(np.where(largest > 0, largest, 1.0))[1])  # rows about as large as 1, exactly
    A, b = A * scale[:, None], b * scale
    directions = np.concatenate([np.eye(size), -np.eye(size)])
    found = [_solved(-direction, A, b) for direction in directions]
    solved = [one for one in found if one is not None]
    if len(solved) < len(found):
        raise InvalidInput("A polytope must be bounded and not empty; this one is not. Add inequalities.")
    y = np.maximum([one.ineqlin.marginals * -1 for one in solved], 0.0)
    γ = (rows + 8) * np.finfo(np.float64).eps
    r = np.abs(directions - y @ A) + γ * (y @ np.abs(A) + np.abs(directions))
    reach = y @ b + γ * (y @ np.abs(b))
    M, B = np.maximum(r[:size], r[size:]) * (1 + γ), np.maximum(reach[:size], reach[size:])
    B = np.maximum(B, 0.0) + 1e-9 * np.abs(B).max() + np.finfo(np.float64).tiny
    X = B
    for _ in range(_ROUNDS * 8):
        if (B + M @ X <= X).all():
            break
        X = (B + M @ X) * (1 + 1e-9)
    else:
        raise InvalidInput(
            "No box around this polytope is proved: it is unbounded, or its coefficients are too far apart. Give the "
            "ends of one, low=… and high=…."
        )
    proved = np.nextafter(reach + (r @ X) * (1 + γ), np.inf)
    seen = np.array([float(direction @ one.x) for direction, one in zip(directions, solved, strict=True)])
    room = _ROOM * np.maximum(seen[:size] + seen[size:], SPARE)
    ends = np.maximum(seen + np.tile(room, 2), proved)
    return Box(-ends[size:], ends[:size])


def _solved(cost: Array, A: Array, b: Array) -> Any:
    """The solver's answer to: the least cost · x with A x ≤ b; None if it has none."""
    from scipy.optimize import linprog

    found = linprog(cost, A_ub=A, b_ub=b, bounds=(None, None))
    return found if found.status == 0 else None
