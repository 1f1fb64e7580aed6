"""What else Python can write with a value: powers, indices, abs; and what it must not, each with the operation to take.

A value stands for numbers that are not there yet. So a comparison cannot be True or False, nor be the answer of an
``if``: what Python would make of that is another program than the one that was meant, and would be proved all the
same. Whatever has no meaning here is refused, in words that name the operation that has it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from thereexists.constructions.program.given import any_array
from thereexists.core.errors import InvalidInput

if TYPE_CHECKING:
    from thereexists.constructions.program.graph import Value

COMPARED = {
    "==": "P.equal(a, b, margin=…)",
    "!=": "1 - P.equal(a, b, margin=…)",
    "<": "P.greater(b, a, margin=…), for min(a, b) P.minimum(a, b)",
    "<=": "P.greater_equal(b, a, margin=…), for min(a, b) P.minimum(a, b)",
    ">": "P.greater(a, b, margin=…), for max(a, b) P.maximum(a, b)",
    ">=": "P.greater_equal(a, b, margin=…), for max(a, b) P.maximum(a, b)",
}
INSTEAD = {
    "truth (if, and, or, not)": "P.where(flag, a, b), with a flag such as P.greater(a, b, margin=…)",
    "'in'": "P.equal(x, number, margin=…) and P.max of it",
    "iteration (for, list, sum, max, sorted)": "P.sum, P.max, P.sort … for all tokens, or x[i] for one",
    "float() or a function of math": "np.sin(x), np.exp(x) … or P.apply(f, x)",
    "int()": "P.interp(x, knots, values) or P.greater(x, step, margin=…)",
    "round()": "P.interp(x, knots, values), or P.greater(x, step, margin=…) for every step: rounding is not continuous",
    "'//'": "a / b, and P.greater(…, margin=…) for the steps: rounding down is not continuous",
    "'%'": "P.interp(x, knots, values), a sawtooth with steep ends: it is not continuous",
    "'&'": "P.minimum(flag, other)",
    "'|'": "P.maximum(flag, other)",
    "'^'": "P.abs(flag - other)",
    "'~'": "1 - flag",
    "'<<' or '>>'": "P.delay(x, places), or x times a power of two",
    "x[…] = …": "P.where(np.arange(n) == i, new, x)",
    "an array of it": "P.interpret(program, X), or the compiled network, on numbers X",
}


def refuse(what: str, instead: str) -> NoReturn:
    raise InvalidInput(f"{what} of a program's value is not known before the program is run; take {instead}.")


def _refused(what: str) -> Callable[..., NoReturn]:
    def method(self: Value, *_: Any) -> NoReturn:
        refuse(what, INSTEAD[what])

    return method


def _not_compared(sign: str) -> Callable[..., NoReturn]:
    def method(self: Value, other: Any) -> NoReturn:
        refuse(f"'{sign}'", COMPARED[sign])

    return method


class Spelling:
    """The methods behind Python's own notation; ``Value`` has those of sums, products and quotients."""

    n: int
    d: int

    __eq__ = _not_compared("==")  # pyright: ignore[reportAssignmentType]
    __ne__ = _not_compared("!=")  # pyright: ignore[reportAssignmentType]
    __lt__, __le__, __gt__, __ge__ = (_not_compared(sign) for sign in ("<", "<=", ">", ">="))
    __hash__ = object.__hash__  # sets and dictionaries know values by their identity
    __bool__ = _refused("truth (if, and, or, not)")
    __contains__ = _refused("'in'")
    __iter__ = _refused("iteration (for, list, sum, max, sorted)")
    __reversed__ = _refused("iteration (for, list, sum, max, sorted)")
    __float__ = __complex__ = _refused("float() or a function of math")
    __int__ = __trunc__ = __floor__ = __ceil__ = _refused("int()")
    __round__ = _refused("round()")
    __floordiv__ = __rfloordiv__ = _refused("'//'")
    __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _refused("'%'")
    __and__ = __rand__ = _refused("'&'")
    __or__ = __ror__ = _refused("'|'")
    __xor__ = __rxor__ = _refused("'^'")
    __invert__ = _refused("'~'")
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refused("'<<' or '>>'")
    __setitem__ = __delitem__ = _refused("x[…] = …")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        refuse("an array of it", INSTEAD["an array of it"])

    def __len__(self: Any) -> int:
        from thereexists.constructions.program.graph import is_shorter

        if is_shorter(self):
            refuse("the length", "P.sum(P.constant(1.0, x)): it is any from 1 to n")
        return self.n

    def __pos__(self: Any) -> Value:
        return self

    def __abs__(self: Any) -> Value:
        from thereexists.constructions.program.elementwise import abs as absolute

        return absolute(self)

    def __pow__(self: Any, exponent: Any, modulo: Any = None) -> Value:
        return power(self, exponent, modulo)

    def __rpow__(self: Any, base: Any) -> NoReturn:
        raise InvalidInput("A number to the power of a value is not an operation; take np.exp(x * np.log(number)).")

    def __matmul__(self: Any, matrix: Any) -> Value:
        """Every token's features times a matrix (features in, features out), as in NumPy."""
        from thereexists.constructions.program.operations import mix

        array = None if isinstance(matrix, Spelling) else any_array("@", "an array of two dimensions", matrix)
        if array is None or array.ndim != 2:
            raise InvalidInput("'@' takes an array of two dimensions on its right; for two values use P.sum(a * b).")
        return mix(self, array.T)

    def __rmatmul__(self: Any, matrix: Any) -> NoReturn:
        raise InvalidInput(
            "'array @ value' would mix tokens: take P.take, P.convolve or P.attention; 'value @ array' mixes features."
        )

    def __getitem__(self: Any, index: Any) -> Value:
        return indexed(self, index)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from thereexists.constructions.program.numpy_calls import call_ufunc

        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        from thereexists.constructions.program.numpy_calls import call_function

        return call_function(function, arguments, options)


