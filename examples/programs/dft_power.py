"""The power of one frequency of the discrete Fourier transform: |Σ_t x_t·exp(−2πi·2t/16)|²/16², at every token."""

import numpy as np

from thereexists import program as P

N, FREQUENCY = 16, 2
angle = 2 * np.pi * FREQUENCY * np.arange(N) / N

x = P.tokens(n=N)
real, imaginary = P.mean(x * np.cos(angle)), P.mean(x * np.sin(angle))
program = P.apply(np.square, real, epsilon=1e-4) + P.apply(np.square, imaginary, epsilon=1e-4)


def reference(X: np.ndarray) -> np.ndarray:
    power = np.abs(np.fft.fft(X, axis=1)[:, FREQUENCY : FREQUENCY + 1]) ** 2 / N**2
    return np.broadcast_to(power, X.shape)
