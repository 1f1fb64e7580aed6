"""What a user writes: ``tokens``, arithmetic, and the functions below. Bad input is refused here, by operation.

Named as NumPy names it, where NumPy has the same thing along the tokens; see also ``elementwise`` and ``reductions``.
Longer than 400 lines because every operation's arguments and an example stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from thereexists.constructions.program import splines
from thereexists.constructions.program.given import (
    any_array,
    finite_array,
    finite_number,
    has_dimensions,
    not_negative,
    positive,
    whole_number,
)
from thereexists.constructions.program.graph import Value, as_value, is_shorter, nodes, only_value, same_shape
from thereexists.constructions.program.kept_errors import DEFAULT, check_kept, product, spline
from thereexists.constructions.program.lowering import gate_height
from thereexists.constructions.program.ranges import approximation, value_range
from thereexists.core.errors import InvalidInput
from thereexists.core.rounded_figures import from_to
from thereexists.functions.target import Array


def tokens(n: int, d: int = 1, low: float = 0.0, high: float = 1.0, shorter: bool = False) -> Value:
    """The input: n tokens of d features, each anywhere between ``low`` and ``high``; ``shorter``: n at most.

        P.tokens(n=4, d=2, low=-1.0, high=1.0)

    Operations that cannot be right for every length up to n refuse a ``shorter`` input by name.

    Args:
        n: how many tokens.
        d: how many features a token has.
        low: the smallest number that an entry may be.
        high: the largest.
        shorter: whether sequences of 1 to n tokens are meant.

    Returns:
        The input of a program, a value.

    Raises:
        InvalidInput: a size is not a positive whole number, or the ends are not in order.
    """
    for name, size in (("n", n), ("d", d)):
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise InvalidInput(f"'tokens' takes a whole number {name} of at least 1; got {size!r} instead.")
    if n > 1 << 15:
        raise InvalidInput(f"'tokens' takes at most {1 << 15:,} tokens (codes of 15 bits); got {n:,} instead.")
    low, high = (finite_number("tokens", end, given) for end, given in (("low", low), ("high", high)))
    if not low < high:
        raise InvalidInput(f"'tokens' takes ends low < high; got {low} and {high} instead.")
    return Value("tokens", (), int(n), int(d), {"low": low, "high": high, "shorter": bool(shorter)})


def constant(array: Any, like: Value) -> Value:
    """A number, or an array (n,) or (n, d): the same for every input.

        P.constant([1.0, 2.0, 3.0, 4.0], like=P.tokens(n=4))

    In a program for shorter sequences too, its sums and maxima are over the tokens that are there. So it stands beside
    0 times the tokens: whoever reads it knows that some may be missing.

    Args:
        array: a number, or an array (n,) or (n, d).
        like: a value of the program that it stands beside.

    Returns:
        A value of the same shape as ``like``.

    Raises:
        InvalidInput: the array has another shape, or holds a number that is not finite.
    """
    like = only_value("constant", like)
    value = as_value("constant", array, like)
    shorter = next((node for node in nodes(like) if node.operation == "tokens" and node.settings["shorter"]), None)
    return value if shorter is None else value + mix(shorter, np.zeros((value.d, shorter.d)))


def mix(x: Value, matrix: Any) -> Value:
    """Every token's features times a matrix (features out, features in).

        P.mix(P.tokens(n=4, d=2), [[1.0, -1.0]])

    Args:
        x: a value of the program.
        matrix: (features out, features in).

    Returns:
        A value with as many features as the matrix has rows.

    Raises:
        InvalidInput: x is not a value of a program, or the matrix does not fit its features.
    """
    x = only_value("mix", x)
    matrix = finite_array("mix", "a matrix", matrix)
    if matrix.ndim != 2 or matrix.shape[1] != x.d or not len(matrix):
        raise InvalidInput(f"'mix' takes a matrix (out, {x.d}); got the shape {matrix.shape} instead.")
    return Value("mix", (x,), x.n, len(matrix), {"matrix": matrix})


def take(x: Value, indices: Any, called: str = "take") -> Value:
    """Token i becomes token ``indices[i]``. ``called`` is the name that errors and `listing` use.

        P.take(P.tokens(n=4), [3, 2, 1, 0])

    Args:
        x: a value of the program.
        indices: for every token the position that it reads.
        called: the name that errors and ``listing`` use.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, or an index is not a position.
    """
    x = only_value(called, x)
    places = any_array("take", "a list of whole numbers", indices)
    if places.shape != (x.n,) or not np.issubdtype(places.dtype, np.integer):
        raise InvalidInput(f"'take' takes {x.n} whole numbers, one for each token; got {_shape(places)} instead.")
    outside = places[(places < 0) | (places >= x.n)]
    if len(outside):
        raise InvalidInput(f"'take' takes positions from 0 to {x.n - 1}; got {outside[0]} instead.")
    return Value("take", (x,), x.n, x.d, {"source": tuple(places.tolist()), "called": called})


def roll(x: Value, shift: Any = 1) -> Value:
    """Token i becomes token i − shift, around the end.

        P.roll(P.tokens(n=4), 1)

    Args:
        x: a value of the program.
        shift: by how many positions, a whole number.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, or the shift is not a whole number.
    """
    x = only_value("roll", x)
    places = whole_number("roll", "a whole number of places", shift)
    if places and x.n > 1 and is_shorter(x):  # by n places too: the end of a shorter sequence is elsewhere
        raise InvalidInput(
            "'roll' goes around the end, which is elsewhere in each shorter sequence; give all n tokens."
        )
    return take(x, (np.arange(x.n) - places % x.n) % x.n, "roll")


def flip(x: Value) -> Value:
    """The tokens in reverse order.

        P.flip(P.tokens(n=4))

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    x = only_value("flip", x)
    return take(x, np.arange(x.n)[::-1], "flip")


