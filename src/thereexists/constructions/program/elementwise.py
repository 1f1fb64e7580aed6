"""What one feed-forward half computes of a token by itself, exactly. Here ``abs`` is a program's, not Python's."""

from __future__ import annotations

from typing import Any

from thereexists.constructions.program.given import finite_number
from thereexists.constructions.program.graph import Value, as_value, only_value, same_shape
from thereexists.core.errors import InvalidInput


def relu(x: Value) -> Value:
    """max(x, 0), token by token: exact.

        P.relu(P.tokens(n=4) - 0.5)

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    x = only_value("relu", x)
    return Value("relu", (x,), x.n, x.d)


def abs(x: Value) -> Value:
    """|x|, token by token: exact.

        P.abs(P.tokens(n=4) - 0.5)

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    x = only_value("abs", x)
    return Value("abs", (x,), x.n, x.d)


def maximum(a: Any, b: Any) -> Value:
    """The larger of two, token by token: exact.

        P.maximum(P.tokens(n=4), 0.5)

    Args:
        a: a value, a number or an array.
        b: the same; one of the two is a value.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: neither is a value of a program, or their shapes differ.
    """
    return _two("maximum", a, b)


def minimum(a: Any, b: Any) -> Value:
    """The smaller of two, token by token: exact.

        P.minimum(P.tokens(n=4), 0.5)

    Args:
        a: a value, a number or an array.
        b: the same; one of the two is a value.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: neither is a value of a program, or their shapes differ.
    """
    return _two("minimum", a, b)


def _two(name: str, a: Any, b: Any) -> Value:
    like = only_value(name, a if isinstance(a, Value) else b)
    a, b = as_value(name, a, like), as_value(name, b, like)
    same_shape(name, a, b)
    return Value(name, (a, b), like.n, like.d)


def clip(x: Value, low: float, high: float) -> Value:
    """x, moved to the nearer end where it is outside [low, high]: exact.

        P.clip(P.tokens(n=4), 0.25, 0.75)

    Args:
        x: a value of the program.
        low: the lower end.
        high: the upper end.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, or the ends are not finite numbers in order.
    """
    x = only_value("clip", x)
    low, high = (finite_number("clip", end, given) for end, given in (("low", low), ("high", high)))
    if not low <= high:
        raise InvalidInput(f"'clip' takes ends low ≤ high; got {low} and {high} instead.")
    return Value("clip", (x,), x.n, x.d, {"low": low, "high": high})
