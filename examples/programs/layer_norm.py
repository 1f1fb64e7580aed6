"""LayerNorm of four features: (x − mean)/√(variance + 0.05), token by token."""

import numpy as np

from thereexists import program as P

D, EPS = 4, 0.05

x = P.tokens(n=8, d=D, low=-1.0, high=1.0)
centred = P.mix(x, np.eye(D) - 1 / D)
variance = P.mix(P.apply(np.square, centred, epsilon=2e-4), np.full((1, D), 1 / D))
scale = P.apply(P.rsqrt, P.clip(variance, 0.0, 1.0) + EPS, epsilon=1e-3)  # the variance of numbers in [−1, 1] is ≤ 1
program = P.multiply(centred, P.mix(scale, np.ones((D, 1))), epsilon=1e-3)


def reference(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=2, keepdims=True)) / np.sqrt(X.var(axis=2, keepdims=True) + EPS)
