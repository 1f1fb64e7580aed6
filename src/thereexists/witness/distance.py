"""How far is the network from the target? An estimate of d_p with a confidence interval, and the exactness check.

d_p(f, g) = (∫ ‖f − g‖_p^p dX)^{1/p} over the domain, entrywise norm. The integral is estimated with R independently
scrambled Sobol' sequences; their R means are independent and unbiased, and Student's t gives the interval. That is
an estimate for people, not a proof: the certificate is another matter. Over a domain that is not a box the points are
those of a box around it (or of the simplex, or single points), and the ones beside the domain count as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from thereexists.certificates.units import over_share
from thereexists.core.authors_word import Figures
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import seed_from, whole
from thereexists.functions.asking import phase
from thereexists.functions.exponent import exponent
from thereexists.functions.grid import Grid
from thereexists.functions.target import Array, Target
from thereexists.witness.plan import beyond_float64

REPLICATES, MOST_SAMPLES, MOST_P = 16, 1 << 30, 1000


@dataclass(frozen=True, repr=False)
class Distance(Figures):
    """d_p between ``low`` and ``high`` at the stated ``confidence``."""

    p: float
    estimate: float
    low: float
    high: float
    samples: int
    confidence: float
    seed: int
    stated: bool = field(default=False, compare=False, kw_only=True)

    @classmethod
    def read(cls, stated: dict[str, float] | None) -> Distance | None:
        return None if stated is None else cls(**stated, stated=True)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class Exactness:
    """The largest |g − f̄| over random inputs off the ramps: what the construction promises to be rounding."""

    max_error: float
    samples: int
    seed: int


def estimate_distance(
    target: Target, g: Callable[[Array], Array], p: float, samples: int, seed: int, confidence: float = 0.95
) -> Distance:
    """Estimate d_p(target, g) with quasi-random points; the seed is kept in the result."""
    from scipy import stats

    samples, seed = whole(samples, "'samples'", REPLICATES, MOST_SAMPLES), seed_from(seed)
    p = exponent(p)
    if p > MOST_P:
        raise InvalidInput(f"'p' must be at most {MOST_P:,}: the mean of larger powers is that of one point; got {p}.")
    per_replicate = 2 ** int(np.log2(samples // REPLICATES))
    unit = np.concatenate([_sobol(target, per_replicate, (seed, r)) for r in range(REPLICATES)])
    X, inside = target.drawn(unit, np.zeros_like(unit))
    gap = np.zeros_like(X)  # what lies beside the domain counts as 0, in the mean over a larger set
    with phase(f"{target.name} at random points", int(inside.sum())):
        wanted = target(X[inside])
    gap[inside] = np.abs(wanted - g(X[inside]))
    unit = float(gap.max()) or 1.0  # p-th powers of other numbers overflow or underflow soon
    error = ((gap / unit) ** p).sum(axis=(1, 2))
    means = error.reshape(REPLICATES, per_replicate).mean(axis=1)
    mean = float(means.mean())
    half = float(stats.t.ppf((1 + confidence) / 2, REPLICATES - 1) * means.std(ddof=1) / np.sqrt(REPLICATES))
    low, estimate, high = (over_share(unit, target, max(x, 0.0), p) for x in (mean - half, mean, mean + half))
    if high == math.inf:
        raise beyond_float64(target, p)
    return Distance(p, estimate, low, high, len(X), confidence, seed)


def exactness(
    target: Target, grid: Grid, g: Callable[[Array], Array], samples: int, seed: int, all_columns: bool = False
) -> Exactness:
    """Compare g with the piecewise constant f̄ on random inputs off the ramps."""
    samples, seed = whole(samples, "'samples'", 1, MOST_SAMPLES), seed_from(seed)
    X = target.points(np.random.default_rng(seed), samples)
    X = X[~grid.on_ramp(X)]
    if not len(X):
        raise InvalidInput(f"All {samples} random inputs lie on ramps; ask for more.")
    return Exactness(float(np.abs(g(X) - cell_values(target, grid, X, all_columns)).max()), len(X), seed)


def cell_values(target: Target, grid: Grid, X: Array, all_columns: bool = False) -> Array:
    """f̄(X): the target at the centre of X's cube. Without positions, Theorem 1's network has 0 where two tokens share
    a cell; a compact one has the target's value there too (``all_columns``)."""
    index = grid.index(X)
    values = grid.values(target, index)
    if not grid.positional and not all_columns:
        ids = np.sort(grid.column_ids(index), axis=1)
        values[(ids[:, 1:] == ids[:, :-1]).any(axis=1)] = 0.0
    return values


def _sobol(target: Target, count: int, seed: tuple[int, int]) -> Array:
    from scipy.stats import qmc

    sampler = qmc.Sobol(target.n * target.d, scramble=True, rng=np.random.default_rng(seed))
    return sampler.random(count).reshape(count, target.n, target.d)
