"""y_0 = x_0, y_i = 0.3·x_i + 0.7·y_{i−1}: a recurrence, solved by doubling in four rounds instead of fifteen steps.

After round k, y_i is the sum over the last 2^k tokens, each with its factor; nothing looks ahead.
"""

import numpy as np

from thereexists import program as P

N, KEEP = 16, 0.7

x = P.tokens(n=N)
y = P.where(np.arange(N) == 0, x, (1 - KEEP) * x)
for k in range(4):
    y = y + KEEP ** (2**k) * P.delay(y, 2**k)
program = y


def reference(X: np.ndarray) -> np.ndarray:
    out = [X[:, 0]]
    for i in range(1, N):
        out.append((1 - KEEP) * X[:, i] + KEEP * out[-1])
    return np.stack(out, axis=1)
