"""A bound for a black box: true with a stated probability over our own random points, whatever the function is.

With Y = volume · ‖f(X) − g(X)‖_p^p for uniform X, E[Y] = d_p^p. If 0 ≤ Y ≤ R, the empirical Bernstein inequality
(Maurer and Pontil 2009, Theorem 4) says that with probability at least 1 − α

    E[Y] ≤ mean + sqrt(2 V ln(2/α) / m) + 7 R ln(2/α) / (3 (m − 1)),

V being the sample variance of m independent points. R = volume · Σ_entries (F + B)^p needs the stated bound F on |f|;
B comes from the network's own clamp. A point where |f| > F refutes the claim, and is an error. The float64 run of g
stands for g: it is within the certificate's float error of it.
"""

from __future__ import annotations

import math

import numpy as np

from thereexists.certificates.output_bound import output_bound
from thereexists.certificates.rigorous import refuse_extremes
from thereexists.errors import InvalidInput, InvalidTarget
from thereexists.grid import Grid
from thereexists.model import Transformer
from thereexists.target import Array, Target

MOST_NUMBERS = 1 << 24  # of all samples together: they are held in memory


def statistical_bound(
    network: Transformer, target: Target, grid: Grid, run, p: float, confidence: float, samples: int, seed: int
) -> tuple[float, list[float]]:
    """(the bound on d_p, the output bounds B)."""
    F = target.bound
    if F is None:
        raise InvalidInput(
            f"{target.name} states neither a Lipschitz constant nor an interval extension, so only a statistical "
            "certificate is possible, and that needs a bound on |f|: state one of them (--lipschitz when building, "
            "or --bound)."
        )
    refuse_extremes(p, target)
    if samples < 2 or not 0 < confidence < 1:
        raise InvalidInput("A statistical certificate needs at least 2 samples and a confidence between 0 and 1.")
    if samples * grid.n * grid.d > MOST_NUMBERS:
        raise InvalidInput(
            f"A statistical certificate takes at most {MOST_NUMBERS // (grid.n * grid.d):,} samples here; got "
            f"{samples:,} instead."
        )
    B = output_bound(network)
    rng = np.random.default_rng(seed)
    X = target.low + (target.high - target.low) * rng.random((samples, grid.n, grid.d))
    Y = target(X)
    if np.abs(Y).max() > F:
        worst = np.abs(Y).max(axis=(1, 2)).argmax()
        raise InvalidTarget(
            f"{target.name} claims |f| ≤ {F:g}, but reaches {np.abs(Y).max():g} at {X[worst].tolist()}."
        )
    error = (np.abs(Y - run(X)) ** p).sum(axis=(1, 2)) * target.volume
    R = target.volume * grid.n * sum((F + b) ** p for b in B)
    return bernstein(error, R, 1 - confidence) ** (1 / p), B


def mean_error(target: Target, grid: Grid, run, p: float, samples: int) -> float:
    """The plain estimate of d_p from fresh points that nobody could choose beforehand."""
    rng = np.random.default_rng()
    X = target.low + (target.high - target.low) * rng.random((samples, grid.n, grid.d))
    return float((np.abs(target(X) - run(X)) ** p).sum(axis=(1, 2)).mean() * target.volume) ** (1 / p)


def statistical_assumptions(target: Target) -> list[str]:
    return [f"|f| is at most {target.bound:g} on the domain", "the float64 run stands for the network"]


def bernstein(values: Array, R: float, alpha: float) -> float:
    """Upper confidence bound for the mean of values in [0, R]."""
    m, log = len(values), math.log(2 / alpha)
    return float(values.mean()) + math.sqrt(2 * float(values.var(ddof=1)) * log / m) + 7 * R * log / (3 * (m - 1))
