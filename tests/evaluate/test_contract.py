"""One contract for every engine in the registry, on every kind of network; ``reference`` is the definition."""

import dataclasses
import functools

import numpy as np
import pytest
import torch

from tests.evaluate.bounds import attention_bound, feed_forward_bound
from tests.evaluate.networks import BUILT, RANDOM, bits, built, inputs, ramp_inputs, random_network, sorted_network
from thereexists.core.errors import InvalidInput
from thereexists.evaluate import ENGINES, evaluate, explain
from thereexists.evaluate._engine import register
from thereexists.evaluate._skip_torch import run_parts as skip_by_torch
from thereexists.model import Attention, FeedForward, Stage, ThreePiece, Transformer

FAST = [name for name in ENGINES if name != "reference"]


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@functools.cache
def expected(name):
    witness = built(name)
    return inputs(witness), witness.network(inputs(witness))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", BUILT)
def test_built_networks_have_the_bits_of_the_reference(name, engine):
    X, Y = expected(name)
    assert explain(built(name).network, X, engine).used == engine
    assert np.array_equal(bits(evaluate(built(name).network, X, engine)), bits(Y))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", BUILT)
def test_the_skip_of_whole_arrays_has_the_bits_of_the_reference(name):
    X, Y = expected(name)
    assert np.array_equal(bits(skip_by_torch(built(name).network, X)), bits(Y))


@pytest.mark.parametrize("name", BUILT)
def test_skip_has_the_bits_of_fused_on_the_ramps_too(name):
    witness = built(name)
    X = ramp_inputs(witness, 25)
    Y = evaluate(witness.network, X, "fused")
    assert np.array_equal(bits(evaluate(witness.network, X, "skip")), bits(Y))
    if witness.network.rho != "softmax":  # there torch's own exponential takes part
        assert np.array_equal(bits(skip_by_torch(witness.network, X)), bits(Y))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rho", ["softmax", "hardmax", "sparsemax", "entmax15"])
