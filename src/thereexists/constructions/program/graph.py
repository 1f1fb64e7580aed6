"""Stage 1, the graph: a program is a value with the values it is made of; nothing is computed here.

Every value is a symbolic array (n, d): n tokens with d features each. Equal subexpressions are the same node for the
compiler: two nodes with one operation, one set of parameters and the same arguments have one ``key``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar
from weakref import ref

import numpy as np

from thereexists.constructions.program.given import (
    LARGEST,
    SMALLEST,
    describe,
    finite_number,
    has_dimensions,
    real_array,
)
from thereexists.constructions.program.spelling import Spelling
from thereexists.core.errors import InvalidInput
from thereexists.core.notebook import InNotebook

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Value(Spelling, InNotebook):
    """One operation on earlier values. ``settings`` are its parameters, in a fixed order.

        x = P.tokens(n=4)
        0.5 * x + P.mean(x)

    Sums, products and quotients are here; what else Python and NumPy can write is in ``spelling.py``.

    Args:
        operation: its name.
        arguments: earlier values.
        n: how many tokens.
        d: how many features.
        settings: its parameters.
    """

    built_by: ClassVar = {"program": "program"}  # see ``constructions/build.py``

    operation: str
    arguments: tuple[Value, ...]
    n: int
    d: int
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.operation}(n={self.n}, d={self.d})"

    def __add__(self, other: Any) -> Value:
        return linear("+", (1.0, 1.0), (self, other), self)

    def __sub__(self, other: Any) -> Value:
        return linear("-", (1.0, -1.0), (self, other), self)

    def __rsub__(self, other: Any) -> Value:
        return linear("-", (1.0, -1.0), (other, self), self)

    def __mul__(self, other: Any) -> Value:
        if isinstance(other, Value):
            from thereexists.constructions.program.operations import multiply

            return multiply(self, other)
        if has_dimensions(other):
            from thereexists.constructions.program.operations import scale

            return scale(self, other)
        return linear("*", (finite_number("*", "factor", other),), (self,), self)

    def __truediv__(self, other: Any) -> Value:
        if isinstance(other, Value):
            from thereexists.constructions.program.operations import divide

            return divide(self, other)
        if has_dimensions(other) or abs(number := finite_number("/", "divisor", other)) < SMALLEST:
            raise InvalidInput("'/' divides a value by a value, or by a number other than 0, at least 2^-900 in size.")
        if Fraction(1.0 / number) * Fraction(number) == 1:
            return linear("/", (1.0 / number,), (self,), self)
        return linear("/", (1.0,), (self,), self, divisor=number)  # the quotient is meant, not times a rounded 1/number

    def __rtruediv__(self, other: Any) -> Value:
        from thereexists.constructions.program.operations import divide

        return divide(other, self)

    def __neg__(self) -> Value:
        return linear("-", (-1.0,), (self,), self)

    __radd__ = __add__
    __rmul__ = __mul__


class Notes(Generic[T]):
    """What is remembered of values, each by its identity (``==`` is refused), as long as it lives."""

    def __init__(self) -> None:
        self._notes: dict[int, tuple[ref[Value], T]] = {}

    def __contains__(self, value: Value) -> bool:
        return id(value) in self._notes

    def __getitem__(self, value: Value) -> T:
        return self._notes[id(value)][1]

    def __setitem__(self, value: Value, note: T) -> None:
        number = id(value)
        self._notes[number] = (ref(value, lambda _: self._notes.pop(number, None)), note)

    def setdefault(self, value: Value, note: T) -> T:
        if value not in self:
            self[value] = note
        return self[value]


def nodes(output: Value) -> Iterator[Value]:
    """Everything the output depends on, arguments before those who use them."""
    seen: set[int] = set()
    stack: list[tuple[Value, bool]] = [(output, False)]
    while stack:
        value, ready = stack.pop()
        if ready:
            yield value
        elif id(value) not in seen:
            seen.add(id(value))
            stack.append((value, True))
            stack += [(argument, False) for argument in reversed(value.arguments)]


def are_the_same(a: Value, b: Value) -> bool:
    """Whether two values are one operation, with the same settings, of the same values, though written twice."""
    pairs, seen = [(a, b)], set()
    while pairs:
        a, b = pairs.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        seen.add((id(a), id(b)))
        alike = (a.operation, a.n, a.d, len(a.arguments)) == (b.operation, b.n, b.d, len(b.arguments))
        if not alike or a.operation == "tokens" or a.settings.keys() != b.settings.keys():
            return False
        if not all(_equal(setting, b.settings[name]) for name, setting in a.settings.items()):
            return False
        pairs += zip(a.arguments, b.arguments, strict=True)
    return True


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return a is b if callable(a) else bool(a == b)


def linear(
    name: str, coefficients: tuple[float, ...], arguments: tuple[Any, ...], like: Value, divisor: float | None = None
) -> Value:
    """The sum of the arguments, each times its coefficient; all of it over the ``divisor``, if there is one."""
    values = tuple(as_value(name, argument, like) for argument in arguments)
    same_shape(name, *values)
    settings = {"coefficients": coefficients} | ({} if divisor is None else {"divisor": divisor})
    return Value("linear", values, like.n, like.d, settings)


def as_value(name: str, argument: Any, like: Value) -> Value:
    """A value as it is; a number or an array becomes a constant of the shape of ``like``."""
    if isinstance(argument, Value):
        return argument
    try:
        array = real_array(name, "values, numbers or arrays", argument)
        if array.shape == (like.n,) and like.n == like.d > 1:
            raise InvalidInput(
                f"'{name}' cannot tell whether {like.n} numbers are for the {like.n} tokens or the {like.d} features; "
                f"give an array of the shape ({like.n}, 1) or (1, {like.d})."
            )
        array = array[:, None] if array.shape == (like.n,) else array
        full = np.array(np.broadcast_to(array, (like.n, like.d)))
    except InvalidInput:
        raise
    except ValueError:
        raise InvalidInput(
            f"'{name}' takes values, numbers or arrays of the shape ({like.n}, {like.d}) or ({like.n},); "
            f"got {describe(argument)} instead."
        ) from None
    if not np.isfinite(full).all():
        raise InvalidInput(f"'{name}' takes finite constants; got {full[~np.isfinite(full)][0]} instead.")
    if (np.abs(full) > LARGEST).any():
        raise InvalidInput(
            f"'{name}' takes constants of at most 2^100, to stay within float32; got {np.abs(full).max()}."
        )
    return Value("constant", (), like.n, like.d, {"array": full})


def same_shape(name: str, *values: Value) -> None:
    lengths = sorted({value.n for value in values})
    widths = sorted({value.d for value in values})
    if len(lengths) > 1:
        raise InvalidInput(
            f"'{name}' takes values of one program; got values of n = {lengths[0]} and n = {lengths[1]}."
        )
    if len(widths) > 1:
        raise InvalidInput(
            f"'{name}' takes values with the same number of features; got d = {widths[0]} and d = {widths[1]}."
        )


def only_value(name: str, argument: Any) -> Value:
    if not isinstance(argument, Value):
        raise InvalidInput(f"'{name}' takes a value of a program; got {describe(argument)}. Begin with tokens(n).")
    return argument


def is_shorter(x: Value) -> bool:
    """Whether a value is one of a program for all lengths up to n."""
    return any(node.operation == "tokens" and node.settings["shorter"] for node in nodes(x))
