"""Every composition f(g(x)) of two operations, made from the public list: a new operation is there by itself.

An operation is called with what the names of its parameters ask for (``ARGUMENTS``). One with a parameter that is not
in that table, or one that is neither an operation nor known to be something else, fails the tests until it is.
"""

import inspect
import itertools

import numpy as np

from thereexists import program as P
from thereexists.constructions.program.graph import is_shorter
from thereexists.core.errors import InvalidInput

SYMBOLS = {"argmax", "as_symbols", "choose", "counts", "find", "isin", "numbers_of", "one_hot", "previous", "recode"}
SYMBOLS |= {"same", "sort_by", "symbols", "Symbols"}  # these take strings: tests/constructions/symbols
NO_OPERATIONS = {"Bound", "Compiled", "Value", "compile", "interpret", "lookup_error", "tokens", *SYMBOLS}
FUNCTIONS = {"reciprocal": P.reciprocal, "rsqrt": P.rsqrt, "sigmoid": P.sigmoid}  # what 'apply' takes
APPLIED = {"sin": np.sin, "tanh": np.tanh, "square": np.square, **FUNCTIONS}
DOMAIN = {"reciprocal", "rsqrt"}  # these want arguments above 0


def affine(x, a=0.3, b=0.1):
    return a * x + b


def another(x):
    """A second value; in programs for shorter sequences nothing is known of the end."""
    return P.delay(x, 1, 0.1) if is_shorter(x) else P.flip(x)


ARGUMENTS = {
    "x": lambda x: x,
    "like": lambda x: x,
    "a": lambda x: x,
    "b": lambda x: another(x),
    "c": lambda x: affine(x),
    "flag": lambda x: np.repeat((np.arange(x.n) % 2 == 0)[:, None] * 1.0, x.d, axis=1),
    "query": lambda x: x,
    "key": lambda x: x,
    "keys": lambda x: np.linspace(0.1, 0.7, x.n),
    "value": lambda x: another(x),
    "values": lambda x: np.linspace(-0.3, 1.1, x.n),
    "array": lambda x: np.linspace(-0.3, 0.7, x.n),
    "matrix": lambda x: np.linspace(-0.7, 0.9, 2 * x.d).reshape(2, x.d),
    "indices": lambda x: (np.arange(x.n) * 2 + 1) % x.n,
    "by": lambda x: 1,
    "shift": lambda x: 1,
    "fill": lambda x: 0.3,
    "position": lambda x: x.n - 1,
    "kernel": lambda x: [0.5, -0.3, 0.1],
    "low": lambda x: 0.2,
    "high": lambda x: 0.7,
    "k": lambda x: 2,
    "factors": lambda x: np.linspace(-0.4, 0.9, x.n),
    "knots": lambda x: [0.1, 0.35, 0.8],
    "edges": lambda x: [0.0, 0.3, 0.7, 1.0],
    "margin": lambda x: 0.1,
    "sharpness": lambda x: 3.0,
    "temperature": lambda x: 1.3,
    "W_Q": lambda x: weights(x.d, 0),
    "W_K": lambda x: weights(x.d, 1),
    "W_V": lambda x: weights(x.d, 2),
    "W_O": lambda x: weights(1, 3, out=2).transpose(0, 2, 1)[:, :, :1],
    "epsilon": lambda x: 1e-2,
}
LEFT_OUT = {"called", "causal", "curvature", "b_Q"}  # options that have a default


def weights(d, seed, out=1):
    return np.random.default_rng(seed).normal(size=(1, out, d))


def operations():
    """``{name: one-argument function}`` for everything public that makes a value of values."""
    found = {}
    for name in P.__all__:
        if name in NO_OPERATIONS or name in FUNCTIONS:
            continue
        if name == "apply":
            for function in APPLIED:
                found[f"apply {function}"] = _applied(function)
        elif name == "constant":
            found[name] = lambda x: x + P.constant(np.linspace(-0.3, 0.7, x.n), x)
        elif name == "divide":
            found[name] = lambda x: P.divide(affine(x), P.clip(x, 0.5, 2.0), epsilon=1e-2)
        elif name == "interp":
            found[name] = lambda x: P.interp(x, [0.1, 0.35, 0.8], [1.0, -0.3, 0.7])
        else:
            found[name] = _called(name)
    found["+"] = lambda x: affine(x) + another(x)
    found["-"] = lambda x: 0.7 - x / 3
    found["* array"] = lambda x: x * np.linspace(0.1, 1.3, x.n)
    found["where data"] = lambda x: P.where(P.greater(x, 0.3, margin=0.1), affine(x), another(x))
    found["lookup data"] = lambda x: P.lookup(x, another(x), affine(x), sharpness=3.0, epsilon=1e-2)
    return found


def _applied(name):
    def one(x):
        return P.apply(APPLIED[name], P.clip(x, 0.3, 2.0) if name in DOMAIN else x, epsilon=1e-2)

    return one


def _called(name):
    function = getattr(P, name)
    parameters = [p for p in inspect.signature(function).parameters if p not in LEFT_OUT]

    def one(x):
        given = {p: ARGUMENTS[p](x) for p in parameters}
        return function(**given)

    return one


SPANS = {"unit": (0.0, 1.0), "odd": (0.1, 0.7), "signed": (-1.3, 0.9)}


def compositions(n, span="unit", shorter=False):
    """(names, program) of every f(g(x)); those that an operation refuses to be written are left out."""
    low, high = SPANS[span]
    for (f, outer), (g, inner) in itertools.product(operations().items(), repeat=2):
        try:
            program = outer(inner(P.tokens(n, low=low, high=high, shorter=shorter)))
        except InvalidInput:
            continue
        if isinstance(program, P.Value):
            yield f"{f}({g})", program
