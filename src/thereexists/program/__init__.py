"""Programs over the reals, and over symbols, compiled to Transformers (beyond the papers).

    from thereexists import program as P

    x = P.tokens(n=64)  # 64 reals in [0, 1]
    compiled = P.compile(P.sort(x))
    compiled.blocks, compiled.bound("float32").total

A program is a graph of primitives; each has a small Transformer form that is exact in real arithmetic, or a spline with
a stated error. What NumPy has too is called as there (``P.sum``, ``P.max``, ``P.roll`` …): import the module, not its
names, some of which are Python's own. See docs/programs.md; for strings, ``P.symbols("abc", n=64)``, docs/symbols.md.
"""

from thereexists.constructions.program.compiler import Bound, Compiled, compile
from thereexists.constructions.program.compositions import (
    attend,
    attention,
    convolve,
    delay,
    equal,
    greater,
    greater_equal,
    histogram,
    lookup,
    lookup_error,
    median,
    middle,
    soft_largest,
    top_k,
)
from thereexists.constructions.program.elementwise import abs, clip, maximum, minimum, relu
from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.operations import (
    apply,
    argsort,
    broadcast,
    constant,
    divide,
    flip,
    interp,
    mix,
    multiply,
    rank,
    roll,
    scale,
    sort,
    take,
    tokens,
    where,
)
from thereexists.constructions.program.reductions import cummax, cummin, cumsum, max, mean, min, prefix_mean, sum
from thereexists.constructions.program.splines import reciprocal, rsqrt, sigmoid
from thereexists.constructions.symbols.language import (
    Symbols,
    as_symbols,
    choose,
    counts,
    isin,
    numbers_of,
    one_hot,
    recode,
    same,
    symbols,
)
from thereexists.constructions.symbols.lookups import argmax, find, previous, sort_by
from thereexists.constructions.symbols.strings import interpret

__all__ = [
    "Bound",
    "Compiled",
    "Symbols",
    "Value",
    "abs",
    "apply",
    "argmax",
    "argsort",
    "as_symbols",
    "attend",
    "attention",
    "broadcast",
    "choose",
    "clip",
    "compile",
    "constant",
    "convolve",
    "counts",
    "cummax",
    "cummin",
    "cumsum",
    "delay",
    "divide",
    "equal",
    "find",
    "flip",
    "greater",
    "greater_equal",
    "histogram",
    "interp",
    "interpret",
    "isin",
    "lookup",
    "lookup_error",
    "max",
    "maximum",
    "mean",
    "median",
    "middle",
    "min",
    "minimum",
    "mix",
    "multiply",
    "numbers_of",
    "one_hot",
    "prefix_mean",
    "previous",
    "rank",
    "reciprocal",
    "recode",
    "relu",
    "roll",
    "rsqrt",
    "same",
    "scale",
    "sigmoid",
    "soft_largest",
    "sort",
    "sort_by",
    "sum",
    "symbols",
    "take",
    "tokens",
    "top_k",
    "where",
]
