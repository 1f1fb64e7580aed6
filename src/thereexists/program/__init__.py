"""Programs over the reals, compiled to Transformers (beyond the papers).

    from thereexists import program as P

    x = P.tokens(n=64)  # 64 reals in [0, 1]
    compiled = P.compile(P.sort(x))
    compiled.blocks, compiled.bound("float32").total

A program is a graph of primitives; each has a small Transformer form that is exact in real arithmetic, or a spline with
a stated error. See docs/programs.md.
"""

from thereexists.program.compiler import Bound, Compiled, compile, interpret
from thereexists.program.graph import Value
from thereexists.program.operations import (
    absolute,
    apply,
    broadcast,
    clip,
    constant,
    gather,
    largest,
    maximum,
    mean,
    minimum,
    mix,
    relu,
    reverse,
    shift,
    smallest,
    sort,
    tokens,
    total,
)

__all__ = [
    "Bound",
    "Compiled",
    "Value",
    "absolute",
    "apply",
    "broadcast",
    "clip",
    "compile",
    "constant",
    "gather",
    "interpret",
    "largest",
    "maximum",
    "mean",
    "minimum",
    "mix",
    "relu",
    "reverse",
    "shift",
    "smallest",
    "sort",
    "tokens",
    "total",
]
