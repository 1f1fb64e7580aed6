"""The fraction of tokens so far that are above 1/2 (a ramp of 1/64): one causal head, or sums by doubling."""

import numpy as np

from thereexists import program as P

N, MARGIN = 16, 2.0**-6

program = P.prefix_mean(P.greater(P.tokens(n=N), 0.5, margin=MARGIN))


def reference(X: np.ndarray) -> np.ndarray:
    flags = np.clip((X - 0.5) / MARGIN, 0, 1)
    return np.cumsum(flags, axis=1) / np.arange(1, N + 1)[:, None]
