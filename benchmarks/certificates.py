"""How tight certificates are for every built-in target, and how their time grows with the number of cubes.

python benchmarks/certificates.py
"""

from __future__ import annotations

import time

import thereexists as te
from thereexists.core.rounded_figures import rounded_up
from thereexists.functions.targets import BUILTINS, builtin


def tightness() -> None:
    print("| target | proved bound | estimate, upper end | ratio |\n|---|---|---|---|")
    for name in BUILTINS:
        witness = te.build(builtin(name, n=3), delta=1 / 8)
        bound, high = te.certify(witness, opinions=1).bound, witness.estimate_distance().high
        print(f"| {name} | {rounded_up(bound, 4)} | {high:.4f} | {bound / high:.3f} |")


def growth() -> None:
    print("| sort | cubes | layers | seconds | seconds per 1,000 cubes |\n|---|---|---|---|---|")
    for n, N in ((3, 4), (3, 8), (3, 16), (4, 8), (3, 32)):
        witness = te.build(builtin("sort", n=n), delta=1 / N)
        start = time.perf_counter()
        certificate = te.certify(witness, opinions=1)
        seconds = time.perf_counter() - start
        row = (f"n={n}, δ=1/{N}", f"{certificate.cells:,}", f"{witness.network.depth:,}", f"{seconds:.1f}")
        print(f"| {' | '.join(row)} | {1000 * seconds / certificate.cells:.2f} |")


if __name__ == "__main__":
    tightness()
    print()
    growth()
