"""A network runs in the dtype that it is proved in, and in no other."""

import numpy as np
import torch

import thereexists as te
from thereexists.evaluate.prefixes import prefixes


def in_float32_and_under_autocast(run, weight):
    """The answers and their gradients, without autocast and with it."""
    wanted = run()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = run()
    return [(Y, *torch.autograd.grad(Y.sum(), weight)) for Y in (wanted, found)]


def same(one, other):
    return all(torch.equal(a, b) and a.dtype == b.dtype == torch.float32 for a, b in zip(one, other, strict=True))


def test_autocast_does_not_change_the_dtype():
    network = te.build(te.targets.builtin("sort", n=2), delta=1 / 8, construction="compact").to("float32").network
    X = torch.from_numpy(np.random.default_rng(0).random((4, 2, 1))).float()
    assert same(*in_float32_and_under_autocast(lambda: network(X), network.W_out))


def test_nor_that_of_a_run_on_shorter_sequences():
    network = te.build(te.automata.regex("(ab)*", alphabet="ab"), n=4).to("float32").network
    ids = torch.tensor([[1, 2, 3]])
    assert same(*in_float32_and_under_autocast(lambda: prefixes(network, ids), network.W_out))


def test_shapes_alone_have_no_autocast():
    network = te.build(te.Table([[0, 1]], [[1, 0]]), construction="compact").network.to("meta")
    assert network(torch.ones(1, 2, dtype=torch.int64, device="meta")).device.type == "meta"
