"""One table of programs for every level of test: each primitive alone, and programs that mix them."""

import numpy as np

from thereexists import program as P


def smooth(n):
    x = P.tokens(n)
    return 0.25 * P.roll(x, 1) + 0.5 * x + 0.25 * P.roll(x, -1)


def mixed(n):
    x = P.tokens(n, d=2)
    spread = P.max(x) - P.min(x)
    return P.mix(P.abs(x - P.mean(x)) / 3 + P.minimum(spread, 0.7), [[1.0, -0.3], [0.1, 2.0]])


def layered(n):
    """Values that stay alive for long while others come and go."""
    x = P.tokens(n)
    y = x
    for k in range(1, 5):
        y = P.maximum(P.flip(y) - 0.1 * k, P.relu(x - P.mean(y)))
    return y + x


def ramp(n):
    return np.linspace(-1.0, 2.0, n)


PROGRAMS = {
    "tokens": lambda n: P.tokens(n),
    "constant": lambda n: P.constant(ramp(n), P.tokens(n)) + P.tokens(n),
    "constant only in a hinge": lambda n: P.maximum(P.tokens(n), ramp(n)),
    "linear": lambda n: 0.3 * P.tokens(n) - 0.1,
    "negative": lambda n: 1 - P.tokens(n, low=-3.0, high=0.3) / 7,
    "mix": lambda n: P.mix(P.tokens(n, d=2), [[0.1, -0.7], [3.0, 1.0], [0.0, 1.0]]),
    "take": lambda n: P.take(P.tokens(n), (np.arange(n) * 7 + 3) % n // 2),
    "take of a form": lambda n: P.flip(3 * P.tokens(n, low=-1.0) - 0.7),
    "roll": lambda n: P.roll(P.tokens(n), 3),
    "flip": lambda n: P.flip(P.tokens(n)),
    "broadcast": lambda n: P.broadcast(P.tokens(n), n - 1),
    "mean": lambda n: P.mean(P.tokens(n)),
    "sum": lambda n: P.sum(P.tokens(n, low=-0.5, high=0.25)),
    "relu": lambda n: P.relu(P.tokens(n) - 0.4),
    "abs": lambda n: P.abs(P.tokens(n) - 0.4),
    "maximum": lambda n: (lambda x: P.maximum(x, P.flip(x)))(P.tokens(n)),
    "minimum": lambda n: P.minimum(0.3, P.tokens(n, low=-2.0)),
    "clip": lambda n: P.clip(P.tokens(n), 0.2, 0.7),
    "sort": lambda n: P.sort(P.tokens(n)),
    "sort of a form": lambda n: P.sort(2.5 * P.tokens(n, low=-0.3, high=0.9) + ramp(n)),
    "sort of two features": lambda n: P.sort(P.tokens(n, d=2)),
    "max": lambda n: P.max(P.tokens(n)),
    "min": lambda n: P.min(P.tokens(n, low=-1.0)),
    "apply": lambda n: P.apply(np.sin, 3 * P.tokens(n), epsilon=1e-3, curvature=1.0),
    "apply twice": lambda n: P.apply(
        np.cos, P.apply(np.sin, P.tokens(n), epsilon=1e-2, curvature=1.0), epsilon=1e-2, curvature=1.0
    ),
    "apply, then sort": lambda n: P.sort(P.apply(np.cos, 6 * P.tokens(n), epsilon=1e-2, curvature=1.0)),
    "smooth": smooth,
    "mixed": mixed,
    "layered": layered,
}


def few(n):
    """Factors that take three values only, one of them 0."""
    return np.array([0.7, 0.0, -1.5])[np.arange(n) % 3]


def own_weights(h, m, d, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in ((h, m, d), (h, m, d), (h, m, d), (h, 2, m))]


def selected(n):
    x = P.tokens(n, d=2)
    a, b = P.mix(x, [[1.0, 0.0]]), P.mix(x, [[0.0, 1.0]])
    return P.where(P.greater(a, b, margin=0.25), a - 0.5, 2 * b)


def spread_out(n):
    """Linear recurrence, exponential smoothing, gates and a maximum: everything that looks back only."""
    x = P.tokens(n, low=-1.0)
    y = P.cummax(P.prefix_mean(x) + 0.25 * P.delay(x, 1)) - P.cumsum(x) / n
    return P.maximum(y, P.convolve(x, [0.5, 0.3, 0.2]))


PROGRAMS |= {
    "scale": lambda n: P.tokens(n, low=-1.0) * ramp(n),
    "scale by few": lambda n: P.scale(P.tokens(n, low=-0.5), few(n)),
    "cumsum": lambda n: P.cumsum(P.tokens(n, low=-0.5)),
    "prefix_mean": lambda n: P.prefix_mean(P.tokens(n, low=-1.0, high=0.5)),
    "cummax": lambda n: P.cummax(P.tokens(n)),
    "cummin": lambda n: P.cummin(P.tokens(n, low=-1.0) + ramp(n)),
    "delay": lambda n: P.delay(P.tokens(n), min(2, n - 1), fill=-0.25),
    "delay ahead": lambda n: P.delay(P.tokens(n), -1, fill=3.0),
    "convolve": lambda n: P.convolve(P.tokens(n), [0.5, -0.25, 0.1]),
    "where by position": lambda n: (lambda x: P.where(np.arange(n) % 2, x, P.flip(x) - 1))(P.tokens(n)),
    "where": selected,
    "greater": lambda n: P.greater(P.tokens(n), 0.4, margin=0.125),
    "greater_equal": lambda n: (lambda x: P.greater_equal(x, P.flip(x), margin=0.1))(P.tokens(n)),
    "equal": lambda n: (lambda x: P.equal(x, P.roll(x, 1), margin=0.25))(P.tokens(n)),
    "interp": lambda n: P.interp(P.tokens(n), [0.1, 0.5, 0.75], [1.0, -2.0, 0.25]),
    "middle": lambda n: (lambda x: P.middle(P.roll(x, 1), x, P.roll(x, -1)))(P.tokens(n)),
    "median": lambda n: P.median(P.tokens(n)),
    "top_k": lambda n: P.top_k(P.tokens(n), min(2, n)),
    "rank": lambda n: P.rank(P.tokens(n), margin=0.25),
    "argsort": lambda n: P.argsort(P.tokens(n), margin=0.25),
    "histogram": lambda n: P.histogram(P.tokens(n), [0.0, 0.3, 0.7, 1.0], margin=0.125),
    "apply, derived": lambda n: P.apply(np.exp, 2 * P.tokens(n) - 1, epsilon=1e-3),
    "apply, square root": lambda n: P.apply(np.sqrt, P.tokens(n), epsilon=1e-2),
    "multiply": lambda n: (lambda x: P.multiply(x, P.flip(x), epsilon=1e-3))(P.tokens(n, low=-1.0)),
    "multiply, of unequal ranges": lambda n: (lambda x: (8 * x + 1) * (x / 8 - 2))(P.tokens(n)),
    "divide": lambda n: (lambda x: P.divide(P.flip(x), x + 0.5, epsilon=1e-2))(P.tokens(n)),
    "soft_largest": lambda n: P.soft_largest(P.tokens(n), sharpness=32.0),
    "attention": lambda n: P.attention(P.tokens(n, d=3), *own_weights(2, 3, 3), temperature=2.0),
    "attention, two layers": lambda n: P.attention(
        P.attention(P.tokens(n, d=2, low=-1.0), *own_weights(1, 2, 2)), *own_weights(1, 2, 2, seed=1)
    ),
    "lookup": lambda n: P.lookup(P.tokens(n), np.linspace(0.0, 1.0, n), ramp(n), sharpness=40.0),
    "lookup of data": lambda n: (lambda x: P.lookup(x, P.flip(x), x, sharpness=4.0))(P.tokens(n)),
    "spread out": spread_out,
    "shorter sum": lambda n: P.sum(P.tokens(n, low=-1.0, shorter=True)),
    "shorter max": lambda n: P.max(P.tokens(n, shorter=True)),
    "shorter min": lambda n: P.min(P.tokens(n, shorter=True)),
}
APPROXIMATE = {name for name in PROGRAMS if name.startswith(("apply", "multiply", "divide", "soft_", "lookup of"))}


def inputs(source, count, seed):
    """Random inputs with every kind of edge: ends of the range, ties, tiny numbers, almost equal neighbours."""
    rng = np.random.default_rng(seed)
    low, high = source.settings["low"], source.settings["high"]
    unit = rng.random((count, source.n, source.d))
    unit[: count // 8] = rng.integers(0, 2, unit[: count // 8].shape)
    unit[count // 8 : count // 4] = rng.integers(0, 5, unit[: count // 4 - count // 8].shape) / 4
    tiny = slice(count // 4, count // 2)
    unit[tiny] = unit[tiny] ** rng.integers(1, 40, unit[tiny].shape)
    unit[-1], unit[-2] = 0.0, 1.0
    unit[-3] = 0.5 + 2.0**-24 * rng.integers(-2, 3, unit[-3].shape)
    return np.clip(low + (high - low) * unit, low, high)
