"""{x : h(x) ≤ 0} in a box, by a Lipschitz constant or an interval extension of h.

A box with centre c and half length r misses D if h(c) − L r > 0, and is part of it if h(c) + L r < 0; what is between
is undecided, and counts as meeting it. h is the user's code: a record keeps its name and its file's hash, never the
code, and whoever verifies gives it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, final

import numpy as np

from thereexists.core.authors_word import as_its_author_says
from thereexists.core.errors import InvalidInput, InvalidTarget, Obstructed, ThereExistsError
from thereexists.core.memory import unless_memory
from thereexists.core.printed import printed_to_stderr
from thereexists.core.rounded_figures import power_of_two
from thereexists.core.user_file import name_in_file
from thereexists.functions.domains.domain import SPARE, Array, Domain, Ends
from thereexists.functions.domains.shapes import Box
from thereexists.functions.given import enclosed, real, size_or_none

_PAIRS = 4096  # on which the claims about h are tried
_AT_ONCE = 1 << 16


@final
@dataclass(frozen=True, eq=False)
class Implicit(Domain):
    """``h`` maps arrays (batch, size) to (batch,); ``low``, ``high``: the ends of a box, numbers or one for each entry.

    ``lipschitz``: |h(x) − h(y)| ≤ lipschitz · max|x − y|. ``interval``: maps (low, high) to ends of h on these boxes.
    With ``whole``, numbers are ends of all entries of a sequence, and not of a token.
    """

    h: Callable[[Any], Any]
    low: Any = 0.0
    high: Any = 1.0
    lipschitz: float | None = None
    interval: Callable[[Array, Array], tuple[Array, Array]] | None = None
    whole: bool = False
    origin: dict[str, Any] = field(default_factory=dict)
    kind: ClassVar[str] = "implicit"

    def __post_init__(self) -> None:
        box = Box(self.low, self.high)
        stated = self.lipschitz is not None or self.interval is not None
        if not callable(self.h) or not stated:
            raise InvalidInput(
                "An implicit domain is {h ≤ 0}: give a function h, and its Lipschitz constant (lipschitz=…) or an "
                "interval extension of it (interval=…)."
            )
        object.__setattr__(self, "lipschitz", size_or_none("lipschitz", self.lipschitz))
        if self.lipschitz is not None and self.lipschitz > 1e50:
            raise InvalidInput(f"'lipschitz' must be a number from 0 to 1e50; got {self.lipschitz!r} instead.")
        object.__setattr__(self, "low", box.low)
        object.__setattr__(self, "high", box.high)

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.low)

    def sized(self, n: int, d: int) -> Domain:
        if self.size > 1:
            return super().sized(n, d)
        size = n * d if self.whole else d
        return replace(self, low=np.tile(self.low, size), high=np.tile(self.high, size))

    @property
    def ends(self) -> Ends:
        return self.low, self.high

    def contains(self, x: Array) -> Array:
        inside = np.asarray(((x >= self.low) & (x <= self.high)).all(axis=1))
        if inside.any():
            inside[inside] = self.values(x[inside]) <= 0
        return inside

    def meets(self, low: Array, high: Array) -> Array:
        """By the part of the box that lies in ours: nothing is claimed of h elsewhere."""
        low, high = np.maximum(low, self.low), np.minimum(high, self.high)
        over = np.asarray((low <= high).all(axis=1))
        if over.any():
            over[over] = self._range(low[over], high[over])[0] <= 0
        return over

    def within(self, low: Array, high: Array) -> Array:
        inside = np.asarray(((low >= self.low) & (high <= self.high)).all(axis=1))
        if inside.any():
            inside[inside] = self._range(low[inside], high[inside])[1] < 0
        return inside

    def anchor(self, low: Array, high: Array) -> Array:
        return self.tried(np.maximum(low, self.low), np.minimum(high, self.high))

    def words(self) -> str:
        # Of a file the name alone: `verify` compares it, and what stands before it may be anything in a record.
        reference = self.origin.get("reference")
        name = name_in_file(reference) if reference else getattr(self.h, "__name__", "h")
        return f"the set where {name} ≤ 0 in the box from {self.low.tolist()} to {self.high.tolist()}"

    def command(self) -> str | None:
        return self.origin.get("reference")

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "lipschitz": self.lipschitz,
            "interval": self.interval is not None,
            "origin": self.origin,
        }

    def with_origin(self, origin: dict[str, Any]) -> Domain:
        return replace(self, origin=origin)

    @property
    def codes(self) -> tuple[Any, ...]:
        return (self.h, self.interval)

    def values(self, x: Array) -> Array:
        """h, checked: one finite number for every point."""
        parts = [self._called(x[i : i + _AT_ONCE]) for i in range(0, len(x), _AT_ONCE)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def assumptions(self) -> list[str]:
        said = []
        if self.lipschitz is not None:
            said.append(
                f"the function h of the domain has the Lipschitz constant {self.lipschitz!r} (maximum norm) and "
                f"is computed to within {power_of_two(SPARE)} · max(1, |h|)"
            )
        if self.interval is not None:
            said.append("the interval extension of the function h of the domain contains it")
        return said

    def refuted(self, seed: int) -> str | None:
        """From random pairs of the box."""
        rng = np.random.default_rng(seed)
        width = self.high - self.low
        x = self.low + width * rng.random((_PAIRS, self.size))
        y = np.clip(
            x + 10.0 ** rng.uniform(-4, 0, (_PAIRS, 1)) * width * rng.uniform(-1, 1, x.shape), self.low, self.high
        )
        low, high = self._range(np.minimum(x, y), np.maximum(x, y))
        at_x = self.values(x)
        off = (at_x < low) | (at_x > high)
        if self.lipschitz is not None:
            apart = np.abs(x - y).max(axis=1)
            off |= np.abs(at_x - self.values(y)) > self.lipschitz * apart + SPARE * np.maximum(1.0, np.abs(at_x))
        if not off.any():
            return None
        at = int(off.argmax())
        return f"between {x[at].tolist()} and {y[at].tolist()} the function h moves farther than it is claimed to"

    def _range(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Ends of h on the boxes, each widened by what h may round."""
        below, above = np.full(len(low), -np.inf), np.full(len(low), np.inf)
        if self.lipschitz is not None:
            at = self.values((low + high) / 2)
            move = self.lipschitz * (high - low).max(axis=1) / 2 * (1 + SPARE) + SPARE * np.maximum(1, np.abs(at))
            below, above = at - move, at + move
        if self.interval is not None:
            bottom, top = enclosed("the function h of a domain", self.interval, low, high, (len(low),))
            below, above = np.maximum(below, bottom), np.minimum(above, top)
        return below, above

    def _called(self, x: Array) -> Array:
        try:
            with printed_to_stderr():
                found = real(self.h(x.copy()))
        except ThereExistsError:
            raise
        except (Exception, SystemExit) as error:
            reason = unless_memory(error)
            raise InvalidTarget(f"The function h of a domain failed on an array {x.shape}: {reason}.") from error
        if found.shape != (len(x),) or not np.isfinite(found).all():
            raise InvalidTarget(
                f"The function h of a domain must return {len(x)} finite numbers for an array {x.shape}; it returned "
                f"{found.shape}."
            )
        return found


def missing(stored: dict[str, Any]) -> Implicit:
    """The domain of a record whose code is not here: it knows its box, and refuses every other question."""
    reference = as_its_author_says(stored["origin"].get("reference", "Python code"))

    def unavailable(*_: Any) -> Any:
        raise Obstructed(
            f"The domain of this witness is code, which is not stored in it: give it again, with --domain file.py:name "
            f"or target=… (it was built from {reference})."
        )

    extension = unavailable if stored["interval"] else None
    return Implicit(unavailable, stored["low"], stored["high"], stored["lipschitz"], extension, origin=stored["origin"])
