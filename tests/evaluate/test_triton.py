"""The Triton kernels without a GPU: Triton's own interpreter runs them, in a process of its own."""

import importlib.util
import os
import subprocess
import sys

import pytest

SCRIPT = """
import numpy as np, torch
import thereexists as te
from tests.evaluate.bounds import attention_bound, feed_forward_bound
from tests.evaluate.networks import bits, inputs, random_network, there_and_back
from thereexists.model import Stage, Transformer
from thereexists.evaluate._triton import run_parts
from thereexists.functions.targets import builtin

torch.set_grad_enabled(False)
star = te.patterns.star(3)
for witness in (
    te.build(builtin("soft-rank", n=3), delta=1 / 2),
    te.build(builtin("sort", n=2, d=2), delta=1 / 2, modified=True),
    te.build(builtin("reverse", n=3), delta=1 / 2, pattern=star),
):
    X = inputs(witness, count=4)
    assert np.array_equal(bits(run_parts(witness.network, X)), bits(witness.network(X))), witness.target.name
for options in ({}, {"rho": "hardmax"}, {"masked": True, "h": 3}, {"d": 1, "m": 1}):
    network = random_network(depth=1, **options)
    stage, Z = network.stages["blocks"], torch.rand(9, *network.E.shape, dtype=torch.float64)
    only = Transformer({"a": Stage(stage.attention)}, network.rho)
    weights = [w[0] for w in stage.attention.parameters_list()]
    bound = 2 * attention_bound(Z, *weights, stage.attention.mask(0), network.rho)
    assert ((run_parts(only, Z) - only(Z)).abs() <= bound).all(), options
    only = Transformer({"f": Stage(feed_forward=stage.feed_forward)}, network.rho)
    bound = 2 * feed_forward_bound(Z, *(w[0] for w in stage.feed_forward.parameters_list()))
    assert ((run_parts(only, Z) - only(Z)).abs() <= bound).all(), options
X = torch.full((1, 2, 2), 0.5, dtype=torch.float64)
for kind in ("unit", "layer", "head"):
    assert run_parts(there_and_back(kind), X) is None, kind
print("the kernels agree")
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_the_kernels_give_the_bits_of_the_reference_in_the_interpreter():
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(["src", *sys.path])}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=300)
    assert "the kernels agree" in done.stdout, done.stderr
