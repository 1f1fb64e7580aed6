"""How the smallest working hidden size grows with the length: the paper's figure, for every method here.

A row of the study is one (method, k, L): random targets, the smallest verified ``d`` (median over the seeds). The
slope is the least-squares fit of ``d`` against ``log L`` and ``r2`` says how straight the line is. A point at ``d >=
2L`` is the trivial head ``X = [B, I]``, where nothing is projected; such points are shown but left out of the fit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.heads.fit import FitOptions, propose
from thereexists.heads.matrix import random_matrix


@dataclass(frozen=True)
class Point:
    """The smallest verified hidden sizes of one method on random targets of one (L, k), one for every seed."""

    method: str
    k: int
    length: int
    hidden_sizes: tuple[int, ...]
    seconds: float

    @property
    def hidden_size(self) -> float:
        return float(np.median(self.hidden_sizes))

    @property
    def trivial(self) -> bool:
        return self.hidden_size >= 2 * self.length


@dataclass(frozen=True)
class Line:
    """``d ≈ intercept + slope · log L`` over the non-trivial points."""

    method: str
    k: int
    slope: float | None
    intercept: float | None
    r2: float | None
    points: int


@dataclass(frozen=True)
class Study:
    """How the smallest working hidden size grows with the length: what ``te.heads.run_study`` returns.

        te.heads.run_study([16, 32], ks=[1], methods=["moments"]).lines[0].slope

    Attributes:
        points: the smallest verified hidden sizes, one entry for each method, k and length.
        lines: for each method and k, the line fitted to them over log length.
        settings: what was asked for.
    """

    points: tuple[Point, ...]
    lines: tuple[Line, ...]
    settings: dict[str, Any] = field(default_factory=dict)

    def report(self) -> dict[str, Any]:
        table = [
            {
                "method": p.method,
                "k": p.k,
                "length": p.length,
                "hidden_size": p.hidden_size,
                "hidden_sizes": list(p.hidden_sizes),
                "trivial": p.trivial,
                "seconds": p.seconds,
            }
            for p in self.points
        ]
        return {"settings": self.settings, "table": table, "lines": [vars(line) for line in self.lines]}


def run_study(
    lengths: Iterable[int],
    ks: Iterable[int] = (1, 2, 4),
    methods: Iterable[str] = ("projection", "corrected", "convex", "moments"),
    *,
    options: FitOptions = FitOptions(),
    gamma: float = 2.0,
    seeds: Iterable[int] = (0,),
    longest: dict[str, int] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Study:
    """Measure every combination, each fitted with ``options`` (their tolerances, say).

        te.heads.run_study([16, 32], ks=[1], methods=["moments"])

    ``longest`` caps the length per method (a convex search at 16,384 takes minutes).

    Args:
        lengths: of the targets.
        ks: non-zeros in a row.
        methods: of ``te.heads.fit``.
        options: how each is fitted.
        gamma: of the targets.
        seeds: of the targets; each is measured.
        longest: a cap on the length, by method.
        progress: called with one line about each.

    Returns:
        The table, and the fitted lines.

    Raises:
        InvalidInput: there is no such method, or a size is outside its range.
    """
    lengths, ks, methods, seeds = list(lengths), list(ks), list(methods), list(seeds)
    if not lengths or min(lengths) < 4:
        raise InvalidInput(f"A study needs lengths of at least 4. Got {lengths}.")
    points: list[Point] = []
    for method in methods:
        for k in ks:
            for L in lengths:
                if k > L // 2 or (longest or {}).get(method, math.inf) < L:
                    continue
                started = time.perf_counter()
                try:
                    sizes = tuple(
                        propose(
                            random_matrix(L, k, gamma, seed), replace(options, method=method, seed=seed)
                        ).hidden_size
                        for seed in seeds
                    )
                except CannotBuild as reason:
                    progress(f"{method} k={k} L={L}: {reason}")
                    continue
                points.append(Point(method, k, L, sizes, time.perf_counter() - started))
                progress(f"{method} k={k} L={L}: d = {points[-1].hidden_size:g} ({points[-1].seconds:.1f} s)")
    lines = tuple(_line(points, method, k) for method in methods for k in ks)
    settings = {"eps1": options.eps1, "eps2": options.eps2, "gamma": gamma, "seeds": seeds, "lengths": lengths, "k": ks}
    return Study(tuple(points), lines, settings)


def _line(points: list[Point], method: str, k: int) -> Line:
    mine = [p for p in points if p.method == method and p.k == k and not p.trivial]
    if len(mine) < 3:
        return Line(method, k, None, None, None, len(mine))
    x, y = np.log([p.length for p in mine]), np.array([p.hidden_size for p in mine])
    if (y == y[0]).all():
        return Line(method, k, 0.0, float(y[0]), None, len(mine))
    slope, intercept = np.polyfit(x, y, 1)
    residual, total = ((y - slope * x - intercept) ** 2).sum(), ((y - y.mean()) ** 2).sum()
    return Line(method, k, float(slope), float(intercept), float(1 - residual / total), len(mine))


def plot_study(study: Study, path: str | Path) -> None:
    """One panel per k: hidden size against L, both logarithmic, with the trivial 2L for scale."""
    from thereexists.heads.plot import draw_study

    draw_study(study, path)
