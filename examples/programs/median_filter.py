"""The median of a token and its two neighbours; the ends count themselves twice. Exact: minima and maxima only."""

import numpy as np

from thereexists import program as P

N = 16
x = P.tokens(n=N)
left = P.take(x, np.maximum(np.arange(N) - 1, 0))
right = P.take(x, np.minimum(np.arange(N) + 1, N - 1))
program = P.middle(left, x, right)


def reference(X: np.ndarray) -> np.ndarray:
    padded = np.concatenate([X[:, :1], X, X[:, -1:]], axis=1)
    return np.median(np.stack([padded[:, t : t + N] for t in range(3)]), axis=0)
