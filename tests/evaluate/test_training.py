"""Autograd goes through the reference: a built network can be trained on. What torch.compile does with it is stated."""

import torch

import thereexists as te
from tests.evaluate.networks import bits, built, inputs, random_network, sorted_network
from thereexists.evaluate import evaluate, explain
from thereexists.targets import builtin


def test_fine_tuning_a_built_network_lowers_its_loss():
    """Sort on a coarse grid answers with cell centres; training the value layers moves the answers to the data."""
    witness = te.build(builtin("sort", n=2), delta=1 / 4)
    network = witness.network
    X = inputs(witness, count=256)
    wanted = X.sort(dim=1).values**2  # another function than the one it was built for
    moves = network.stages["value"].feed_forward.W_2
    start, losses = moves.detach().clone(), []
    optimiser = torch.optim.Adam([moves], lr=1e-2)
    for _ in range(30):
        optimiser.zero_grad()
        loss = (evaluate(network, X) - wanted).square().mean()
        loss.backward()
        losses.append(float(loss))
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


def test_a_shallow_reference_compiles_into_one_graph():
    network = random_network(depth=2)
    X = torch.rand(3, 4, 2, dtype=torch.float64)
    with torch.no_grad():
        compiled = torch.compile(network, backend="eager", fullgraph=True)
        assert torch.equal(compiled(X), network(X))


def test_a_compiled_caller_may_call_any_engine():
    """The engines are opaque: the graph breaks there, and the answer is the same."""
    witness = built("reverse-n2-d1-N2")
    X = inputs(witness)

    def caller(X):
        return 2 * evaluate(witness.network, X, "skip") + 1

    with torch.no_grad():
        compiled = torch.compile(caller, backend="eager")
        assert (bits(compiled(X)) == bits(caller(X))).all()
