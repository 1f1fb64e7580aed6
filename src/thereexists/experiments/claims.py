"""Is one model better than another? Said over seeds: *yes*, *no* or *unclear*, by one stated test.

**The test.** A model's figure is a mean over k seeds with its 95 % interval, mean ± t·sd/√k (Student, k − 1 degrees of
freedom). Two models are compared by the interval of the difference of their means (Welch: unequal spreads). A claim of
m comparisons makes each at level 1 − 0.05/m (Bonferroni): if seeds are normal draws, all intervals of the claim hold
together with probability 95 % (about, Welch's degrees of freedom being an approximation). It is *yes* if every interval
lies on the claimed side of 0, *no* if some interval lies on the other side, and *unclear* otherwise: always so with a
single seed; and never *yes* where a model has no record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from thereexists.core.rounded_figures import rounded_down, rounded_up
from thereexists.experiments.results import Figure, Row, t_quantile

RISK = 0.05
YES, NO, UNCLEAR = "yes", "no", "unclear"
COPIED = 0.995  # of the symbols: perfect but for a slip


@dataclass(frozen=True)
class Claim:
    """A finding of a paper as comparisons: in each pair the first is said to be better."""

    text: str
    figure: str  # "mlm accuracy"
    pairs: tuple[tuple[str, str], ...]
    low: bool = False  # a low figure is a good one


@dataclass(frozen=True)
class Judgement:
    claim: str
    verdict: str
    why: str

    def __str__(self) -> str:
        return f"The paper: {self.claim}: **{self.verdict}** ({self.why})."


def judge(claim: Claim, rows: Iterable[Row]) -> Judgement:
    found = {row.run: row.figures[claim.figure] for row in rows if claim.figure in row.figures}
    unit = 100.0 if claim.figure.endswith("accuracy") else 1.0
    sign = -unit if claim.low else unit
    missing = [name for name in dict.fromkeys(name for pair in claim.pairs for name in pair) if name not in found]
    compared = [
        _Compared(a, b, *_scaled(difference(found[a], found[b], len(claim.pairs)), sign))
        for a, b in claim.pairs
        if a in found and b in found
    ]
    against = [one for one in compared if one.below_zero]
    if against:
        worst = min(against, key=lambda one: one.mean)
        return Judgement(claim.text, NO, f"{worst.worse} is ahead of {worst.better} by {worst.turned()}")
    open_ones = [one for one in compared if not one.above_zero]
    if not open_ones and not missing and compared:
        closest = min(compared, key=lambda one: one.mean - (one.half or 0.0))
        return Judgement(claim.text, YES, f"closest: {closest.better} ahead of {closest.worse} by {closest}")
    return Judgement(claim.text, UNCLEAR, _why_open(open_ones, compared, missing))


def _why_open(open_ones: list[_Compared], compared: list[_Compared], missing: list[str]) -> str:
    if any(one.half is None for one in open_ones):
        held = sum(one.mean > 0 for one in compared)
        return f"too few seeds; of {len(compared)} comparisons of means {held} agree" + _and_missing(missing)
    if open_ones:
        one = max(open_ones, key=lambda one: (one.half or 0.0) - abs(one.mean))
        return f"{one.better} minus {one.worse}: {one}" + _and_missing(missing)
    return f"no record of {', '.join(missing)}"


def _and_missing(missing: list[str]) -> str:
    return f"; no record of {', '.join(missing)}" if missing else ""


@dataclass(frozen=True)
class _Compared:
    better: str  # as claimed
    worse: str
    mean: float  # of the difference, positive as claimed
    half: float | None  # of its interval

    @property
    def above_zero(self) -> bool:
        return self.half is not None and self.mean - self.half > 0

    @property
    def below_zero(self) -> bool:
        return self.half is not None and self.mean + self.half < 0

    def turned(self) -> _Compared:
        return _Compared(self.worse, self.better, -self.mean, self.half)

    def __str__(self) -> str:
        half = self.half or 0.0
        return f"{self.mean:.2f}, interval {rounded_down(self.mean - half, 3)} to {rounded_up(self.mean + half, 3)}"


def difference(a: Figure, b: Figure, comparisons: int = 1) -> tuple[float, float | None]:
    """The difference of two means and half its interval at level 1 − 0.05/comparisons; None: too few seeds."""
    mean = a.mean - b.mean
    if a.sd is None or b.sd is None:
        return mean, None
    left, right = a.sd**2 / a.seeds, b.sd**2 / b.seeds
    if left + right == 0:
        return mean, 0.0
    # Welch and Satterthwaite, by shares: one of them is at least 1/2, so that tiny variances do not divide by 0.
    p, q = left / (left + right), right / (left + right)
    freedom = 1 / (p**2 / (a.seeds - 1) + q**2 / (b.seeds - 1))
    return mean, t_quantile(1 - RISK / (2 * comparisons), freedom) * math.sqrt(left + right)


def _scaled(value: tuple[float, float | None], factor: float) -> tuple[float, float | None]:
    mean, half = value
    return factor * mean, None if half is None else abs(factor) * half


def judge_copying(text: str, rows: list[Row], copies: Callable[[str], bool], wanted: Iterable[str] = ()) -> Judgement:
    """Whether the patterns that should copy do, and no others: ``COPIED`` of the symbols, by the intervals of means.

    ``wanted``: the patterns that the claim is about; without a record of one of them it is not *yes*.
    """
    missing = [name for name in wanted if name not in {row.labels["run"] for row in rows}]
    sure, unsure = [], []
    for row in rows:
        figure = row.figures["copy accuracy"]
        half = figure.half(len(rows))
        name, should = row.labels["run"], copies(row.labels["run"])
        if half is None or figure.mean - half < COPIED <= figure.mean + half:
            unsure.append(f"{name} {100 * figure.mean:.1f} %")
        elif (figure.mean >= COPIED) != should:
            sure.append(f"{name} {100 * figure.mean:.1f} ± {100 * half:.1f} %")
    if sure:
        return Judgement(text, NO, ", ".join(sure))
    if unsure:
        single = any(row.seeds < 2 for row in rows)
        return Judgement(text, UNCLEAR, ("too few seeds; " if single else "") + ", ".join(unsure))
    if missing:
        return Judgement(text, UNCLEAR, f"no record of {', '.join(missing)} with 4 layers")
    return Judgement(text, YES, f"all {len(rows)} patterns")


def order(names: list[str]) -> tuple[tuple[str, str], ...]:
    """``a > b > c`` as comparisons of neighbours."""
    return tuple(pairwise(names))


def each_before(better: Iterable[str], worse: Iterable[str]) -> tuple[tuple[str, str], ...]:
    worse = list(worse)
    return tuple((a, b) for a in better for b in worse)
