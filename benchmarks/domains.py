"""What a domain costs that is no box: cubes, layers, units and seconds on it, against those of the box around it.

Layers are those of the faithful network; units those of the compact one's memory, for a function without equal values
and for sort, whose values at the middles of cells are few, so that cubes share units: on a domain f is asked elsewhere.

python benchmarks/domains.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import thereexists as te
from thereexists.core.errors import CannotBuild

BOX = (0.0, 1.0)
DOMAINS = {
    "tokens on the simplex": te.domains.Simplex(),
    "sequences on the simplex": te.domains.Simplex(whole=True),
    "ball, radius 0.3": lambda size: te.domains.Ball([0.5] * size, 0.3) & te.domains.Box([0.0] * size, [1.0] * size),
}
CASES = [  # name, n, d, N
    ("tokens on the simplex", 1, 3, 8),
    ("tokens on the simplex", 2, 2, 8),
    ("tokens on the simplex", 2, 3, 4),
    ("tokens on the simplex", 2, 3, 8),
    ("sequences on the simplex", 3, 1, 8),
    ("sequences on the simplex", 4, 1, 8),
    ("ball, radius 0.3", 2, 1, 16),
    ("ball, radius 0.3", 3, 1, 16),
    ("ball, radius 0.3", 4, 1, 8),
]


def waves(X: np.ndarray) -> np.ndarray:
    """A function without two equal values, for which no cubes share a unit."""
    return np.sin(3 * X.cumsum(axis=1) + np.arange(1, X.shape[2] + 1)) + X.mean(axis=(1, 2), keepdims=True) ** 2


def counted(domain: Any, n: int, d: int, N: int) -> list[int | None]:
    """Cubes, layers of the faithful network, memory units of the compact one; None where it cannot be built."""
    target = te.Target(waves, n=n, d=d, domain=domain)
    sort = te.targets.builtin("sort", n=n, d=d, domain=domain)
    planned: list[int | None] = [te.Grid.for_target(target, f"1/{N}").cells]
    planned.append(_planned(sort, N, "faithful", lambda plan: plan.layers["total"]))
    return planned + [_planned(f, N, "compact", lambda plan: plan.sizes["units"]) for f in (target, sort)]


def _planned(target: te.Target, N: int, construction: str, of: Callable[[Any], int]) -> int | None:
    try:
        return of(te.plan(target, delta=f"1/{N}", construction=construction))
    except CannotBuild:
        return None


def sizes() -> None:
    heads = ("domain", "n, d, δ", "cubes", "layers", "units, waves", "units, sort")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name, n, d, N in CASES:
        made = DOMAINS[name]
        mine = counted(made(n * d) if callable(made) else made, n, d, N)
        pairs = [f"{_said(a)} of {_said(b)}" for a, b in zip(mine, counted(BOX, n, d, N), strict=True)]
        print(f"| {name} | {n}, {d}, 1/{N} | {' | '.join(pairs)} |")


def seconds() -> None:
    print("| sort on | n, d, δ | build and certify, s | of the box, s | ratio |\n|---|---|---|---|---|")
    for name, n, d, N in (("tokens on the simplex", 2, 2, 8), ("sequences on the simplex", 4, 1, 8)):
        times = [_timed(domain, n, d, N) for domain in (DOMAINS[name], BOX)]
        print(f"| {name} | {n}, {d}, 1/{N} | {times[0]:.1f} | {times[1]:.1f} | {times[0] / times[1]:.2f} |")


def _timed(domain: object, n: int, d: int, N: int) -> float:
    target = te.targets.builtin("sort", n=n, d=d, domain=domain)
    start = time.perf_counter()
    te.certify(te.build(target, delta=f"1/{N}"), opinions=1)
    return time.perf_counter() - start


def _said(number: int | None) -> str:
    return "not built" if number is None else f"{number:,}"


if __name__ == "__main__":
    sizes()
    print()
    seconds()
