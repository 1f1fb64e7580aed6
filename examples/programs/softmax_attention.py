"""A layer of two softmax heads with given weights, with its residual connection."""

import numpy as np

from thereexists import program as P

rng = np.random.default_rng(11)
W_Q, W_K, W_V = (rng.normal(size=(2, 3, 4)) for _ in range(3))
W_O = rng.normal(size=(2, 4, 3)) / 2

x = P.tokens(n=12, d=4, low=-1.0, high=1.0)
program = x + P.attention(x, W_Q, W_K, W_V, W_O, temperature=3**0.5)


def reference(X: np.ndarray) -> np.ndarray:
    out = X
    for Q, K, V, O in zip(W_Q, W_K, W_V, W_O, strict=True):
        logits = (X @ Q.T) @ np.swapaxes(X @ K.T, 1, 2) / 3**0.5
        weights = np.exp(logits - logits.max(axis=2, keepdims=True))
        out = out + weights / weights.sum(axis=2, keepdims=True) @ (X @ V.T) @ O.T
    return out
