"""The mean of a token and the three before it; at the beginning, of as many as there are (zeros before them)."""

import numpy as np

from thereexists import program as P

x = P.tokens(n=16)
program = P.convolve(x, np.full(4, 0.25))


def reference(X: np.ndarray) -> np.ndarray:
    padded = np.pad(X, ((0, 0), (3, 0), (0, 0)))
    return np.mean([padded[:, t : t + 16] for t in range(4)], axis=0)
