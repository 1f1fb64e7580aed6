"""Along the tokens: one number of all of them, or of all up to here. ``sum``, ``max`` and ``min`` are a program's here.

As NumPy's with ``axis=0, keepdims=True``, and then broadcast: every token gets the result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from thereexists.constructions.program.elementwise import maximum, minimum
from thereexists.constructions.program.graph import Value, is_shorter, only_value
from thereexists.constructions.program.operations import scale, take


def mean(x: Value) -> Value:
    """Every token becomes the mean of all.

        P.mean(P.tokens(n=4))

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    x = only_value("mean", x)
    return Value("mean", (x,), x.n, x.d, {"scale": 1})


def sum(x: Value) -> Value:
    """Every token becomes the sum of all.

        P.sum(P.tokens(n=4))

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    x = only_value("sum", x)
    operation, settings = ("sum", {"n": x.n}) if is_shorter(x) else ("mean", {"scale": x.n})
    return Value(operation, (x,), x.n, x.d, settings)


def prefix_mean(x: Value) -> Value:
    """Token i becomes the mean of the tokens 0 … i.

        P.prefix_mean(P.tokens(n=4))

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    x = only_value("prefix_mean", x)
    return Value("prefix_mean", (x,), x.n, x.d)


def cumsum(x: Value) -> Value:
    """Token i becomes the sum of the tokens 0 … i, by doubling: after round k it has that of i − 2^k + 1 … i.

        P.cumsum(P.tokens(n=4))

    Reading before the beginning would have to give 0; instead x(0) is replaced by 0, such reads go to token 0, and x(0)
    is added at the end. ⌈log2 n⌉ + 1 blocks, and no token ever looks ahead.

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    x = only_value("cumsum", x)
    y = scale(x, (np.arange(x.n)[:, None] > 0) * 1.0)
    for k in range((x.n - 1).bit_length()):
        y = y + take(y, np.maximum(np.arange(x.n) - 2**k, 0), "cumsum")
    return y + take(x, np.zeros(x.n, dtype=np.int64), "cumsum")


def cummax(x: Value) -> Value:
    """Token i becomes the largest of the tokens 0 … i, by doubling; token 0 may take part more than once.

        P.cummax(P.tokens(n=4))

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    return _cumulative("cummax", maximum, x)


def cummin(x: Value) -> Value:
    """Token i becomes the smallest of the tokens 0 … i.

        P.cummin(P.tokens(n=4))

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    return _cumulative("cummin", minimum, x)


def _cumulative(name: str, better: Callable[[Value, Value], Value], x: Value) -> Value:
    x = only_value(name, x)
    for k in range((x.n - 1).bit_length()):
        x = better(x, take(x, np.maximum(np.arange(x.n) - 2**k, 0), name))
    return x


def max(x: Value) -> Value:
    """Every token becomes the largest: a tournament of log2 n rounds.

        P.max(P.tokens(n=4))

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    return _tournament("max", maximum, x)


def min(x: Value) -> Value:
    """Every token becomes the smallest.

        P.min(P.tokens(n=4))

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    return _tournament("min", minimum, x)


def _tournament(name: str, better: Callable[[Value, Value], Value], x: Value) -> Value:
    x = only_value(name, x)
    if is_shorter(x):
        return Value(name, (x,), x.n, x.d)
    for k in range((x.n - 1).bit_length()):  # after round k token i has the best of i, i+1, …, i+2^(k+1)−1
        x = better(x, take(x, (np.arange(x.n) + 2**k) % x.n, name))
    return x
