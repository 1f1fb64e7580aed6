"""Whether the number of tokens above 1/2 is odd. A token less than 1/64 above 1/2 counts in part.

The parity of a whole number is a zigzag of straight lines: one feed-forward half, exact.
"""

import numpy as np

from thereexists import program as P

N, MARGIN = 10, 2.0**-6

x = P.tokens(n=N)
count = P.sum(P.greater(x, 0.5, margin=MARGIN))
program = P.interp(count, np.arange(N + 1), np.arange(N + 1) % 2)


def reference(X: np.ndarray) -> np.ndarray:
    count = np.clip((X - 0.5) / MARGIN, 0, 1).sum(axis=1, keepdims=True)
    return np.broadcast_to(1 - np.abs(count % 2 - 1), X.shape)
