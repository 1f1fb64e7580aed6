"""One table of programs for every level of test: each primitive alone, and programs that mix them."""

import numpy as np

from thereexists import program as P


def smooth(n):
    x = P.tokens(n)
    return 0.25 * P.shift(x, 1) + 0.5 * x + 0.25 * P.shift(x, -1)


def mixed(n):
    x = P.tokens(n, d=2)
    spread = P.largest(x) - P.smallest(x)
    return P.mix(P.absolute(x - P.mean(x)) / 3 + P.minimum(spread, 0.7), [[1.0, -0.3], [0.1, 2.0]])


def layered(n):
    """Values that stay alive for long while others come and go."""
    x = P.tokens(n)
    y = x
    for k in range(1, 5):
        y = P.maximum(P.reverse(y) - 0.1 * k, P.relu(x - P.mean(y)))
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
    "gather": lambda n: P.gather(P.tokens(n), (np.arange(n) * 7 + 3) % n // 2),
    "gather of a form": lambda n: P.reverse(3 * P.tokens(n, low=-1.0) - 0.7),
    "shift": lambda n: P.shift(P.tokens(n), 3),
    "reverse": lambda n: P.reverse(P.tokens(n)),
    "broadcast": lambda n: P.broadcast(P.tokens(n), n - 1),
    "mean": lambda n: P.mean(P.tokens(n)),
    "total": lambda n: P.total(P.tokens(n, low=-0.5, high=0.25)),
    "relu": lambda n: P.relu(P.tokens(n) - 0.4),
    "absolute": lambda n: P.absolute(P.tokens(n) - 0.4),
    "maximum": lambda n: (lambda x: P.maximum(x, P.reverse(x)))(P.tokens(n)),
    "minimum": lambda n: P.minimum(0.3, P.tokens(n, low=-2.0)),
    "clip": lambda n: P.clip(P.tokens(n), 0.2, 0.7),
    "sort": lambda n: P.sort(P.tokens(n)),
    "sort of a form": lambda n: P.sort(2.5 * P.tokens(n, low=-0.3, high=0.9) + ramp(n)),
    "sort of two features": lambda n: P.sort(P.tokens(n, d=2)),
    "largest": lambda n: P.largest(P.tokens(n)),
    "smallest": lambda n: P.smallest(P.tokens(n, low=-1.0)),
    "apply": lambda n: P.apply(np.sin, 3 * P.tokens(n), epsilon=1e-3, curvature=1.0),
    "apply twice": lambda n: P.apply(
        np.cos, P.apply(np.sin, P.tokens(n), epsilon=1e-2, curvature=1.0), epsilon=1e-2, curvature=1.0
    ),
    "apply, then sort": lambda n: P.sort(P.apply(np.cos, 6 * P.tokens(n), epsilon=1e-2, curvature=1.0)),
    "smooth": smooth,
    "mixed": mixed,
    "layered": layered,
}


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