def power(x: Value, exponent: Any, modulo: Any = None) -> Value:
    """x to a whole number from 0 to 8, by one spline; and the roots and quotients that are operations."""
    from thereexists.constructions.program.operations import apply, divide
    from thereexists.constructions.program.splines import MOST_POWER, POWERS, rsqrt

    if isinstance(exponent, Spelling):
        raise InvalidInput("'**' takes a number as exponent; for a value take np.exp(b * np.log(a)).")
    if isinstance(exponent, bool | np.bool_) or not isinstance(exponent, int | float | np.number) or modulo is not None:
        raise InvalidInput(f"'**' takes a whole number from 0 to {MOST_POWER}; got {exponent!r} instead.")
    if exponent == 0:
        return x * 0.0 + 1.0
    if exponent == 1:
        return x
    if exponent in POWERS:
        return apply(POWERS[int(exponent)], x)
    if exponent == 0.5:
        return apply(np.sqrt, x)
    if exponent == -0.5:
        return apply(rsqrt, x)
    if exponent == -1:
        return divide(1.0, x)
    raise InvalidInput(
        f"'**' takes a whole number from 0 to {MOST_POWER} (or 0.5, -0.5, -1); got {exponent!r} instead. Take products "
        "and quotients of such powers, or P.apply(f, x, curvature=…)."
    )


def indexed(x: Value, index: Any) -> Value:
    """``x[i]``: token i, given to every token. ``x[:, k]``: feature k. ``x[::-1]``, ``x[places]``: n tokens again."""
    parts = index if isinstance(index, tuple) else (index,)
    if 1 <= len(parts) <= 2:  # x[..., k] is x[:, k], and x[i, ...] is x[i]
        parts = (slice(None), *parts[1:]) if parts[0] is Ellipsis else parts
        parts = parts[:1] if parts[-1] is Ellipsis else parts
    if not 1 <= len(parts) <= 2 or any(part is None or part is Ellipsis for part in parts):
        raise InvalidInput("A value has two indices, tokens and features: x[i], x[i, k], x[:, k].")
    if len(parts) == 2 and all(_is_list(part) for part in parts):
        raise InvalidInput(
            "Two lists of indices would select pairs, as in NumPy, and the result would not be a value; use "
            "x[places][:, features]."
        )
    x = _tokens_of(x, parts[0])
    return x if len(parts) == 1 else _features_of(x, parts[1])


def _is_list(part: Any) -> bool:
    return not isinstance(part, slice | Spelling) and any_array("[…]", "whole numbers", part).ndim == 1


def _tokens_of(x: Value, index: Any) -> Value:
    from thereexists.constructions.program.graph import is_shorter
    from thereexists.constructions.program.operations import broadcast, take

    if isinstance(index, slice):
        places = np.arange(x.n)[index]
        if len(places) != x.n:
            raise InvalidInput(
                f"A slice of tokens would leave {len(places)} of {x.n}, and a program has the same number throughout; "
                "use P.take(x, places) with a place for each token, P.delay, or P.where for the tokens to keep."
            )
        return x if (places == np.arange(x.n)).all() else take(x, places, "flip")
    where = _whole(index, x.n, "token")
    if is_shorter(x) and (np.asarray(index) < 0).any():
        raise InvalidInput("A negative index counts from the end, which is elsewhere in each shorter sequence.")
    return broadcast(x, int(where)) if where.ndim == 0 else take(x, where)


def _features_of(x: Value, index: Any) -> Value:
    from thereexists.constructions.program.operations import mix

    chosen = np.arange(x.d)[index] if isinstance(index, slice) else np.atleast_1d(_whole(index, x.d, "feature"))
    if not len(chosen):
        raise InvalidInput(f"No feature is left of the {x.d} that this value has.")
    return x if len(chosen) == x.d and (chosen == np.arange(x.d)).all() else mix(x, np.eye(x.d)[chosen])


def _whole(index: Any, count: int, what: str) -> np.ndarray:
    """Whole numbers of places, counted from the end if negative."""
    if isinstance(index, Spelling):
        raise InvalidInput("An index is a whole number, not a value; P.lookup finds by content.")
    places = any_array("[…]", f"whole numbers of {what}s", index)
    if np.issubdtype(places.dtype, np.integer) and places.dtype != np.uint64:
        places = places.astype(np.int64)
    if places.dtype == bool or not np.issubdtype(places.dtype, np.integer) or places.ndim > 1:
        raise InvalidInput(f"An index of {what}s is a whole number, or a list of them; for flags take P.where.")
    outside = places[(places < -count) | (places >= count)].reshape(-1)
    if len(outside):
        raise InvalidInput(f"This value has {count} {what}s, 0 to {count - 1}; got the index {outside[0]}.")
    return np.asarray(places % count)


def binary(name: str, a: Any, b: Any) -> Any:
    """An operator of two, one of which may be an array: never by that array's own method, which would ask us again."""
    if isinstance(a, Spelling):
        return getattr(operator, name)(a, b)
    return getattr(b, f"__r{name}__")(a)
