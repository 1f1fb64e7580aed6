"""Autograd goes through the reference: a built network can be trained on. What torch.compile does with it is stated."""

import os
import subprocess
import sys

import pytest
import torch

import thereexists as te
from tests.evaluate.networks import inputs, sorted_network
from thereexists.evaluate import evaluate, explain
from thereexists.functions.targets import builtin


def test_fine_tuning_a_built_network_lowers_its_loss():
    """Sort on a coarse grid answers with cell centres; training the value layers moves the answers to the data."""
    witness = te.build(builtin("sort", n=2), delta=1 / 4)
    network = witness.network
    X = inputs(witness, count=256)
    wanted = X.sort(dim=1).values ** 2  # another function than the one it was built for
    moves = network.stages["value"].feed_forward.W_2
    start, losses = moves.detach().clone(), []
    optimiser = torch.optim.Adam([moves], lr=0.3)
    for _ in range(30):
        optimiser.zero_grad()
        loss = (evaluate(network, X) - wanted).square().mean()
        loss.backward()
        moves.grad[-1] = 0  # the clamp of the last layer multiplies ids: it stays as it is
        losses.append(loss.item())
        optimiser.step()
    assert losses[-1] < 0.5 * losses[0]
    assert not torch.equal(moves, start)
    with torch.no_grad():  # the engines run the trained network, whose weights are no longer those of any construction
        Y = network(X)
        assert explain(network, X).used == "skip"
        gap = (evaluate(network, X) - Y).abs().max()
        # one value layer acts on a token: a handful of roundings of numbers of the size of the ids
        assert gap <= 16 * torch.finfo(torch.float64).eps * witness.grid.unit * 2.0**witness.plan.id_bits


def test_automatic_choice_keeps_gradients():
    network = sorted_network(depth=40)
    X = torch.rand(3, 3, 2, dtype=torch.float64, requires_grad=True)
    choice = explain(network, X)
    assert choice.used == "reference"
    assert "gradients" in choice.because
    evaluate(network, X, "skip").sum().backward()  # a fast engine that is asked for gives way too
    assert X.grad is not None
    assert bool(X.grad.isfinite().all())


COMPILED = """
import pytest
import torch
from tests.evaluate.networks import random_network, sorted_network
from thereexists.evaluate import evaluate

torch.set_grad_enabled(False)
network, X = random_network(depth=2), torch.rand(3, 4, 2, dtype=torch.float64)
assert torch.equal(torch.compile(network, backend="eager", fullgraph=True)(X), network(X))
print("the reference is one graph")

deep, X = sorted_network(depth=40), torch.rand(5, 3, 2, dtype=torch.float64)
caller = lambda X: 2 * evaluate(deep, X, "skip") + 1
assert torch.equal(torch.compile(caller, backend="eager")(X), caller(X))
print("a caller breaks its graph and goes on")
"""


@pytest.mark.slow
def test_what_torch_compile_does():
    """In a process of its own: the shape checks of this suite cannot be traced."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], env=environment, capture_output=True, text=True, timeout=300
    )
    assert "the reference is one graph" in done.stdout, done.stderr
    assert "a caller breaks its graph and goes on" in done.stdout, done.stderr
