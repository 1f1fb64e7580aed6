"""A quarter of a token and of each of the three before it: a moving average, with zeros before the beginning."""

import numpy as np

from thereexists import program as P

x = P.tokens(n=12)
program = P.convolve(x, np.full(4, 0.25))


def reference(X: np.ndarray) -> np.ndarray:
    padded = np.pad(X, ((0, 0), (3, 0), (0, 0)))
    return np.mean([padded[:, t : t + 12] for t in range(4)], axis=0)
