"""Random programs: a graph of eleven operations, the later ones on the earlier."""

import numpy as np

from thereexists import program as P
from thereexists.constructions.program.ranges import value_range


def random_program(seed, everything=False):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 7)), int(rng.integers(1, 3))
    values = [P.tokens(n, d, low=float(rng.choice([-1.0, 0.0])))]

    def pick():
        return values[rng.integers(max(0, len(values) - 4), len(values))]

    makers = [
        lambda: pick() * float(rng.choice([0.5, -1.0, 0.3])) + pick(),
        lambda: pick() / 2 - rng.integers(-2, 3, (n, 1)) / 4,
        lambda: P.take(pick(), rng.integers(0, n, n)),
        lambda: P.mean(pick()),
        lambda: P.relu(pick() - 0.1),
        lambda: P.abs(pick()),
        lambda: P.maximum(pick(), pick()),
        lambda: P.minimum(pick(), 0.5),
        lambda: P.clip(pick(), -0.25, 0.5),
        lambda: P.sort(pick()),
    ]
    if everything:
        makers += [
            lambda: P.scale(pick(), rng.integers(-2, 3, (n, 1)) / 3),
            lambda: P.cumsum(pick()) / n,
            lambda: P.prefix_mean(pick()),
            lambda: P.cummax(pick()),
            lambda: P.delay(pick(), int(rng.integers(1, n))),
            lambda: P.where(P.greater(pick(), pick(), margin=0.25), pick(), pick()),
            lambda: P.where(np.repeat(rng.integers(0, 2, (n, 1)), d, axis=1), pick(), pick()),
            lambda: P.interp(pick(), [-0.5, 0.0, 0.4], rng.normal(size=3)),
            lambda: P.multiply(pick(), pick(), epsilon=1e-3),
            lambda: P.apply(np.tanh, pick(), epsilon=1e-3),
            lambda: P.attend(pick(), pick() * float(rng.choice([0.5, 4.0, 32.0])), pick()),
            lambda: P.soft_largest(pick(), sharpness=float(rng.choice([4.0, 256.0]))),
            lambda: P.rank(pick(), margin=0.5) / n,
        ]
    while len(values) < 11:
        value = makers[rng.integers(len(makers))]()
        values += [value] if max(map(abs, value_range(value))) < 100 else []  # nothing grows for ever
    return values[-1] + values[-2] - values[int(rng.integers(len(values)))]
