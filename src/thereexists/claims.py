"""What a target claims about its function, put to the test: a counterexample ends a claim, survival proves nothing."""

from __future__ import annotations

import numpy as np

from thereexists.target import Target


def refute(target: Target, pairs: int = 4_000, seed: int = 0) -> str | None:
    """A sentence with a counterexample to the modulus or the interval extension, or None if random pairs find none."""
    if target.variation(1.0) is None and target.interval is None:
        return None
    rng = np.random.default_rng(seed)
    X = target.low + (target.high - target.low) * rng.random((pairs, target.n, target.d))
    reach = 10.0 ** rng.uniform(-4, 0, (pairs, 1, 1)) * (target.high - target.low)
    Y = np.clip(X + reach * rng.choice([-1.0, 0.0, 1.0], X.shape), target.low, target.high)
    f_X, f_Y = target(X), target(Y)
    # f is computed in floats: allow the rounding of a sum of a thousand terms of its largest value.
    rounding = 1e3 * np.finfo(np.float64).eps * max(1.0, float(np.abs(f_X).max()), float(np.abs(f_Y).max()))
    if target.variation(1.0) is not None:
        moved, change = np.abs(X - Y).max(axis=(1, 2)), np.abs(f_X - f_Y).max(axis=(1, 2))
        allowed = np.array([target.variation(float(r)) for r in moved])
        if (change > allowed + rounding).any():
            at = int((change - allowed).argmax())
            return (
                f"f changes by {change[at]:.4g} between {X[at].tolist()} and {Y[at].tolist()}, "
                f"and its modulus of continuity allows {allowed[at]:.4g}"
            )
    if target.interval is not None:
        low, high = target.interval(np.minimum(X, Y), np.maximum(X, Y))
        low, high = low - rounding, high + rounding
        outside = ((f_X < low) | (f_X > high) | (f_Y < low) | (f_Y > high)).any(axis=(1, 2))
        if outside.any():
            at = int(outside.argmax())
            return f"the interval extension misses f between {X[at].tolist()} and {Y[at].tolist()}"
    return None
