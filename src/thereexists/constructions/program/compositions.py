"""Operations that are short programs themselves: exact, or as good as what they are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from thereexists.constructions.program.elementwise import abs as absolute
from thereexists.constructions.program.elementwise import clip, maximum, minimum, relu
from thereexists.constructions.program.given import finite_array, positive, whole_number
from thereexists.constructions.program.graph import Value, as_value, is_shorter, only_value, same_shape
from thereexists.constructions.program.operations import apply, mix, sort, take, where
from thereexists.constructions.program.reductions import sum as total
from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Array


def delay(x: Value, by: int = 1, fill: float = 0.0) -> Value:
    """Token i becomes token i − by; ``fill`` where there is none. A negative ``by`` looks ahead.

        P.delay(P.tokens(n=4), by=1, fill=0.0)

    Args:
        x: a value of the program.
        by: how many tokens back; ahead, if negative.
        fill: the value where there is no such token.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, or ``by`` is not a whole number.
    """
    x = only_value("delay", x)
    moved, inside = delayed(x, whole_number("delay", "a whole number of places", by))
    return moved if inside.all() else where(inside, moved, fill)


def delayed(x: Value, by: int) -> tuple[Value, Array]:
    """Token i − by, some token where there is none; and the flag of those that there are."""
    source = np.arange(x.n) - min(max(by, -x.n), x.n)  # further is nowhere, too
    inside = (source >= 0) & (source < x.n)
    return take(x, np.clip(source, 0, x.n - 1), "delay"), np.repeat(inside[:, None] * 1.0, x.d, axis=1)


def convolve(x: Value, kernel: Any) -> Value:
    """Token i becomes Σ_t kernel[t]·x[i − t], with zeros before the beginning: causal.

        P.convolve(P.tokens(n=4), [0.5, 0.5])

    Args:
        x: a value of the program.
        kernel: its numbers, that of the token itself first.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, or the kernel is empty.
    """
    x = only_value("convolve", x)
    kernel = finite_array("convolve", "a kernel", kernel)
    if kernel.ndim != 1 or not len(kernel):
        raise InvalidInput(f"'convolve' takes a kernel of one dimension; got the shape {kernel.shape} instead.")
    out = x * float(kernel[0])
    for t in range(1, min(len(kernel), x.n)):
        out = out + float(kernel[t]) * delay(x, t)
    return out


def greater(a: Any, b: Any, *, margin: float) -> Value:
    """a > b: 0 up to a = b, 1 from a = b + margin on, a straight ramp between (a step is not continuous).

        P.greater(P.tokens(n=4), 0.5, margin=0.1)

    Args:
        a: a value, a number or an array.
        b: the same; one of the two is a value.
        margin: how wide the ramp is, above 0.

    Returns:
        A flag: a value between 0 and 1.

    Raises:
        InvalidInput: neither is a value of a program, or their shapes differ, or the margin is not above 0.
    """
    return clip(_difference("greater", a, b) / positive("greater", "margin", margin), 0.0, 1.0)


def greater_equal(a: Any, b: Any, *, margin: float) -> Value:
    """a ≥ b: 1 from a = b on, 0 up to a = b − margin, a straight ramp between.

        P.greater_equal(P.tokens(n=4), 0.5, margin=0.1)

    Args:
        a: a value, a number or an array.
        b: the same; one of the two is a value.
        margin: how wide the ramp is, above 0.

    Returns:
        A flag: a value between 0 and 1.

    Raises:
        InvalidInput: neither is a value of a program, or their shapes differ, or the margin is not above 0.
    """
    return clip(_difference("greater_equal", a, b) / positive("greater_equal", "margin", margin) + 1.0, 0.0, 1.0)


def equal(a: Any, b: Any, *, margin: float) -> Value:
    """a = b: 1 there, 0 from a distance of ``margin`` on, straight lines between.

        P.equal(P.tokens(n=4), 0.5, margin=0.1)

    Args:
        a: a value, a number or an array.
        b: the same; one of the two is a value.
        margin: how wide the ramp is, above 0.

    Returns:
        A flag: a value between 0 and 1.

    Raises:
        InvalidInput: neither is a value of a program, or their shapes differ, or the margin is not above 0.
    """
    return relu(1.0 - absolute(_difference("equal", a, b)) / positive("equal", "margin", margin))


def _difference(name: str, a: Any, b: Any) -> Value:
    like = only_value(name, a if isinstance(a, Value) else b)
    a, b = as_value(name, a, like), as_value(name, b, like)
    same_shape(name, a, b)
    return a - b


def middle(a: Any, b: Any, c: Any) -> Value:
    """The median of three values, token by token.

        P.middle(P.tokens(n=4), 0.25, 0.75)

    Args:
        a: a value, a number or an array.
        b: the same.
        c: the same; one of the three is a value.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: none of them is a value of a program.
    """
    return maximum(minimum(a, b), minimum(maximum(a, b), c))


def median(x: Value) -> Value:
    """Every token becomes the median of all.

        P.median(P.tokens(n=4))

    Args:
        x: a value of the program.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program.
    """
    x = only_value("median", x)
    ordered = sort(x)
    low, high = (take(ordered, np.full(x.n, k), "median") for k in ((x.n - 1) // 2, x.n // 2))
    return low if x.n % 2 else (low + high) / 2


def top_k(x: Value, k: int) -> Value:
    """The tokens 0 … k − 1 become the k largest, in descending order; all others repeat the last of them.

        P.top_k(P.tokens(n=4), 2)

    Args:
        x: a value of the program.
        k: how many, from 1 to n.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, or there are fewer than k tokens.
    """
    x = only_value("top_k", x)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= x.n:
        raise InvalidInput(f"'top_k' takes a k from 1 to {x.n}; got {k!r} instead.")
    return take(-sort(-x), np.minimum(np.arange(x.n), int(k) - 1), "top_k")


def histogram(x: Value, edges: Any, *, margin: float) -> Value:
    """How many tokens lie in each bin [edges[b], edges[b + 1]): one feature for each bin, the same at every token.

        P.histogram(P.tokens(n=4), [0.0, 0.5, 1.0], margin=0.1)

    An edge is a ramp: a token counts as above it from the edge on, as below it up to ``margin`` before, and in part
    between. So the counts are the true ones if no token is that close below an edge.

    Args:
        x: a value of the program.
        edges: increasing numbers, one more than there are bins.
        margin: how wide the ramp below an edge is, above 0.

    Returns:
        A value with a feature for every bin.

    Raises:
        InvalidInput: x is not a value of a program, or the edges do not increase.
    """
    x = only_value("histogram", x)
    edges = finite_array("histogram", "edges", edges)
    if edges.ndim != 1 or len(edges) < 2 or (np.diff(edges) <= 0).any():
        raise InvalidInput("'histogram' takes at least two edges in ascending order; these are not.")
    if x.d != 1:
        raise InvalidInput(f"'histogram' takes tokens of one feature; got {x.d}. Choose one with mix.")
    B = len(edges) - 1
    above = greater_equal(mix(x, np.ones((B + 1, 1))), edges[None, :].repeat(x.n, axis=0), margin=margin)
    return total(mix(above, np.eye(B, B + 1) - np.eye(B, B + 1, 1)))


def attention(
    x: Value, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, *, b_Q: Any = None, temperature: float = 1.0, causal: bool = False
) -> Value:
    """One softmax attention layer with given weights, without its residual connection: Σ_h W_O V softmax(Q K / T).

        P.attention(P.tokens(n=4, d=2), np.eye(2), np.eye(2), np.eye(2), np.eye(2))

    W_Q, W_K, W_V: (h, m, d) or (m, d); W_O: (h, out, m) or (out, m). For the usual 1/√m take temperature=√m.

    Args:
        x: a value of the program.
        W_Q: the queries' weights.
        W_K: the keys' weights.
        W_V: the values' weights.
        W_O: the output's weights.
        b_Q: a bias of the queries, (h, m) or (m,).
        temperature: what the logits are divided by.
        causal: whether token i sees the tokens up to i only.

    Returns:
        A value with as many features as W_O has rows.

    Raises:
        InvalidInput: x is not a value of a program, or the weights do not fit it.
    """
    x = only_value("attention", x)
    weights = [finite_array("attention", "weights", W) for W in (W_Q, W_K, W_V, W_O)]
    weights = [W[None] if W.ndim == 2 else W for W in weights]
    Q, K, V, O = weights
    good = all(W.ndim == 3 and len(W) == len(Q) for W in weights)
    if not (good and Q.shape == K.shape and Q.shape[2] == V.shape[2] == x.d and O.shape[2] == V.shape[1]):
        shapes = ", ".join(str(W.shape) for W in weights)
        raise InvalidInput(
            f"'attention' takes W_Q, W_K, W_V (h, m, {x.d}) and W_O (h, out, m); got the shapes {shapes}."
        )
    b = np.zeros(Q.shape[:2]) if b_Q is None else finite_array("attention", "a b_Q", b_Q)
    if b.size != Q[..., 0].size:
        raise InvalidInput(f"'attention' takes a b_Q of the shape {Q.shape[:2]}; got {b.shape} instead.")
    b = b.reshape(Q.shape[:2])
    T = positive("attention", "temperature", temperature)
    out = None
    for h in range(len(Q)):
        query = mix(x, Q[h] / T) + np.repeat((b[h] / T)[None], x.n, axis=0)
        head = mix(attend(query, mix(x, K[h]), mix(x, V[h]), causal=causal), O[h])
        out = head if out is None else out + head
    return only_value("attention", out)


def attend(query: Value, key: Value, value: Value, *, causal: bool = False, called: str = "attention") -> Value:
    """Σ_j softmax_j(⟨query_i, key_j⟩)·value_j; ``causal``: over j ≤ i, in a causal network.

        x = P.tokens(n=4)
        P.attend(x, x, x)

    Args:
        query: a value (n, m).
        key: a value (n, m).
        value: a value (n, features).
        causal: whether token i sees the tokens up to i only.
        called: the name that errors use.

    Returns:
        A value with the features of ``value``.

    Raises:
        InvalidInput: one of them is not a value of a program, or the shapes do not fit.
    """
    query, key, value = (only_value(called, v) for v in (query, key, value))
    if query.d != key.d or len({query.n, key.n, value.n}) > 1:
        raise InvalidInput(f"'{called}' takes queries and keys of one size; got d = {query.d} and d = {key.d}.")
    return Value("attend", (query, key, value), value.n, value.d, {"causal": bool(causal), "called": called})


def soft_largest(x: Value, *, sharpness: float) -> Value:
    """Every token becomes the largest, by one softmax head: up to log(n)/sharpness too small.

        P.soft_largest(P.tokens(n=4), sharpness=50.0)

    Args:
        x: a value of the program.
        sharpness: how much the largest is preferred, above 0.

    Returns:
        A value of the same shape.

    Raises:
        InvalidInput: x is not a value of a program, or ``sharpness`` is not above 0.
    """
    x = only_value("soft_largest", x)
    sharpness = positive("soft_largest", "sharpness", sharpness)
    return Value("soft_largest", (x,), x.n, x.d, {"sharpness": sharpness})


def lookup(query: Value, keys: Any, values: Any, *, sharpness: float, epsilon: float | None = None) -> Value:
    """The value at the key nearest to the query, softly: Σ_j softmax_j(−sharpness·(query_i − key_j)²)·value_j.

        P.lookup(P.tokens(n=4), [0.0, 0.3, 0.6, 0.9], [1.0, 2.0, 3.0, 4.0], sharpness=100.0)

    That formula is the meaning. It is within (n − 1)·exp(−sharpness·gap)·spread of the value at the nearest key, for
    any query whose second nearest key is further away by ``gap`` in squared distance (`lookup_error`). Keys that are an
    array are squared in float64, and need all n tokens (no ``shorter`` input); keys that are data are squared by a
    spline that is off by at most ``epsilon``.

    Args:
        query: a value of one feature.
        keys: n numbers, or a value.
        values: n numbers, or a value.
        sharpness: how much the nearest key is preferred, above 0.
        epsilon: how far off the squares of keys that are data may be; default: as of ``apply``.

    Returns:
        A value with the features of ``values``.

    Raises:
        InvalidInput: the query is not a value of a program, or ``sharpness`` or ``epsilon`` is not above 0.
    """
    query = only_value("lookup", query)
    s = positive("lookup", "sharpness", sharpness)
    asked = None if epsilon is None else positive("lookup", "epsilon", epsilon)
    if isinstance(keys, Value):
        squares = apply(np.square, keys, epsilon=asked)
    else:
        if is_shorter(query):
            raise InvalidInput(
                "'lookup' cannot take an array of keys in a program for shorter sequences: every token brings one key, "
                "and a shorter sequence would miss the last ones. Give the keys as a value, or all n tokens."
            )
        keys = as_value("lookup", keys, query)
        squares = Value("constant", (), query.n, 1, {"array": keys.settings["array"] ** 2})
    values = as_value("lookup", values, query)
    same_shape("lookup", query, keys)
    if query.d != 1:
        raise InvalidInput(f"'lookup' takes queries and keys of one feature; got {query.d}.")
    both = mix(query, [[2.0 * s], [0.0]]) + np.repeat([[0.0, -s]], query.n, axis=0)
    return attend(both, mix(keys, [[1.0], [0.0]]) + mix(squares, [[0.0], [1.0]]), values, called="lookup")


def lookup_error(n: int, sharpness: float, gap: float, spread: float) -> float:
    """How far a soft lookup is from the nearest key's value: each of the n − 1 others weighs at most exp(−s·gap).

        P.lookup_error(n=4, sharpness=100.0, gap=0.05, spread=3.0)

    Args:
        n: how many keys there are.
        sharpness: that of the look-up.
        gap: how much further away the second nearest key is, in squared distance.
        spread: the largest value minus the smallest.

    Returns:
        The bound, a number.
    """
    return (n - 1) * math.exp(-sharpness * gap) * spread
