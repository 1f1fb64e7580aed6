"""Numbers so large that 1 more is the same float64: slopes beyond the outermost knots count all the same."""

import numpy as np
import torch

from thereexists import program as P


def test_a_bend_at_two_to_the_65():
    """The clip keeps the numbers small, but not the errors of 1000·(x − mean); then one unit bends at c/2."""
    c = 2.0**66
    x = P.tokens(5, low=-4 * c, high=4 * c)
    program = P.relu(P.clip(1000.0 * (x - P.mean(x)), -c, c) - c / 2)
    compiled = P.compile(program)
    rng = np.random.default_rng(0)
    X = rng.uniform(-3 * c, 3 * c, (4000, 1, 1)) + rng.uniform(-1.0, 1.0, (4000, 5, 1)) * c * 2e-3
    for dtype in ("float64", "float32"):
        given = torch.from_numpy(X).to(getattr(torch, dtype)).to(torch.float64).numpy()
        off = np.abs(compiled(given, dtype) - P.interpret(program, given.astype(np.longdouble))).max()
        assert 0 < off <= compiled.bound(dtype).total
