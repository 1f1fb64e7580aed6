"""Numbers so large that 1 more is the same float64, or so small that 1 drowns them."""

import numpy as np
import pytest
import torch

import thereexists as te
from thereexists import program as P


def test_a_bend_at_two_to_the_65():
    """The clip keeps the numbers small, but not the errors of 1000·(x − mean); then one unit bends at c/2.

    Slopes beyond the outermost knots count all the same.
    """
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


@pytest.mark.parametrize("size", [1e-20, 1e-38, 1e-150])
def test_attention_over_tiny_tokens(size):
    """Queries and keys are tokens times 1/size. What snaps the tokens must not be larger than they are by far."""
    x = P.tokens(2, low=-size, high=size)
    program = P.attend(x / (2 * size), x / (2 * size), x)
    witness = te.build(program, dtypes=("float64",))
    X = np.random.default_rng(0).uniform(-size, size, (50, 2, 1))
    off = np.abs(witness(X) - P.interpret(program, X)).max()
    assert off <= min(witness.certificate.bound, 1e-12 * size)
