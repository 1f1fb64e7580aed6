"""A sequence of 16 resampled at 16 other places: each between two tokens, with weights that depend on the place."""

import numpy as np

from thereexists import program as P

N = 16
places = (N - 1) * (np.arange(N) / (N - 1)) ** 2  # denser at the beginning
lower = np.minimum(places.astype(int), N - 2)
weight = places - lower

x = P.tokens(n=N)
program = P.take(x, lower) * (1 - weight) + P.take(x, lower + 1) * weight


def reference(X: np.ndarray) -> np.ndarray:
    return X[:, lower] + (X[:, lower + 1] - X[:, lower]) * weight[:, None]