@pytest.mark.parametrize("seed", range(3))
def test_skip_has_the_bits_of_fused_on_networks_nobody_built(rho, seed):
    network = sorted_network(rho=rho, seed=seed)
    X = torch.rand(200, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    choice = explain(network, X, "skip")
    assert choice.used == "skip"
    assert sum("bisection" in part for part in choice.parts) == 2
    Y = evaluate(network, X, "fused")
    assert float((Y - X - network.E).abs().max()) > 0.1  # the layers do act
    assert np.array_equal(bits(evaluate(network, X, "skip")), bits(Y))
    if rho in ("hardmax", "sparsemax"):  # no exponential, no bisection of torch's own
        assert np.array_equal(bits(skip_by_torch(network, X)), bits(Y))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("kind", RANDOM)
def test_every_half_layer_of_a_random_network_is_within_its_rounding_bound(kind, engine):
    network = random_network(**RANDOM[kind])
    stage = network.stages["blocks"]
    n, d = network.E.shape
    Z = torch.rand(20, n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + network.E
    undecided = 0
    for l in range(10):
        weights = [w[l : l + 1] for w in stage.attention.parameters_list()]
        mask = stage.attention.mask(l)
        one = Transformer({"a": Stage(Attention(*weights, None if mask is None else mask[None]))}, network.rho)
        bound = 2 * attention_bound(Z, *(w[0] for w in weights), mask, network.rho)
        undecided += int(bound.isinf().sum())
        after = one(Z)
        assert bool(((evaluate(one, Z, engine) - after).abs() <= bound).all())
        weights = [w[l : l + 1] for w in stage.feed_forward.parameters_list()]
        one = Transformer({"f": Stage(feed_forward=FeedForward(*weights))}, network.rho)
        Z, before = one(after), after
        bound = 2 * feed_forward_bound(before, *(w[0] for w in weights))
        assert bool(((evaluate(one, before, engine) - Z).abs() <= bound).all())
        assert float(bound.max()) < 1e-12
    assert undecided < 20  # hardmax may be close to a tie now and then, not always


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [*RANDOM, "three-piece"])
def test_a_random_network_is_the_composition_of_its_half_layers(kind):
    """Bit by bit, whatever the rounding: parts are run in the right order, with the right weights and masks."""
    network = random_network(phi=True, r=2) if kind == "three-piece" else random_network(**RANDOM[kind])
    stage = network.stages["blocks"]
    X = torch.rand(50, *network.E.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    Z = X + network.E
    for l in range(stage.depth):
        mask, phi = stage.attention.mask(l), stage.feed_forward.phi
        weights = [w[l : l + 1] for w in stage.attention.parameters_list()]
        attention = Attention(*weights, None if mask is None else mask[None])
        weights = [w[l : l + 1] for w in stage.feed_forward.parameters_list()]
        pieces = None if phi is None else ThreePiece(*(w[l : l + 1] for w in phi.parameters_list()))
        for half in (Stage(attention), Stage(feed_forward=FeedForward(*weights, pieces))):
            Z = evaluate(Transformer({"one": half}, network.rho), Z, "fused")
    assert explain(network, X, "fused").used == "fused"
    assert np.array_equal(bits(evaluate(network, X, "fused")), bits(Z))
    assert not torch.equal(Z, X + network.E)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_stage_of_plain_blocks_runs_the_same(engine):
    """``blocks()`` and ``from_blocks`` give a stage with both halves in every layer, most of them zero."""
    original = built("sort-n2-d2-N4")
    network = Transformer.from_blocks(original.network.blocks(), original.network.E.detach())
    X, Y = expected("sort-n2-d2-N4")
    assert explain(network, X, engine).used == engine
    assert np.array_equal(bits(evaluate(network, X, engine)), bits(Y))


@pytest.mark.parametrize("engine", ENGINES)
def test_input_and_weights_are_left_alone(engine):
    witness = built("reverse-n2-d1-N2")
    X = inputs(witness)
    before, weights = X.clone(), [p.clone() for p in witness.network.parameters()]
    evaluate(witness.network, X, engine)
    assert torch.equal(X, before)
    assert all(torch.equal(a, b) for a, b in zip(weights, witness.network.parameters(), strict=True))


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_what_is_not_a_usable_number_goes_to_the_reference(engine, bad):
    network = sorted_network(depth=40)
    X = torch.rand(3, 3, 2, dtype=torch.float64)
    X[1, 2, 0] = bad
    choice = explain(network, X, engine)
    assert choice.used == "reference"
    assert "NaN" in choice.because
    assert np.array_equal(evaluate(network, X, engine).numpy(), network(X).numpy(), equal_nan=True)


@pytest.mark.parametrize("engine", FAST)
def test_an_overflow_on_the_way_is_decided_by_the_reference(engine):
    network = random_network(depth=40, seed=3)
    network.stages["blocks"].feed_forward.W_2.mul_(1e30)
    X = torch.rand(5, 4, 2, dtype=torch.float64)
    Y = network(X)
    assert not bool(Y.isfinite().all())
    assert np.array_equal(evaluate(network, X, engine).numpy(), Y.numpy(), equal_nan=True)


@pytest.mark.parametrize(
    ("change", "because"),
    [
        (lambda network, X: (network.float(), X.float()), "float64"),
        (lambda network, X: (random_network(d=20), torch.rand(2, 4, 20, dtype=torch.float64)), "wide"),
        (lambda network, X: (random_network(d=20, depth=3), torch.rand(2, 4, 20, dtype=torch.float64)), "3 layers"),
        (lambda network, X: (random_network(depth=3), X), "3 layers"),
    ],
)
def test_automatic_choice_leaves_the_rest_to_the_reference(change, because):
    network, X = change(random_network(), torch.rand(2, 4, 2, dtype=torch.float64))
    choice = explain(network, X)
    assert (choice.asked, choice.used) == ("auto", "reference")
    assert because in choice.because
    assert torch.equal(evaluate(network, X), network(X))


def test_automatic_choice_prefers_skip_then_fused_then_reference(monkeypatch):
    X = torch.rand(2, 3, 2, dtype=torch.float64)
    network = sorted_network(rho="hardmax")
    Y = evaluate(network, X, "fused")
    assert explain(network, X).used == "skip"
    random = random_network(n=3)
    choice = explain(random, X)
    assert choice.used == "fused"
    assert "not skip: no run of layers qualifies" in choice.because
    monkeypatch.setattr("thereexists.evaluate.fused.find_spec", lambda name: None)
    monkeypatch.setattr("thereexists.evaluate.skip.find_spec", lambda name: None)
    choice = explain(random, X)
    assert choice.used == "reference"
    assert "thereexists[fast]" in choice.because
    assert explain(random, X, "fused").used == "reference"
    assert explain(network, X).used == "skip"  # whole-array torch
    assert np.array_equal(bits(evaluate(network, X)), bits(Y))


def test_unknown_engines_and_second_registrations_are_refused():
    with pytest.raises(InvalidInput, match=r"'engine' must be auto or one of fused, reference, skip; got 'warp'"):
        evaluate(random_network(), torch.rand(2, 4, 2, dtype=torch.float64), "warp")
    with pytest.raises(InvalidInput, match="already an engine named 'fused'"):
        register(ENGINES["fused"])


def test_a_witness_takes_an_engine_and_its_tiles_agree(monkeypatch):
    witness = built("sort-n2-d2-N4")
    X = inputs(witness).numpy()
    whole = witness(X, engine="reference")
    monkeypatch.setattr("thereexists.constructions.faithful.witness._CHUNK", 7)
    for engine in ("auto", *ENGINES):
        assert np.array_equal(witness(X, engine=engine), whole)
    assert dataclasses.asdict(witness.explain(X))["used"] == "skip"


@pytest.mark.parametrize("engine", ["auto", "reference", *FAST])
@pytest.mark.parametrize("shape", [(2, 3, 1), (2, 3, 3), (2, 3, 3000), (2, 4, 2)])
def test_an_input_of_another_shape_is_refused_and_never_read_beside(engine, shape):
    network = sorted_network(depth=40)  # of three tokens with two features
    with pytest.raises(InvalidInput, match=r"\(batch, 3, 2\)"):
        evaluate(network, torch.zeros(shape, dtype=torch.float64), engine)
    with pytest.raises(InvalidInput, match=r"\(batch, 3, 2\)"):
        explain(network, torch.zeros(shape, dtype=torch.float64), engine)


def test_parts_of_two_widths_are_no_network():
    one, two = (random_network(d=d, depth=3) for d in (1, 2))
    with pytest.raises(InvalidInput, match="one d"):
        Transformer({"a": one.stages["blocks"], "b": two.stages["blocks"]})
    with pytest.raises(InvalidInput, match="one d"):
        Transformer({"a": one.stages["blocks"]}, E=two.E.detach())
