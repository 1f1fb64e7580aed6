"""The largest token so far, by doubling: four blocks for 16 tokens. Compiles to a causal network too."""

import numpy as np

from thereexists import program as P

program = P.cummax(P.tokens(n=16))


def reference(X: np.ndarray) -> np.ndarray:
    return np.maximum.accumulate(X, axis=1)
