"""The Triton kernels without a GPU: Triton's own interpreter runs them, in a process of its own."""

import importlib.util
import os
import subprocess
import sys

import pytest

SCRIPT = """
import numpy as np, torch
import thereexists as te
from tests.evaluate.networks import bits, inputs, random_network
from thereexists.evaluate import evaluate
from thereexists.evaluate._triton import run_parts
from thereexists.targets import builtin

torch.set_grad_enabled(False)
star = te.patterns.star(3)
for witness in (
    te.build(builtin("soft-rank", n=3), delta=1 / 2),
    te.build(builtin("sort", n=2, d=2), delta=1 / 2, modified=True),
    te.build(builtin("reverse", n=3), delta=1 / 2, pattern=star),
):
    X = inputs(witness, count=4)
    assert np.array_equal(bits(run_parts(witness.network, X)), bits(witness.network(X))), witness.target.name
for options in ({}, {"rho": "hardmax", "phi": True}, {"rho": "sparsemax", "masked": True}, {"masked": True, "h": 3}):
    network = random_network(depth=3, **options)
    X = torch.rand(9, 4, 2, dtype=torch.float64)
    # three random layers amplify a rounding error a few times at most; 2^-40 of the size is far above and far below
    gap = (run_parts(network, X) - network(X)).abs().max()
    assert gap <= 2.0**-40 * network(X).abs().max(), (options, gap)
print("the kernels agree")
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_the_kernels_give_the_bits_of_the_reference_in_the_interpreter():
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(["src", *sys.path])}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=300)
    assert "the kernels agree" in done.stdout, done.stderr
