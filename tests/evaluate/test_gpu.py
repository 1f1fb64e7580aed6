"""The engines on a GPU: the bits of the CPU on built networks off the ramps, the rounding bound elsewhere."""

import numpy as np
import pytest
import torch

from tests.evaluate.bounds import attention_bound, feed_forward_bound
from tests.evaluate.networks import BUILT, RANDOM, bits, built, inputs, random_network, there_and_back
from thereexists.evaluate import evaluate, explain
from thereexists.model import Attention, FeedForward, Stage, Transformer

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@pytest.mark.parametrize("engine", ["fused", "skip"])
@pytest.mark.parametrize("name", BUILT)
def test_built_networks_have_the_bits_of_the_reference_on_the_cpu(name, engine):
    witness = built(name)
    X = inputs(witness)
    expected = witness.network.cpu()(X)
    there = witness.network.to("cuda")
    try:
        assert explain(there, X.cuda(), engine).used == engine
        Y = evaluate(there, X.cuda(), engine)
        assert Y.device.type == "cuda"
        assert np.array_equal(bits(Y), bits(expected))
    finally:
        witness.network.cpu()


@pytest.mark.parametrize("kind", RANDOM)
def test_every_half_layer_of_a_random_network_is_within_its_rounding_bound(kind):
    network = random_network(**RANDOM[kind])
    stage = network.stages["blocks"]
    Z = torch.rand(20, *network.E.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + network.E
    for l in range(5):
        weights = [w[l : l + 1] for w in stage.attention.parameters_list()]
        mask = stage.attention.mask(l)
        one = Transformer({"a": Stage(Attention(*weights, None if mask is None else mask[None]))}, network.rho)
        bound = 2 * attention_bound(Z, *(w[0] for w in weights), mask, network.rho)
        after = one(Z)
        there = evaluate(one.to("cuda"), Z.cuda(), "fused").cpu()
        assert bool(((there - after).abs() <= bound).all())
        weights = [w[l : l + 1] for w in stage.feed_forward.parameters_list()]
        one = Transformer({"f": Stage(feed_forward=FeedForward(*weights))}, network.rho)
        Z, before = one(after), after
        there = evaluate(one.to("cuda"), before.cuda(), "fused").cpu()
        assert bool(((there - Z).abs() <= 2 * feed_forward_bound(before, *(w[0] for w in weights))).all())


def test_a_witness_whose_network_is_on_the_gpu_runs_there():
    witness = built("sort-n2-d2-N4")
    X = inputs(witness).numpy()
    expected = witness(X)
    witness.network.to("cuda")
    try:
        assert np.array_equal(witness(X), expected)
        assert np.array_equal(witness(torch.from_numpy(X).cuda()).cpu().numpy(), expected)
    finally:
        witness.network.cpu()


@pytest.mark.parametrize("kind", ["unit", "layer", "head", "sweep"])
@pytest.mark.parametrize("engine", ["fused", "skip"])
def test_what_writes_nothing_and_overflows_is_left_to_the_reference(engine, kind):
    network = there_and_back(kind).to("cuda")
    X = torch.tensor([[[0.5, 0.5], [0.25, 0.25]]], dtype=torch.float64, device="cuda")
    with torch.no_grad():
        assert explain(network, X, engine).used == engine
        assert evaluate(network, X, engine).isnan().all()
