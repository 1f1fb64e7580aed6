"""A bound for a black box: true with a stated probability over our own random points, whatever the function is.

With Y = ‖f(X) − g(X)‖_p^p for uniform X, volume · E[Y] = d_p^p. If 0 ≤ Y ≤ R, the empirical Bernstein inequality
(Maurer and Pontil 2009, Theorem 4) says that with probability at least 1 − α

    E[Y] ≤ mean + sqrt(2 V ln(2/α) / m) + 7 R ln(2/α) / (3 (m − 1)),

V being the sample variance of m independent points. R = Σ_entries (F + B)^p needs the stated bound F on |f|; B comes
from the network's own clamp. A point where |f| > F refutes the claim, and is an error. Errors are measured in units of
the largest possible one, so that no power overflows, and one that underflows is nothing beside R.

**Which domain.** Over a domain D that is not a box, X is uniform in a set that holds D (a box around it; of probability
vectors, the simplex), whose measure takes the place of the volume, and Y = 0 beside D: measure · E[Y] = d_p^p again.

**Which g.** The float64 run, every output cut to [−B, B] (one that is not a number counts as farthest from f). The
weights prove |g| ≤ B in exact arithmetic only, where the cut changes nothing: a network may reach 1e90 in some hidden
place, and rounding undo its clamp there. Cut, Y ≤ R holds whatever the float64 run does, and the bound follows. That
the run as it is keeps to B is tried, not proved: a point that does not, drawn here or near the edges
(``float_edges.py``), ends it.

**A stranger's claim.** The probability is over the points, and whoever chooses the seed chooses the points: of a
hundred seeds one may well give a bound that is false. So ``established`` believes no seed. It draws its own points, m,
4m, 16m and at last 64m of them, until its own upper confidence bound is at most the claimed one (established), or its
own lower one is above it (refuted). The rounds have the levels α/2, α/4, α/8, α/16, together less than α, with α the
certificate's or 1 %, whichever is less. Hence, whatever was tried beforehand, *a bound below the true distance is
established with probability at most α, and a true one refuted with probability at most α*. A claim between the two
after all rounds is not established. That happens to an honest claim if its own sample was unusually kind: its excess
over the true mean, on average sqrt(2 ln(2/α)) ≈ 3.3 standard errors of m points at 99 %, must have shrunk to half a
standard error: in the normal approximation less than 1 time in 300 at a confidence of 99 %, less than 1 in 30 at 90 %.
(2^24 numbers are drawn at most, or 4m points: fewer than 64m points only of large samples or long sequences.)
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thereexists.certificates.float_edges import refuse_strays, strays
from thereexists.certificates.output_bound import output_bound
from thereexists.certificates.rigorous import refuse_extremes
from thereexists.core.errors import InvalidInput, InvalidTarget, NotProved
from thereexists.core.plain_text import in_full
from thereexists.functions.grid import Grid
from thereexists.functions.target import Array, Target
from thereexists.model import Transformer

MOST_NUMBERS = 1 << 24  # of all samples together: they are held in memory
MOST_ALPHA = 0.01  # of a verification, whatever the certificate claims
ROUNDS, GROWTH = 4, 4


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
    errors = _Errors.of(target, grid, run, p, F, B)
    stray = strays(run, target, grid, B, seed)
    if stray is not None:
        raise NotProved(f"Not proved: {stray}; rounding undoes what bounds this network.")
    drawn = errors.drawn(np.random.default_rng(seed), samples)
    return errors.distance(bernstein(drawn, errors.R, 1 - confidence)), B


@dataclass(frozen=True)
class Established:
    """Whether fresh points establish a claimed bound (None: neither that nor its contrary), and what they show."""

    holds: bool | None
    points: int
    low: float
    high: float


def established(
    claim: float, target: Target, grid: Grid, run, p: float, confidence: float, samples: int, B: list[float]
) -> Established:
    """Whether d_p ≤ ``claim``, from points that nobody could know beforehand: see the head of this file."""
    errors = _Errors.of(target, grid, run, p, target.bound or 0.0, B)
    rng, seen = np.random.default_rng(secrets.randbits(128)), _Moments()
    alpha, low, high = min(1 - confidence, MOST_ALPHA), 0.0, math.inf
    most = max(GROWTH * samples, MOST_NUMBERS // (grid.n * grid.d))
    for round_ in range(ROUNDS):
        alpha /= 2
        wanted = min(samples * GROWTH**round_, most)
        while seen.count < wanted:
            seen = seen.with_(errors.drawn(rng, min(samples, wanted - seen.count)))
        width = _width(seen.count, seen.variance, errors.R, alpha)
        low, high = (errors.distance(max(seen.mean + side * width, 0.0)) for side in (-1, 1))
        if high <= claim or low > claim:
            return Established(high <= claim, seen.count, low, high)
    return Established(None, seen.count, low, high)


@dataclass(frozen=True)
class _Errors:
    """Σ_entries (|f − g|/unit)^p at random points; at most ``R``."""

    target: Target
    grid: Grid
    run: Callable[[Array], Array]
    p: float
    F: float
    B: list[float]
    unit: float
    R: float

    @classmethod
    def of(cls, target: Target, grid: Grid, run, p: float, F: float, B: list[float]) -> _Errors:
        unit = max(F + b for b in B)
        if not math.isfinite(unit):
            raise NotProved(
                "Not proved: nothing bounds the output of this network, and a statistical bound needs that."
            )
        unit = unit or 1.0  # f and g are 0
        return cls(target, grid, run, p, F, B, unit, grid.n * sum(((F + b) / unit) ** p for b in B))

    def drawn(self, rng: np.random.Generator, count: int) -> Array:
        target = self.target
        X = self._anywhere(rng, count)
        if not len(X):
            return np.zeros(count)
        Y = target(X)
        if np.abs(Y).max() > self.F:
            worst = np.abs(Y).max(axis=(1, 2)).argmax()
            raise InvalidTarget(
                f"{target.name} claims |f| ≤ {in_full(self.F)}, but reaches {in_full(float(np.abs(Y).max()))} at "
                f"{X[worst].tolist()}."
            )
        G = self.run(X)
        refuse_strays(X, G, self.B, self.grid)
        with np.errstate(under="ignore"):
            found = ((np.abs(Y - np.clip(G, -np.array(self.B), self.B)) / self.unit) ** self.p).sum(axis=(1, 2))
        return np.concatenate([found, np.zeros(count - len(found))])  # in no order: only moments are taken of them

    def _anywhere(self, rng: np.random.Generator, count: int) -> Array:
        """So many points of a set that holds the domain; those of them that lie in it."""
        shape = (count, self.grid.n, self.grid.d)
        X, inside = self.target.drawn(rng.random(shape), rng.random(shape))
        return X[inside]

    def distance(self, mean: float) -> float:
        """d_p for this mean of Y: the volume lies within 1e±100, and the mean is at most R."""
        return self.unit * (self.target.volume * mean) ** (1 / self.p)


@dataclass(frozen=True)
class _Moments:
    """Count, mean and sum of squared deviations, updated a batch at a time (Chan, Golub and LeVeque 1983)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def with_(self, values: Array) -> _Moments:
        count, mean = len(values), float(values.mean())
        total, gap = self.count + count, mean - self.mean
        squares = self.squares + float(((values - mean) ** 2).sum()) + gap**2 * self.count * count / total
        return _Moments(total, self.mean + gap * count / total, squares)

    @property
    def variance(self) -> float:
        return self.squares / (self.count - 1)


def statistical_assumptions(target: Target) -> list[str]:
    return [
        f"|f| is at most {in_full(float(target.bound or 0.0))} on the domain",
        *([] if target.region is None else target.region.assumptions()),
        "the network is run in float64 and its outputs are cut to the output bound, which in exact arithmetic changes "
        "nothing",
        *(["outside the domain the float64 run is 0, as in exact arithmetic"] if target.compact_support else []),
    ]


def bernstein(values: Array, R: float, alpha: float) -> float:
    """Upper confidence bound for the mean of values in [0, R]."""
    return float(values.mean()) + _width(len(values), float(values.var(ddof=1)), R, alpha)


def _width(m: int, variance: float, R: float, alpha: float) -> float:
    """How far the mean of m points may be below the true one, or above it, each with probability at most α."""
    log = math.log(2 / alpha)
    return math.sqrt(2 * variance * log / m) + 7 * R * log / (3 * (m - 1))
