"""A causal convolution of two channels with a kernel of five taps each, then a ReLU."""

import numpy as np

from thereexists import program as P

KERNEL = np.array([0.5, -1.0, 0.25, 0.75, -0.375])

x = P.tokens(n=12, d=2, low=-1.0, high=1.0)
program = P.relu(P.mix(P.convolve(x, KERNEL), [[1.0, -0.5]]))


def reference(X: np.ndarray) -> np.ndarray:
    mixed = X[:, :, 0] - 0.5 * X[:, :, 1]
    return np.maximum(np.stack([np.convolve(row, KERNEL)[:12] for row in mixed]), 0.0)[:, :, None]
