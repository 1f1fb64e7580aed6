"""One table of cases for every level of test: target, n, d, 1/δ, and the layers the theory page states for it."""

from typing import NamedTuple

from thereexists.functions.target import Target
from thereexists.functions.targets import builtin


class Case(NamedTuple):
    name: str
    n: int
    d: int
    N: int
    quantise: int
    context: int
    value: int

    def target(self) -> Target:
        return builtin(self.name, n=self.n, d=self.d)


CASES = [
    # quantise d/δ (dn/δ), context δ^-d + 1 (nδ^-d + 1), value Σ j·C(K,j) (nδ^-dn); Theorem 1 first, then Theorem 2.
    Case("distance-to-mean", 3, 1, 8, 8, 9, 232),
    Case("distance-to-max", 3, 1, 16, 16, 17, 1936),
    Case("softmax-attention", 2, 2, 4, 8, 17, 256),
    Case("soft-rank", 2, 1, 8, 8, 9, 64),
    Case("nearest-neighbour", 3, 1, 4, 4, 5, 28),
    Case("sort", 3, 1, 8, 24, 25, 1536),
    Case("sort", 2, 2, 4, 16, 33, 512),
    Case("reverse", 2, 1, 2, 4, 5, 8),
    Case("cumulative-mean", 4, 1, 4, 16, 17, 1024),
    Case("convolution", 3, 1, 4, 12, 13, 192),
]
IDS = [f"{c.name}-n{c.n}-d{c.d}-N{c.N}" for c in CASES]
