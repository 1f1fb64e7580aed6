"""Numbers in the residual stream: rows, and who writes them. What the weights of a checkpoint are compared with.

Row 0 is the constant, and stands for 1. Rows of the input hold the tokens' features, rows of a *table* numbers that
depend on the position only; both are in ``inputs_embeds``. Every other row is 0 until one layer writes it, once:

    ``Hinges``    Σ a_k ReLU(±x + s_k), by SwiGLU units whose other factor is constant;
    ``Products``  Σ a_k g_k x_k, by units whose gate g_k is wide open or shut;
    ``Fetched``   a number of another token, or its mean over all tokens so far, by a head.

A *form* is Σ c_r row_r with exact numbers c_r. A ``Real`` is one feature of a value of the program, at all tokens: the
form that stands for it, and where the feature itself lies. Linear operations change forms and write nothing, so they
cost no error: a form is a number that no layer computes.

Layers: the rows of the embedding are there at time 0, what the heads of layer t write at 2t + 1, its units at 2t + 2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from thereexists.certificates.program_forms import LONGEST
from thereexists.certificates.program_numbers import TINY, Number, exact
from thereexists.core.errors import NotProved
from thereexists.core.rounded_figures import power_of_two, rounded_up
from thereexists.functions.target import Array

CONSTANT = 0
HEAD = 64  # the size of a head, and how many rows one may fetch
MOST_ROWS, MOST_LAYERS, MOST_UNITS, MOST_HEADS = 1 << 10, 64, 1 << 14, 64
LARGEST = 2.0**40  # that a value may be
MOST_NUMBERS = 1 << 20  # in all forms together, and in what they are made of
_AT_ONCE = 1 << 18
SMALL, LARGE = exact(2.0**-1000), exact(2.0**1000)  # between which coefficients lie
WIDER = 2.0**-45  # by which ranges are widened at least, for the float64 they are added up in: see ``wider``

Form = dict[int, Number]


@dataclass(frozen=True)
class Row:
    """From when on it holds something; of a table what it is at every position, ``span`` the most it can be."""

    time: int
    span: Array
    table: Array | None = None
    given: bool = False  # a feature of the input


@dataclass(frozen=True)
class Write(ABC):
    """``lean``: for each number that the operation is given, how far the row moves with it beside the result."""

    row: int
    layer: int
    lean: tuple[float, ...]

    by_head: ClassVar[bool] = False

    @abstractmethod
    def columns(self, size: int) -> list[int]:
        """Of ``down_proj`` or ``o_proj``, with heads of that size: what the row is written from."""


@dataclass(frozen=True)
class Hinge:
    """a·ReLU(sign·of + shift)."""

    a: Number
    of: Real
    shift: Number = 0
    sign: int = 1

    @property
    def form(self) -> Form:
        return summed([(self.sign, self.of.form)], self.shift)

    @property
    def size(self) -> Array:
        """The most that its argument is."""
        shift = self.sign * float(self.shift)
        return size_of(*wider(self.of.low + shift, self.of.high + shift, self.of.size + abs(shift), 2))


@dataclass(frozen=True)
class Hinges(Write):
    units: range
    parts: tuple[Hinge, ...]

    def columns(self, size: int) -> list[int]:
        return list(self.units)


@dataclass(frozen=True)
class Products(Write):
    units: range
    parts: tuple[tuple[Number, Real, Real], ...]

    def columns(self, size: int) -> list[int]:
        return list(self.units)


@dataclass(frozen=True)
class Fetched(Write):
    head: int
    slot: int
    of: Real
    source: tuple[int, ...] | None

    by_head: ClassVar[bool] = True

    def columns(self, size: int) -> list[int]:
        return [self.head * size + self.slot]


@dataclass(frozen=True)
class Head:
    """``source``: for every token the one it looks at, by the rows of its code; None: all tokens so far, equally."""

    source: tuple[int, ...] | None
    queries: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Real:
    """``low`` and ``high`` (n,) hold the program's own number. ``grows``: its error, of those of what it is given,

    before what its row adds to it.
    """

    form: Form
    low: Array
    high: Array
    given: tuple[Real, ...] = ()
    grows: Callable[..., Array] = lambda: np.zeros(1)
    write: Write | None = None

    @property
    def size(self) -> Array:
        return size_of(self.low, self.high)

    @property
    def exact(self) -> bool:
        """Whether it is a number of the program itself, the same at every token."""
        return not self.given and all(row == CONSTANT for row in self.form)

    @property
    def known(self) -> bool:
        """Whether it is a number that depends on the position only, known exactly."""
        return bool((self.low == self.high).all())


@dataclass
class Network:
    """What has been wired so far, for n tokens."""

    n: int
    rows: list[Row] = field(default_factory=list)
    reals: list[Real] = field(default_factory=list)
    outputs: list[Real] = field(default_factory=list)
    heads: list[list[Head]] = field(default_factory=list)
    units: list[int] = field(default_factory=list)
    numbers: int = 0
    _tables: dict[bytes, int] = field(default_factory=dict)
    _slots: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._row(Row(0, np.ones(self.n)))
        self._reach(0)

    @property
    def layers(self) -> int:
        return len(self.units)

    @property
    def inputs(self) -> list[int]:
        return [r for r, row in enumerate(self.rows) if row.given]

    # --- what is given ---------------------------------------------------------------------------------------------

    def input(self, low: float, high: float) -> Real:
        ends = np.full(self.n, low), np.full(self.n, high)
        row = self._row(Row(0, size_of(*ends), given=True))
        return self.added(Real({row: 1}, *ends))

    def number(self, value: Number) -> Real:
        """The same at every token."""
        check_numbers([value])
        low = high = np.full(self.n, float(value))
        low, high = (low, high.copy()) if exact(float(value)) == value else wider(low, high, np.abs(low), 1)
        return self.added(Real({CONSTANT: value} if value != 0 else {}, low, high))

    def table(self, values: Array) -> Real:
        """A number for every position."""
        if (values == values[0]).all():
            return self.number(exact(values[0]))
        return self.added(Real({self._table(values): 1}, values, values.copy()))

    def _table(self, values: Array) -> int:
        key = values.tobytes()
        if key not in self._tables:
            self._tables[key] = self._row(Row(0, np.abs(values), table=values))
        return self._tables[key]

    # --- what is made ----------------------------------------------------------------------------------------------

    def combined(self, parts: list[tuple[Number, Real]], constant: Number = 0) -> Real:
        """Σ c·x + constant, which no layer has to compute."""
        self.work(sum(max(1, len(real.form)) for _, real in parts))
        times: dict[Real, Number] = {}  # a number that stands there twice has one range and one error
        for c, real in parts:
            times[real] = exact(times.get(real, 0) + c)
        parts = [(c, real) for real, c in times.items() if c != 0]
        check_numbers(c for c, _ in parts)
        form = summed([(c, real.form) for c, real in parts], constant)
        if all(real.exact for _, real in parts):
            return self.number(form.get(CONSTANT, 0))
        sizes = [abs(float(c)) for c, _ in parts]
        low, high = self._range(parts, float(constant))

        def grows(*errors: Array) -> Array:
            return sum((c * e for c, e in zip(sizes, errors, strict=True)), start=np.zeros(self.n))

        return self.added(Real(form, low, high, tuple(real for _, real in parts), grows))

    def _range(self, parts: list[tuple[Number, Real]], constant: float) -> tuple[Array, Array]:
        """Ends of Σ c·x + constant, some parts at a time."""
        low = high = np.full(self.n, constant)
        summands, some = np.abs(low), max(1, _AT_ONCE // self.n)
        for k in range(0, len(parts), some):
            c = np.array([float(c) for c, _ in parts[k : k + some]])[:, None]
            ends = np.array([(real.low, real.high) for _, real in parts[k : k + some]])  # (parts, 2, n)
            with np.errstate(over="ignore"):
                first, second = c * ends[:, 0], c * ends[:, 1]
            size = size_of(first, second)
            if not (size < 2.0**1000).all():
                raise NotProved("a part of a sum may be larger than float64 holds.")
            low, high = low + np.minimum(first, second).sum(axis=0), high + np.maximum(first, second).sum(axis=0)
            summands = summands + size.sum(axis=0)
        return wider(low, high, summands, len(parts) + 1)

    def unit_row(self, forms: list[Form], units: int, span: Array) -> tuple[int, int, range]:
        """A row that units of the first layer write that has these forms: its number, the layer, the units."""
        time = max(self._time(form) for form in forms)
        for form in forms:
            check_numbers(form.values())
        layer = max(0, time // 2)  # ⌈(time − 1)/2⌉
        row = self._row(Row(2 * layer + 2, span))
        self._reach(layer)
        first = self.units[layer]
        self.units[layer] += units
        if self.units[layer] > MOST_UNITS:
            raise NotProved(f"layer {layer + 1} takes more than {MOST_UNITS:,} units.")
        return row, layer, range(first, first + units)

    def fetched_row(self, form: Form, source: tuple[int, ...] | None, span: Array) -> tuple[int, int, int, int]:
        """A row that a head writes: its number, the layer, the head, the place in it."""
        layer = (self._time(form) + 1) // 2
        row = self._row(Row(2 * layer + 1, span))
        self._reach(layer)
        heads = self.heads[layer]
        head = next((h for h, one in enumerate(heads) if one.source == source and self._slots[layer, h] < HEAD), None)
        if head is None:
            head = len(heads)
            heads.append(self._looking(source))
            self._slots[layer, head] = 0
            if len(heads) > MOST_HEADS:
                raise NotProved(f"layer {layer + 1} takes more than {MOST_HEADS} heads.")
        slot = self._slots[layer, head]
        self._slots[layer, head] += 1
        return row, layer, head, slot

    def _looking(self, source: tuple[int, ...] | None) -> Head:
        """Positions have codes of ±1, bit by bit; the query is the code of the position that is looked at."""
        if source is None:
            return Head(None)
        bits, here = range((self.n - 1).bit_length()), np.arange(self.n)
        codes = [[self._table(((part >> b) & 1) * 2.0 - 1.0) for b in bits] for part in (np.array(source), here)]
        return Head(source, tuple(codes[0]), tuple(codes[1]))

    def added(self, real: Real) -> Real:
        if not (np.isfinite(real.low).all() and np.isfinite(real.high).all() and real.size.max() <= LARGEST):
            raise NotProved(
                f"a value may be as large as {rounded_up(real.size.max(), 3)}; at most {power_of_two(LARGEST)} is run."
            )
        self.work(len(real.form))
        check_numbers(real.form.values())
        self.reals.append(real)
        return real

    def work(self, numbers: int) -> None:
        """Before it is done: a short file must not ask for more numbers than a machine goes through in a moment."""
        self.numbers += numbers
        if self.numbers > MOST_NUMBERS:
            raise NotProved(f"it takes more than {MOST_NUMBERS:,} coefficients.")

    def _row(self, row: Row) -> int:
        self.rows.append(row)
        if len(self.rows) > MOST_ROWS:
            raise NotProved(f"it takes more than {MOST_ROWS:,} rows.")
        return len(self.rows) - 1

    def _time(self, form: Form) -> int:
        return max((self.rows[row].time for row in form), default=0)

    def _reach(self, layer: int) -> None:
        if layer >= MOST_LAYERS:
            raise NotProved(f"it takes more than {MOST_LAYERS} layers.")
        while len(self.units) <= layer:
            self.units.append(0)
            self.heads.append([])


def summed(parts: list[tuple[Number, Form]], constant: Number = 0) -> Form:
    found: Form = {CONSTANT: constant}
    for c, form in parts:
        for row, weight in form.items():
            found[row] = exact(found.get(row, 0) + c * weight)
            if bits(found[row]) > LONGEST:
                raise NotProved(_TOO_LONG)
    return {row: c for row, c in found.items() if c != 0}


_TOO_LONG = f"it takes a coefficient of more than {LONGEST:,} bits, or one that float64 does not hold."


def check_numbers(numbers: Iterable[Number]) -> None:
    """Whether coefficients are of a length that is followed, and of a size that float64 holds."""
    if any(bits(c) > LONGEST or not SMALL < abs(c) < LARGE for c in numbers if c != 0):
        raise NotProved(_TOO_LONG)


def bits(number: Number) -> int:
    parts = (number,) if isinstance(number, int) else (int(number.p), int(number.q))
    return max(part.bit_length() for part in parts)


def wider(low: Array, high: Array, summands: Array, terms: int) -> tuple[Array, Array]:
    """Ends that were added up in float64, in any order, from so many numbers of this size together, moved outward.

    Let u = 2^-53, S the exact sum of sizes, k ``terms`` < 2^48. A term is a product, of a factor that was rounded, so
    each end is off by at most γ_{k+2} S, γ_m = m u/(1 − m u) (Higham 2002, section 3.1), and ``summands`` is at least
    (1 − γ_{k+2}) S. As 1/(1 − 2(k + 2)u) ≤ 16/15, that is at most 16/15 (k + 2)u of ``summands``; two more roundings
    are made here, of numbers up to 17/16 of it. Both fit into (k + 4)·2^-52 = 2(k + 4)u with more than (k + 2)u/2 to
    spare, which is more than the k·2^-1074 that underflow where ``summands`` ≥ 2^-1000. Where it is less, TINY is more
    than all that, and is not rounded away beside it; a large factor later would not bring back what underflowed.
    """
    share = max(WIDER, (terms + 4) * 2.0**-52) * summands
    return low - share - TINY, high + share + TINY


def size_of(low: Array, high: Array) -> Array:
    return np.maximum(np.abs(low), np.abs(high))