def broadcast(x: Value, position: Any) -> Value:
    """Every token becomes the one at ``position``.

        P.broadcast(P.tokens(n=4), 0)

    Args:
        x: a value of the program.
        position: a position from 0 to n − 1.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, or there is no such position.
    """
    x = only_value("broadcast", x)
    if not isinstance(position, int | np.integer) or not 0 <= position < x.n:
        raise InvalidInput(f"'broadcast' takes a position from 0 to {x.n - 1}; got {position!r} instead.")
    return take(x, np.full(x.n, int(position)), "broadcast")


def sort(x: Value) -> Value:
    """Each feature in ascending order along the tokens.

        P.sort(P.tokens(n=4))

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    x = only_value("sort", x)
    return Value("sort", (x,), x.n, x.d)


def rank(x: Value, *, margin: float) -> Value:
    """How many tokens come before this one in ascending order; among equal ones, those to the left do.

        P.rank(P.tokens(n=4), margin=0.1)

    Right wherever different numbers differ by ``margin`` at least; closer ones count in part (see the proof).

    Args:
        x: a value of the program.
        margin: how far apart numbers must be that are to count as different, above 0.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, or the margin is not above 0.
    """
    x = only_value("rank", x)
    return Value("rank", (x,), x.n, x.d, {"margin": positive("rank", "margin", margin), "n": x.n})


def argsort(x: Value, *, margin: float) -> Value:
    """Token k becomes the position of the k-th smallest token, in the same sense as ``rank``.

        P.argsort(P.tokens(n=4), margin=0.1)

    Args:
        x: a value of the program.
        margin: how far apart numbers must be that are to count as different, above 0.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, or the margin is not above 0.
    """
    x = only_value("argsort", x)
    return Value("argsort", (x,), x.n, x.d, {"margin": positive("argsort", "margin", margin), "n": x.n})


def where(flag: Any, a: Any, b: Any) -> Value:
    """a where the flag is 1, b where it is 0. A flag is an array of zeros and ones, or a value between 0 and 1.

        P.where([1, 0, 1, 0], P.tokens(n=4), 0.0)

    For a flag strictly between 0 and 1 the result is what the formula of the primitive says: continuous, between the
    lower end of both and the larger of the two.

    Args:
        flag: an array of zeros and ones, or a value between 0 and 1.
        a: a value, a number or an array.
        b: the same.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: the flag is not one, or the shapes differ.
    """
    return where_between(flag, a, b, math.inf, -math.inf)


def where_between(flag: Any, a: Any, b: Any, low: float, high: float) -> Value:
    """``where`` whose formula is made for all numbers from ``low`` to ``high``, and for what a and b can be."""
    like = next((v for v in (a, b, flag) if isinstance(v, Value)), None)
    like = only_value("where", like)
    g, a, b = (as_value("where", v, like) for v in (flag, a, b))
    same_shape("where", g, a, b)
    if g.operation == "constant":
        if not np.isin(g.settings["array"], (0.0, 1.0)).all():
            raise InvalidInput("'where' takes a flag of zeros and ones; this array has other numbers.")
    else:
        (least, most), slack = value_range(g), approximation(g) + 2.0**-39
        if least < -slack or most > 1 + slack:
            raise InvalidInput(f"'where' takes a flag between 0 and 1; this one goes {from_to(least, most)}.")
    (low_a, high_a), (low_b, high_b) = value_range(a), value_range(b)
    bottom = min(low, low_a, low_b)
    settings = {"bottom": bottom, "height": gate_height(bottom, max(high, high_a, high_b))}
    return Value("where", (g, a, b), like.n, like.d, settings)


def interp(x: Value, knots: Any, values: Any) -> Value:
    """Token-wise, the straight lines through (knots, values), constant outside: exact.

        P.interp(P.tokens(n=4), [0.0, 0.5, 1.0], [0.0, 1.0, 0.0])

    Args:
        x: a value of the program.
        knots: increasing numbers.
        values: a number for each knot.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, or the knots do not increase.
    """
    x = only_value("interp", x)
    t, v = finite_array("interp", "knots", knots), finite_array("interp", "values", values)
    if t.ndim != 1 or t.shape != v.shape or len(t) < 2:
        raise InvalidInput(f"'interp' takes as many values as knots, two at least; got {t.shape}, {v.shape}.")
    if (np.diff(t) <= 0).any():
        raise InvalidInput("'interp' takes ascending knots; these are not.")
    return Value("interp", (x,), x.n, x.d, {"knots": t, "values": v})


def apply(
    function: Callable[[Array], Array], x: Value, *, epsilon: float | None = None, curvature: float | None = None
) -> Value:
    """Token-wise f, by a linear spline that is off by at most ``epsilon`` on the whole range of x.

        P.apply(np.sin, P.tokens(n=4), epsilon=1e-3)

    For the functions of ``splines.KNOWN`` (np.sin, np.exp, np.sqrt, np.tanh …) that is derived from enclosures of the
    second derivative, whatever ``curvature`` says. For any other one ``curvature`` must say how large it gets, and is
    believed.

    Args:
        function: a function of an array, entry by entry.
        x: a value of the program.
        epsilon: how far off it may be on the whole range of x; default: 1e-3, or more where float64 rounds more.
        curvature: the largest |f″| on that range, for a function that is not known; of a known one it is not used.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, the function is not known and has no ``curvature``, or float64
            values do not keep ``epsilon``.
    """
    x = only_value("apply", x)
    asked = DEFAULT if epsilon is None else positive("apply", "epsilon", epsilon)
    bend = None if curvature is None else not_negative("apply", "curvature", curvature)
    if splines.known_as(function) is not None:
        bend = None  # what is known needs nobody's word
    elif bend is None:
        known = ", ".join(known.name for f, known in splines.KNOWN.items() if not isinstance(f, splines.Power))
        raise InvalidInput(
            f"'apply' has no bound on the second derivative of this function {from_to(*value_range(x))}; "
            f"give curvature=, or take one that it knows ({known})."
        )
    found = spline(function, x, asked, bend)
    check_kept("apply", epsilon, found)
    return found


def multiply(a: Any, b: Any, *, epsilon: float | None = None) -> Value:
    """a·b, off by at most ``epsilon`` (plus what the errors of a and b make of themselves).

        x = P.tokens(n=4)
        P.multiply(x, x, epsilon=1e-3)

    Args:
        a: a value, a number or an array.
        b: the same; one of the two is a value.
        epsilon: how far off it may be; default: 1e-3, or more where float64 rounds more.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: neither is a value of a program, their shapes differ, ``epsilon`` is not above 0, or float64
            values do not keep it.
    """
    asked = DEFAULT if epsilon is None else positive("multiply", "epsilon", epsilon)
    like = only_value("multiply", a if isinstance(a, Value) else b)
    a, b = as_value("multiply", a, like), as_value("multiply", b, like)
    same_shape("multiply", a, b)
    found = product(a, b, asked)
    check_kept("multiply", epsilon, found)
    return found


def divide(a: Any, b: Value, *, epsilon: float | None = None) -> Value:
    """a/b = a·(1/b), off by at most ``epsilon``: half for the reciprocal, half for the product.

        P.divide(1.0, P.tokens(n=4) + 1.0)

    Args:
        a: a value, a number or an array.
        b: a value whose range does not hold 0.
        epsilon: how far off it may be; default: 1e-3, or more where float64 rounds more.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: b may be 0, ``epsilon`` is not above 0, or float64 values do not keep it.
    """
    b = only_value("divide", b)
    asked = DEFAULT if epsilon is None else positive("divide", "epsilon", epsilon)
    low, high = value_range(b)
    if low <= 0 <= high:
        raise InvalidInput(
            f"'divide' takes a denominator that is never 0; this one goes {from_to(low, high)}; clip it."
        )
    alone = not isinstance(a, Value) and not has_dimensions(a)
    a = finite_number("divide", "numerator", a) if alone else as_value("divide", a, b)
    low_a, high_a = (a, a) if alone else value_range(a)
    size = max(abs(low_a), abs(high_a))
    share = asked / max(size, 2.0**-60) / (1 if alone else 2)
    inverse = spline(splines.reciprocal, b, share, None)
    check_kept("divide", None if epsilon is None else share, inverse)
    if alone:
        return a * inverse
    found = product(a, inverse, asked / 2)
    check_kept("divide", None if epsilon is None else asked / 2, found)
    return found


def scale(x: Value, factors: Any) -> Value:
    """Token i times factors[i] (or factors[i, feature]): exact.

        P.scale(P.tokens(n=4), [1.0, 2.0, 3.0, 4.0])

    Args:
        x: a value of the program.
        factors: (n,) or (n, d) finite numbers.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, or the factors do not fit it.
    """
    x = only_value("scale", x)
    factors = as_value("scale", factors, x)
    if factors.operation != "constant":
        raise InvalidInput("'scale' takes an array of factors; for two values there is multiply(a, b, epsilon=…).")
    return Value("scale", (x,), x.n, x.d, {"factors": factors.settings["array"]})


def _shape(array: Array) -> str:
    return f"an array of the shape {array.shape} and kind {array.dtype}"
