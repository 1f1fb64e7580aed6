"""What a compiled program claims of its error, and by how much that is exceeded."""

import numpy as np
import torch

from tests.program.cases import inputs
from thereexists import program as P

SANE = 2.0**-32  # no claim is tested by this: a bound in float64 above it would be too weak to catch a wrong network


def in_dtype(X, dtype, source):
    """Inputs that are numbers of the dtype and lie in the range."""
    X = torch.from_numpy(X).to(getattr(torch, dtype)).to(torch.float64).numpy()
    low, high = source.settings["low"], source.settings["high"]
    return np.where((X >= low) & (X <= high), X, 0.0)  # every range of the table holds 0


def largest_error(compiled, X, dtype):
    exact = P.interpret(compiled.program, X.astype(np.longdouble))
    return float(np.abs(compiled(X, dtype).astype(np.longdouble) - exact).max())


def violations(compiled, claim, dtype, count=96, seed=0):
    """How much a claim is exceeded on random and edge inputs; 0 if it is kept."""
    X = in_dtype(inputs(compiled.source, count, seed), dtype, compiled.source)
    return max(0.0, largest_error(compiled, X, dtype) - claim.total)
