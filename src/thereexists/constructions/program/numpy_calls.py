"""NumPy's own functions of a program's value: ``np.sin(x)``, ``np.maximum(x, y)``, ``np.mean(x, axis=0)`` …

Each does what NumPy does along the tokens, or is refused in words that name the operation to take. A number of all
tokens is given to each of them, as everywhere in programs. Where NumPy would count along features too, or flatten
(``axis=None`` with more than one feature), that is refused: the program would be another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thereexists.constructions.program import compositions, elementwise, operations, reductions, splines
from thereexists.constructions.program.given import any_array
from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.spelling import COMPARED, INSTEAD, binary, power, refuse
from thereexists.core.errors import InvalidInput

OPERATORS = {np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv", np.matmul: "matmul"}
EXTREMES = {
    np.maximum: elementwise.maximum,
    np.fmax: elementwise.maximum,
    np.minimum: elementwise.minimum,
    np.fmin: elementwise.minimum,
}
ALONE: dict[Any, Callable[[Value], Value]] = {
    np.negative: lambda x: -x,
    np.positive: lambda x: x,
    np.absolute: elementwise.abs,
    np.fabs: elementwise.abs,
    np.reciprocal: lambda x: 1.0 / x,
    **{f: lambda x, f=f: operations.apply(f, x) for f in splines.KNOWN if isinstance(f, np.ufunc)},
}
SIGNS = {
    np.equal: "==",
    np.not_equal: "!=",
    np.less: "<",
    np.less_equal: "<=",
    np.greater: ">",
    np.greater_equal: ">=",
}
NOT_CONTINUOUS = {
    np.rint: "round()",
    np.floor: "int()",
    np.ceil: "int()",
    np.trunc: "int()",
    np.sign: "int()",
    np.heaviside: "int()",
    np.floor_divide: "'//'",
    np.remainder: "'%'",
    np.fmod: "'%'",
    np.logical_and: "'&'",
    np.logical_or: "'|'",
    np.logical_xor: "'^'",
    np.logical_not: "'~'",
    np.bitwise_and: "'&'",
    np.bitwise_or: "'|'",
    np.bitwise_xor: "'^'",
    np.invert: "'~'",
}
ALONG: dict[tuple[Any, str], Callable[[Value], Value]] = {
    (np.add, "reduce"): reductions.sum,
    (np.maximum, "reduce"): reductions.max,
    (np.minimum, "reduce"): reductions.min,
    (np.add, "accumulate"): reductions.cumsum,
    (np.maximum, "accumulate"): reductions.cummax,
    (np.minimum, "accumulate"): reductions.cummin,
}


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    name = f"np.{ufunc.__name__}"
    if method != "__call__":
        along = ALONG.get((ufunc, method))
        if along is None or len(inputs) != 1:
            raise InvalidInput(f"'{name}.{method}' is not an operation of programs; P.sum, P.max, P.cumsum … are.")
        options.setdefault("axis", 0)
        return along(_along_tokens(f"{name}.{method}", inputs[0], options))
    if options:
        raise InvalidInput(
            f"'{name}' of a program's value takes no option {next(iter(options))!r}; the result is always a new value."
        )
    if ufunc in OPERATORS:
        return binary(OPERATORS[ufunc], *inputs)
    if ufunc in EXTREMES:
        return EXTREMES[ufunc](*inputs)
    if ufunc in ALONE:
        return ALONE[ufunc](inputs[0])
    if ufunc in (np.power, np.float_power):
        if not isinstance(inputs[0], Value):
            return inputs[1].__rpow__(inputs[0])
        return power(*inputs)
    if ufunc in SIGNS:
        refuse(f"'{name}'", COMPARED[SIGNS[ufunc]])
    if ufunc in NOT_CONTINUOUS:
        refuse(f"'{name}'", INSTEAD[NOT_CONTINUOUS[ufunc]])
    if ufunc.nin == 1:
        refuse(f"'{name}'", f"P.apply({name}, x, curvature=…), where it has a bound on its second derivative")
    refuse(f"'{name}'", "sums, products, quotients, P.maximum, P.minimum, P.where and P.apply")


def _along_tokens(name: str, x: Any, options: dict[str, Any], whole: bool = True) -> Value:
    """The value, of a function that NumPy asks to go along ``axis``: that must be the tokens (0)."""
    options = dict(options)
    axis, keepdims = options.pop("axis", None), options.pop("keepdims", False)
    odd = [key for key, option in options.items() if option is not None and option is not np._NoValue]
    if odd or not isinstance(x, Value):
        raise InvalidInput(f"'{name}' of a program's value takes an axis and nothing else; got {odd or x!r}.")
    del keepdims  # every token gets the number: there is nothing to squeeze
    tokens = type(axis) is not bool and isinstance(axis, int | np.integer) and axis in (0, -2)
    if tokens or (axis is None and whole and x.d == 1):
        return x
    raise InvalidInput(
        f"'{name}' goes along the tokens here, axis=0; got axis={axis!r} and {x.d} features. Over features there is "
        "x @ matrix (P.mix)."
    )


def _reduction(function: Callable[[Value], Value]) -> Callable[..., Value]:
    return lambda name, x, axis=None, **options: function(_along_tokens(name, x, {"axis": axis, **options}))


def _sort(name: str, x: Any, axis: Any = -1, **options: Any) -> Value:
    return operations.sort(_along_tokens(name, x, {"axis": axis, **options}, whole=False))


def _take(name: str, x: Any, indices: Any, axis: Any = None, **options: Any) -> Value:
    return _along_tokens(name, x, {"axis": axis, **options})[any_array(name, "whole numbers", indices)]


def _roll(name: str, x: Any, shift: Any, axis: Any = None) -> Value:
    return operations.roll(_along_tokens(name, x, {"axis": axis}), shift)


def _flip(name: str, x: Any, axis: Any = None) -> Value:
    return operations.flip(_along_tokens(name, x, {"axis": axis}))


def _clip(name: str, x: Any, a_min: Any = None, a_max: Any = None, **options: Any) -> Value:
    if options or not isinstance(x, Value):
        raise InvalidInput("'np.clip' takes a value and two ends; P.clip(x, low, high).")
    if isinstance(a_min, int | float) and isinstance(a_max, int | float):
        return elementwise.clip(x, a_min, a_max)
    x = x if a_min is None else elementwise.maximum(x, a_min)
    return x if a_max is None else elementwise.minimum(x, a_max)


def _where(name: str, flag: Any, *choices: Any) -> Value:
    if len(choices) != 2:
        raise InvalidInput("'np.where' of a program's value takes a flag and two choices: P.where(flag, a, b).")
    return operations.where(flag, *choices)


def _interp(name: str, x: Any, xp: Any, fp: Any, **options: Any) -> Value:
    if options:
        raise InvalidInput(f"'np.interp' of a program's value takes no option {next(iter(options))!r}.")
    return operations.interp(x, xp, fp)


def _dot(name: str, a: Any, b: Any) -> Value:
    return binary("matmul", a, b)


def _square_mean(x: Value) -> Value:
    off = x - reductions.mean(x)
    return reductions.mean(operations.apply(np.square, off))


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: _reduction(reductions.sum),
    np.mean: _reduction(reductions.mean),
    np.max: _reduction(reductions.max),
    np.amax: _reduction(reductions.max),
    np.min: _reduction(reductions.min),
    np.amin: _reduction(reductions.min),
    np.median: _reduction(compositions.median),
    np.cumsum: _reduction(reductions.cumsum),
    np.var: _reduction(_square_mean),
    np.sort: _sort,
    np.take: _take,
    np.roll: _roll,
    np.flip: _flip,
    np.clip: _clip,
    np.where: _where,
    np.interp: _interp,
    np.dot: _dot,
    np.shape: lambda name, x: (len(x), x.d),
    np.ndim: lambda name, x: 2,
    np.zeros_like: lambda name, x: operations.constant(0.0, x),
    np.ones_like: lambda name, x: operations.constant(1.0, x),
}
TAKE: dict[Any, str] = {
    np.argsort: "P.argsort(x, margin=…)",
    np.argmax: "P.argsort(-x, margin=…)[0]",
    np.argmin: "P.argsort(x, margin=…)[0]",
    np.convolve: "P.convolve(x, kernel), as long as x is",
    np.round: INSTEAD["round()"],
    np.around: INSTEAD["round()"],
    np.std: "np.sqrt(np.maximum(np.var(x, axis=0), floor)): at 0 a root is infinitely steep",
    np.allclose: COMPARED["=="],
    np.isclose: COMPARED["=="],
    np.array_equal: COMPARED["=="],
    np.any: "P.max(flag)",
    np.all: "P.min(flag)",
    np.diff: "x - P.delay(x)",
    np.histogram: "P.histogram(x, edges, margin=…)",
    np.concatenate: "P.where(first, a, b): a program has the same number of tokens throughout; or P.mix for features",
    np.stack: "P.mix(a, …) + P.mix(b, …), each into its own features",
    np.einsum: "x @ matrix, products and P.sum",
    np.prod: "products: x[0] * x[1] * …",
    np.copyto: INSTEAD["x[…] = …"],
}


def call_function(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    name = f"np.{function.__name__}"
    if function in FUNCTIONS:
        try:
            return FUNCTIONS[function](name, *arguments, **options)
        except TypeError as error:
            raise InvalidInput(f"'{name}' of a program's value takes other arguments: {error}.") from None
    if function in TAKE:
        refuse(f"'{name}'", TAKE[function])
    refuse(f"'{name}'", "the operations of `thereexists.program`, listed in docs/programs.md")
