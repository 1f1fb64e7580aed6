"""Sort up to 16 reals: sequences of every length from 1 to 16 go through the same network."""

import numpy as np

from thereexists import program as P

program = P.sort(P.tokens(n=16, shorter=True))


def reference(X: np.ndarray) -> np.ndarray:
    return np.sort(X, axis=1)
