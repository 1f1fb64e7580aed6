"""The built-in targets: a table, each with its Lipschitz constant (maximum norm to maximum norm) and its proof.

R below is the largest absolute value in the domain, W its largest width, n the number of tokens, d of features.
Longer than 400 lines because every function has its arguments and an example beside its proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput, Obstructed
from thereexists.core.plain_numbers import shown
from thereexists.functions.domains.stored import read
from thereexists.functions.target import Array, Target, from_file

__all__ = [  # what the reference shows; ``restore`` reads records
    "BUILTINS", "Builtin", "builtin", "convolution", "copy_first", "cumulative_mean", "deep_sets", "distance_to_max",
    "distance_to_mean", "moving_average", "nearest_neighbour", "resolve", "reverse", "running_max", "shift",
    "soft_rank", "softmax_attention", "sort", "token_sine",
]  # fmt: skip


@dataclass(frozen=True)
class _Size:
    n: int
    d: int
    R: float
    W: float


@dataclass(frozen=True)
class Builtin:
    """A row of ``te.targets.BUILTINS``, the table of functions that come with the package.

        te.targets.BUILTINS["sort"].description

    Args:
        name: what it is called.
        description: what it computes, in words.
        f: maps arrays (batch, n, d) to arrays of the same shape.
        lipschitz: gives the constant for n, d, the largest absolute value R and the largest width W of the domain.
        equivariant: whether f(XP) = f(X)P for every permutation of the tokens.
    """

    name: str
    description: str
    f: Callable[[Array], Array]
    lipschitz: Callable[[_Size], float]
    equivariant: bool


# --- permutation equivariant -----------------------------------------------------------------------------------------

RANK_WIDTH = 0.25


def distance_to_mean(X: Array) -> Array:
    """The difference from the mean: x_i − mean(x).

        te.targets.distance_to_mean(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    return X - X.mean(axis=1, keepdims=True)


def distance_to_max(X: Array) -> Array:
    """The distance to the largest token: max(x) − x_i.

        te.targets.distance_to_max(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    return X.max(axis=1, keepdims=True) - X


def softmax_attention(X: Array) -> Array:
    """One attention layer: softmax(x xᵀ) x.

        te.targets.softmax_attention(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    logits = X @ X.transpose(0, 2, 1)  # (batch, n, n)
    P = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (P / P.sum(axis=-1, keepdims=True)) @ X


def deep_sets(X: Array) -> Array:
    """Each token times the mean: x_i · mean(x).

        te.targets.deep_sets(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    return X * X.mean(axis=1, keepdims=True)


def token_sine(X: Array) -> Array:
    """The sine of each token: sin(π x_i).

        te.targets.token_sine(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    return np.sin(np.pi * X)


def soft_rank(X: Array) -> Array:
    """The share of the other tokens below x_i, with ramps of width 1/4.

        te.targets.soft_rank(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    n = X.shape[1]
    above = np.clip((X[:, :, None] - X[:, None, :]) / RANK_WIDTH + 0.5, 0.0, 1.0)  # (batch, i, j, d)
    return (above.sum(axis=2) - 0.5) / max(n - 1, 1)  # the term j = i is always 1/2


def nearest_neighbour(X: Array) -> Array:
    """The distance to the nearest other token: min over j ≠ i of |x_i − x_j|.

        te.targets.nearest_neighbour(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    n = X.shape[1]
    gap = np.abs(X[:, :, None] - X[:, None, :])  # (batch, i, j, d)
    gap[:, np.arange(n), np.arange(n)] = np.inf
    return gap.min(axis=2) if n > 1 else np.zeros_like(X)


# --- order dependent -------------------------------------------------------------------------------------------------

KERNEL = (-1.0, 2.0, -1.0)


def sort(X: Array) -> Array:
    """The tokens in increasing order, feature by feature.

        te.targets.sort(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    return np.sort(X, axis=1)


def reverse(X: Array) -> Array:
    """The tokens in reverse order.

        te.targets.reverse(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    return X[:, ::-1]


def cumulative_mean(X: Array) -> Array:
    """The mean of x_1 … x_i.

        te.targets.cumulative_mean(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    return np.cumsum(X, axis=1) / np.arange(1, X.shape[1] + 1)[:, None]


def moving_average(X: Array) -> Array:
    """The mean of x_{i−1}, x_i and x_{i+1}, cut at the ends.

        te.targets.moving_average(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    ones = np.ones_like(X)
    return _correlate(X, (1.0, 1.0, 1.0)) / _correlate(ones, (1.0, 1.0, 1.0))


def shift(X: Array) -> Array:
    """The token before: x_{i−1}, and 0 first.

        te.targets.shift(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    return np.concatenate([np.zeros_like(X[:, :1]), X[:, :-1]], axis=1)


def copy_first(X: Array) -> Array:
    """The first token, x_1, everywhere.

        te.targets.copy_first(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    return np.repeat(X[:, :1], X.shape[1], axis=1)


def convolution(X: Array) -> Array:
    """The second difference: −x_{i−1} + 2x_i − x_{i+1}.

        te.targets.convolution(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    return _correlate(X, KERNEL)


def running_max(X: Array) -> Array:
    """The largest of x_1 … x_i.

        te.targets.running_max(np.array([[[0.7], [0.1], [0.4]]]))

    Args:
        X: (batch, n, d).

    Returns:
        An array of the same shape.
    """
    return np.maximum.accumulate(X, axis=1)


def _correlate(X: Array, kernel: tuple[float, float, float]) -> Array:
    padded = np.pad(X, ((0, 0), (1, 1), (0, 0)))
    n = X.shape[1]
    return sum(w * padded[:, i : i + n] for i, w in enumerate(kernel))  # pyright: ignore[reportReturnType]


_TABLE = (
    # |x_i − x̄| moves by at most (1 − 1/n)|Δ_i| + Σ_{j≠i}|Δ_j|/n.
    Builtin("distance-to-mean", "x_i − mean(x)", distance_to_mean, lambda s: 2 * (s.n - 1) / s.n, True),
    # max is 1-Lipschitz, x_i is 1-Lipschitz, and both move at once when the maximum is another token.
    Builtin("distance-to-max", "max(x) − x_i", distance_to_max, lambda s: 2.0 if s.n > 1 else 0.0, True),
    # dy = Σ p_j dx_j + Cov_p(x, dlogits); |dlogits| ≤ 2dR·max|dx|, so |Cov| ≤ (W/2)·2dR·max|dx|.
    Builtin(
        "softmax-attention",
        "softmax(x xᵀ) x, one attention layer",
        softmax_attention,
        lambda s: 1.0 + s.W * s.d * s.R if s.n > 1 else 1.0,
        True,
    ),
    # |x m − x' m'| ≤ |x||m − m'| + |m'||x − x'|.
    Builtin("deep-sets", "x_i · mean(x)", deep_sets, lambda s: 2 * s.R, True),
    Builtin("token-sine", "sin(π x_i), token by token", token_sine, lambda s: float(np.pi), True),
    # each of n − 1 ramps has slope 1/RANK_WIDTH in x_i − x_j, which moves by at most 2·max|Δ|.
    Builtin(
        "soft-rank",
        "share of the other tokens below x_i, ramps of width 1/4",
        soft_rank,
        lambda s: 2 / RANK_WIDTH if s.n > 1 else 0.0,
        True,
    ),
    # a minimum of functions |x_i − x_j|, each 2-Lipschitz.
    Builtin(
        "nearest-neighbour",
        "min over j≠i of |x_i − x_j|",
        nearest_neighbour,
        lambda s: 2.0 if s.n > 1 else 0.0,
        True,
    ),
    # order statistics are min-max combinations of 1-Lipschitz coordinates.
    Builtin("sort", "the tokens in increasing order, feature by feature", sort, lambda s: 1.0, False),
    Builtin("reverse", "the tokens in reverse order", reverse, lambda s: 1.0, False),
    # averages have non-negative weights that sum to 1.
    Builtin("cumulative-mean", "mean of x_1 … x_i", cumulative_mean, lambda s: 1.0, False),
    Builtin("moving-average", "mean of x_{i−1}, x_i, x_{i+1}, cut at the ends", moving_average, lambda s: 1.0, False),
    Builtin("shift", "x_{i−1}, and 0 first", shift, lambda s: 1.0 if s.n > 1 else 0.0, False),
    Builtin("copy-first", "x_1 everywhere", copy_first, lambda s: 1.0, False),
    # the sum of the absolute kernel weights that meet a token: 2 alone, 3 at an end, 4 inside.
    Builtin("convolution", "−x_{i−1} + 2x_i − x_{i+1}", convolution, lambda s: float(min(s.n, 3) + 1), False),
    Builtin("running-max", "max of x_1 … x_i", running_max, lambda s: 1.0, False),
)

BUILTINS = {entry.name: entry for entry in _TABLE}


def builtin(name: str, n: int, d: int = 1, domain: Any = (0.0, 1.0)) -> Target:
    """A built-in target by name, for n tokens of d features on a box, or on another domain (``te.domains``).

        te.targets.builtin("sort", n=3)

    Args:
        name: one that ``thereexists targets`` lists.
        n: how many tokens.
        d: features of a token.
        domain: the range of every entry, or one of ``te.domains``.

    Returns:
        The target.

    Raises:
        InvalidInput: there is no such function, or it does not take such sizes.
    """
    if not isinstance(name, str) or name not in BUILTINS:
        raise InvalidInput(
            f"There is no built-in target {name!r}; there are {', '.join(BUILTINS)}. Name your own function as "
            "file.py:function."
        )
    from thereexists.functions.intervals import extension_of

    entry = BUILTINS[name]
    bare = Target(entry.f, n=n, d=d, domain=domain)
    R = float(max(np.abs(bare.low).max(), np.abs(bare.high).max()))
    W = float((bare.high - bare.low).max())
    return Target(
        entry.f,
        n=n,
        d=d,
        lipschitz=entry.lipschitz(_Size(n, d, R, W)),
        equivariant=entry.equivariant and (bare.region is None or bare.region.symmetric),
        domain=bare.domain,
        name=name,
        interval=extension_of(name),
        description=entry.description,
        origin={"kind": "builtin", "reference": name},
    )


def resolve(reference: str, n: int, d: int = 1, domain: Any = (0.0, 1.0)) -> Target:
    """A built-in name or ``file.py:function``.

        te.targets.resolve("sort", n=3)

    Args:
        reference: a built-in name or ``file.py:function``.
        n: how many tokens.
        d: features of a token.
        domain: the range of every entry.

    Returns:
        The target.

    Raises:
        InvalidInput: there is neither such a function nor such a file.
    """
    if not isinstance(reference, str):
        raise InvalidInput(f"A function is named as 'sort' or 'file.py:function'; got {shown(reference)} instead.")
    if ":" in reference or reference.endswith(".py"):
        return from_file(reference, n=n, d=d, domain=domain)
    return builtin(reference, n=n, d=d, domain=domain)


def _check_stored(stored: dict[str, Any]) -> None:
    """Refuse a description with fields of other types, or that states more features than it lists sides for."""
    sides = (stored["low"], stored["high"])
    right = type(stored["n"]) is int and type(stored["d"]) is int
    right = right and all(isinstance(side, list) and len(side) == stored["d"] for side in sides)
    right = right and all(type(x) in (int, float) for side in sides for x in side)
    right = right and (stored["lipschitz"] is None or type(stored["lipschitz"]) in (int, float))
    right = right and type(stored["equivariant"]) is bool and isinstance(stored["origin"], dict)
    right = right and stored.get("compact_support", True) is True  # said where it is so, and not said elsewhere
    if not (right and all(isinstance(stored[key], str) for key in ("name", "description"))):
        raise InvalidInput("a function must be described by n, d, a low and a high end for each feature, and words")


def restore(stored: dict[str, Any]) -> Target:
    """The target of a saved artefact. A built-in function comes back; your own code is never run by loading."""
    _check_stored(stored)
    properties = {key: stored[key] for key in ("n", "d", "lipschitz", "equivariant", "name", "description", "origin")}
    properties["domain"] = read(stored["domain"]) if "domain" in stored else (stored["low"], stored["high"])
    properties["compact_support"] = "compact_support" in stored
    name, origin = stored["name"], stored["origin"]
    if origin.get("kind") == "builtin":
        known = builtin(name, n=stored["n"], d=stored["d"])
        if origin != known.origin:  # a word more, and a file could borrow the built-in's interval extension
            raise InvalidInput(f"the origin of the built-in function {name} is {known.origin} and nothing more")
        return _as_stated(Target(known.f, interval=known.interval, **properties), stored)

    def unavailable(X: Any) -> Any:
        raise Obstructed(
            f"The function {name!r} is not stored in a witness; give it again, with --function file.py:function or "
            f"target=… (it was built from {origin.get('reference', 'Python code')})."
        )

    return _as_stated(Target(unavailable, **properties), stored)


def _as_stated(target: Target, stored: dict[str, Any]) -> Target:
    """A domain has the ends that stand beside it."""
    if target.low.tolist() != stored["low"] or target.high.tolist() != stored["high"]:
        raise InvalidInput("the ends of the domain are not those that its description gives")
    return target
