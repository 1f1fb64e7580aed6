"""How a model's loss falls with tokens: a power law through the last decade of its training curve, and its uncertainty.

A record holds the held-out loss at a dozen points along the run, evenly in the logarithm of the tokens (``curve``).
Over the points from a tenth of the budget on, past warm-up, the straight line log loss = c − b·log tokens is fitted by
least squares: loss ∝ tokens^(−b). With several seeds b is their mean ± half its 95 % interval (Student); with one it
carries the interval of the regression, which knows nothing of other seeds and is marked so.

What b is not: the exponent of a scaling law. All points are of one run whose rate decays to 0 at its end, which
steepens the curve there; for a law, runs that end at each of these budgets would be needed. It serves to compare mixers
under one schedule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from thereexists.experiments.results import Figure, Record, t_quantile

FROM = 0.1  # of the budget


@dataclass(frozen=True)
class Law:
    """loss ≈ e^log_scale · tokens^(−exponent) between ``low`` and ``high`` tokens."""

    run: str
    exponent: float
    half: float | None  # of its 95 % interval; None: too few points
    over_seeds: bool  # or over the points of one run
    log_scale: float
    low: float
    high: float
    last: Figure  # the loss at the end

    def at(self, tokens: float) -> float:
        return _exp(self.log_scale - self.exponent * math.log(tokens))


def curve_of(record: Record) -> list[tuple[float, float]]:
    """(tokens, held-out loss) of the first stage that has a curve."""
    for stage in record["stages"].values():
        if "curve" in stage:
            return [(point["tokens"], point["loss"]) for point in stage["curve"] if point.get("loss", 0) > 0]
    return []


def laws(records: Iterable[Record]) -> list[Law]:
    """One for every model whose records hold curves, best last loss first."""
    groups: dict[str, list[list[tuple[float, float]]]] = {}
    for record in records:
        curve = curve_of(record)
        if len({tokens for tokens, _ in curve if tokens >= FROM * curve[-1][0]}) >= 2:
            groups.setdefault(record["run"], []).append(curve)
    return sorted((_law(run, curves) for run, curves in groups.items()), key=lambda law: law.last.mean)


def _law(run: str, curves: list[list[tuple[float, float]]]) -> Law:
    fits = [_fit([point for point in curve if point[0] >= FROM * curve[-1][0]]) for curve in curves]
    last = Figure.of([curve[-1][1] for curve in curves])
    high = max(curve[-1][0] for curve in curves)
    exponents = Figure.of([fit[0] for fit in fits])
    several = len(fits) > 1
    scale = sum(fit[1] for fit in fits) / len(fits)
    half = exponents.half() if several else fits[0][2]
    return Law(run, exponents.mean, half, several, scale, FROM * high, high, last)


def _exp(x: float) -> float:
    """e^x, cut off where a float ends: a curve that jumps has a line as steep as it likes."""
    return math.exp(max(-700.0, min(x, 700.0)))


def _fit(points: list[tuple[float, float]]) -> tuple[float, float, float | None]:
    """Exponent, logarithm of the scale, and half the exponent's 95 % interval by the residuals."""
    x, y = [math.log(tokens) for tokens, _ in points], [math.log(loss) for _, loss in points]
    n, mean_x, mean_y = len(points), sum(x) / len(x), sum(y) / len(y)
    spread = sum((one - mean_x) ** 2 for one in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    intercept = mean_y - slope * mean_x
    residual = sum((b - intercept - slope * a) ** 2 for a, b in zip(x, y, strict=True))
    half = t_quantile(0.975, n - 2) * math.sqrt(residual / (n - 2) / spread) if n > 2 else None
    return -slope, intercept, half


def law_table(records: list[Record], beside: dict[str, list[str]]) -> list[list[str]]:
    """Rows of text; ``beside`` are further cells by run: parameters and cost."""
    out = []
    for law in laws(records):
        half = "" if law.half is None else f" ± {law.half:.3f}" + ("" if law.over_seeds else " (one seed)")
        end = law.last.half()
        loss = f"{law.last.mean:.3f}" + ("" if end is None else f" ± {end:.3f}")
        out.append([law.run, loss, f"{law.exponent:.3f}{half}", *beside.get(law.run, [])])
    return out
