"""A saved program, run in NumPy operation by operation, by its definition: for trials, not for proofs.

Over the reals, sums are made of pairs of float64, what every addition loses being added up beside it (Knuth's TwoSum):
a proof that took a float64 sum for the right one must not find a trial that does the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thereexists.arithmetic.outward import two_sum
from thereexists.core.errors import InvalidInput, NotProved
from thereexists.functions.target import Array

_PLAIN: dict[str, Any] = {
    "relu": lambda s, x: np.maximum(x, 0.0),
    "abs": lambda s, x: np.abs(x),
    "maximum": lambda s, a, b: np.maximum(a, b),
    "minimum": lambda s, a, b: np.minimum(a, b),
    "clip": lambda s, x: np.clip(x, s["low"], s["high"]),
    "interp": lambda s, x: np.interp(x, s["knots"], s["values"]),
    "where": lambda s, g, a, b: np.where(g > 0.5, a, b),
    "linear": lambda s, *x: sum(c * part for c, part in zip(s["coefficients"], x, strict=True)) / s.get("divisor", 1),
    "mix": lambda s, x: x @ np.array(s["matrix"], dtype=np.float64).T,
    "scale": lambda s, x: x * np.array(s["factors"], dtype=np.float64),
    "take": lambda s, x: x[:, s["source"]],
}


def _powers(k: int) -> Any:
    return lambda x: x**k


_FUNCTIONS: dict[str, Any] = {
    **{name: getattr(np, name) for name in ("sin", "cos", "exp", "log", "sqrt", "square", "tanh", "arctan", "log1p")},
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    **{f"power{k}": _powers(k) for k in range(3, 9)},
}


def _gated(s: dict[str, Any], g: Array, a: Array, b: Array) -> Array:
    low, high = s["bottom"], s["height"]
    return low + np.maximum(a - low - high * (1 - g), 0.0) + np.maximum(b - low - high * g, 0.0)


def _linear(s: dict[str, Any], *x: Array) -> Array:
    total, lost = np.zeros(()), np.zeros(())
    for c, part in zip(s["coefficients"], x, strict=True):
        total, error = two_sum(total, c * part)
        lost = lost + error
    return (total + lost) / s.get("divisor", 1)


def _mixed(s: dict[str, Any], x: Array) -> Array:
    matrix = np.array(s["matrix"], dtype=np.float64)
    total, lost = np.zeros((2, *x.shape[:-1], len(matrix)))
    for k, column in enumerate(matrix.T):
        rows = np.flatnonzero(column)
        total[..., rows], error = two_sum(total[..., rows], x[..., [k]] * column[rows])
        lost[..., rows] += error
    return total + lost


def _means(s: dict[str, Any], x: Array) -> Array:
    total, lost, found = np.zeros(()), np.zeros(()), []
    for i in range(x.shape[1]):
        total, error = two_sum(total, x[:, i])
        lost = lost + error
        found.append((total + lost) / (i + 1))
    return np.stack(found, axis=1)


_OVER_REALS: dict[str, Any] = {
    **_PLAIN,
    "linear": _linear,
    "mix": _mixed,
    "where": _gated,
    "multiply": lambda s, a, b: a * b,
    "apply": lambda s, x: _FUNCTIONS[s["function"]](x),
    "prefix_mean": _means,
}


def run(program: dict[str, Any], words: Array) -> Array:
    """Numbers of symbols (strings, n) to numbers of symbols, of a program without operations on all tokens."""
    found = _evaluated(program, words[..., None].astype(np.float64), _PLAIN)
    return np.rint(found[..., 0]).astype(np.int64)


def run_reals(program: dict[str, Any], X: Array) -> Array:
    """Numbers (sequences, n, features) to numbers, of such a program; functions are themselves, and not splines."""
    return _evaluated(program, X.astype(np.float64), _OVER_REALS)


def steps(program: dict[str, Any]) -> int:
    """How many numbers ``run_reals`` goes through, for one sequence."""
    found = 0
    for node in program["nodes"]:
        rows = node["settings"].get("matrix")
        found += node["d"] * len(node["arguments"]) if rows is None else sum(c != 0 for row in rows for c in row)
    return program["n"] * max(found, 1)


def _evaluated(program: dict[str, Any], X: Array, operations: dict[str, Any]) -> Array:
    found: list[Array] = []
    for node in program["nodes"]:
        name, settings, given = node["operation"], node["settings"], [found[a] for a in node["arguments"]]
        if name == "tokens":
            found.append(X)
        elif name == "constant":
            array = np.array(settings["array"], dtype=np.float64)
            found.append(np.broadcast_to(array, (len(X), *array.shape)))
        elif name == "attend":
            found.append(_attended(given[0], given[1], given[2], settings["causal"]))
        elif name in operations:
            found.append(operations[name](settings, *given))
        else:
            raise NotProved(f"'{name}' is not run here.")
    return found[-1]


def check_features(program: dict[str, Any]) -> None:
    """Whether every operation has the features that it says, and arrays and places of n tokens."""
    n, d = program["n"], [node["d"] for node in program["nodes"]]
    for node in program["nodes"]:
        name, settings, given = node["operation"], node["settings"], [d[a] for a in node["arguments"]]
        wanted = set(given)
        if name == "mix":
            wanted = {len(settings["matrix"])} if given[0] == len(settings["matrix"][0]) else set()
        elif name == "attend":
            wanted = {given[2]} if given[0] == given[1] else set()
        for key in ("array", "factors"):
            if key in settings:
                wanted = wanted | {len(settings[key][0])} if len(settings[key]) == n else set()
        if name == "take" and (len(settings["source"]) != n or not all(0 <= p < n for p in settings["source"])):
            wanted = set()
        if name != "tokens" and wanted != {node["d"]}:
            raise InvalidInput(f"'{name}' has other features than its arguments, or its arrays do not have n rows")


def _attended(q: Array, k: Array, v: Array, causal: bool) -> Array:
    logits = q @ k.swapaxes(1, 2)
    if causal:
        logits = np.where(np.tri(logits.shape[1], dtype=bool), logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v
