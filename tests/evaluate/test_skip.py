"""``skip`` believes the weights and nothing else: every planted fault is seen, the fallback taken, and right."""

import copy

import numpy as np
import pytest
import torch

import thereexists as te
from tests.evaluate.networks import bits, built, inputs, ramp_inputs, sorted_network, there_and_back
from thereexists.evaluate import evaluate, explain, forget
from thereexists.evaluate._parts import parts_of
from thereexists.evaluate._skip_torch import run_parts
from thereexists.model import Attention, Stage, Transformer


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def sweeps(network, stage):
    """(first layer, last layer, whether crossed by bisection) of every part of a stage."""
    parts = [part for part in parts_of(network) if part.stage == stage]
    return [(int(part.layers[0]), int(part.layers[-1]), part.sweep is not None) for part in parts]


def built_network(name):
    return copy.deepcopy(built(name).network)


def test_the_parts_of_a_built_network_are_its_sweeps():
    witness = built("sort-n2-d2-N4")
    grid, network = witness.grid, witness.network
    quantise = [(i * 8, i * 8 + 7, True) for i in range(grid.d)]  # one sweep a feature
    assert sweeps(network, "quantise") == quantise
    assert sweeps(network, "context") == [(0, 31, True), (32, 32, False)]  # the global shift moves everybody
    assert sweeps(network, "value") == [(0, 509, True), (510, 511, False)]  # the last d layers clamp


def test_two_sweeps_are_two_sweeps():
    network = built("two-sweeps").network
    assert sweeps(network, "value") == [(0, 31, True), (32, 62, True), (63, 63, False)]


def test_of_a_sparse_mapping_only_the_working_layers_are_looked_at():
    network = built("strided-softmax").network
    first = next(part for part in parts_of(network) if part.stage == "context")
    alive = (network.stages["context"].attention.W_O != 0).flatten(1).any(1).nonzero()[:, 0]
    assert first.sweep is not None
    assert 0 < len(first.layers) < network.stages["context"].depth
    assert np.isin(first.layers, alive.numpy()).all()


def unsorted(network):
    b_1 = network.stages["value"].feed_forward.b_1
    b_1[[100, 101]] = b_1[[101, 100]]


def other_direction(network):
    network.stages["value"].feed_forward.W_1[100, 0, 0] *= 1.5


def one_unit_of_another_direction(network):
    feed_forward = network.stages["value"].feed_forward
    feed_forward.W_1[100, 3, 0], feed_forward.b_1[100, 3], feed_forward.W_2[100, 0, 3] = -1.0, 2.0**20, 2.0**-10


def not_zero_when_inactive(network):
    network.stages["value"].feed_forward.b_2[100] = 2.0**-10


def infinite_move(network):
    network.stages["value"].feed_forward.W_2[100, 0, 0] = torch.inf


def unsorted_shift(network):
    b_Q = network.stages["context"].attention.b_Q
    b_Q[[5, 20]] = b_Q[[20, 5]]  # ids of the first and of the second position


def heads_that_do_not_cancel(network):
    network.stages["context"].attention.W_O[10, 0] *= 2


def heads_with_other_values(network):
    network.stages["context"].attention.W_V[10, 0] *= 2


def heads_with_other_keys(network):
    network.stages["context"].attention.W_K[10] *= -1


FAULTS = {
    unsorted: ("value", 100),
    other_direction: ("value", 100),
    one_unit_of_another_direction: ("value", 100),
    not_zero_when_inactive: ("value", 100),
    unsorted_shift: ("context", 5),
    heads_that_do_not_cancel: ("context", 10),
    heads_with_other_values: ("context", 10),
    heads_with_other_keys: ("context", 10),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_a_planted_fault_cuts_the_sweep_and_the_answer_is_that_of_fused(fault):
    stage, layer = FAULTS[fault]
    original, network = built("sort-n2-d2-N4").network, built_network("sort-n2-d2-N4")
    fault(network)
    before, after = sweeps(original, stage), sweeps(network, stage)
    assert before[0][0] == 0
    assert before[0][1] > layer + 1  # one sweep went across
    assert before[0][2]
    assert not any(first <= layer - 1 and layer + 1 <= last and crossed for first, last, crossed in after)
    witness = built("sort-n2-d2-N4")
    for X in (inputs(witness), ramp_inputs(witness)):
        assert explain(network, X, "skip").used == "skip"
        assert np.array_equal(bits(evaluate(network, X, "skip")), bits(evaluate(network, X, "fused")))
    X = inputs(witness)
    assert np.array_equal(bits(evaluate(network, X, "skip")), bits(network(X)))  # faults of short dyadic numbers: exact
    assert not torch.equal(network(X), original(X))  # the fault shows


def test_an_infinite_weight_is_left_to_the_reference():
    network = built_network("sort-n2-d2-N4")
    infinite_move(network)
    X = inputs(built("sort-n2-d2-N4"))
    assert np.array_equal(evaluate(network, X, "skip").numpy(), network(X).numpy(), equal_nan=True)


@pytest.mark.parametrize("fault", ["knots", "intercepts", "slopes"])
def test_a_phi_that_is_not_zero_below_its_knot_does_not_qualify(fault):
    witness = built("sort-n2-d2-N4-modified")
    network = copy.deepcopy(witness.network)
    phi = network.stages["value"].feed_forward.phi
    if fault == "knots":
        phi.knots[100, 0, 0] *= 2
    elif fault == "intercepts":
        phi.intercepts[100, 0, 0] = 2.0**-10
    else:
        phi.slopes[100, 0] = torch.tensor([2.0**-10, 0.0, 0.0], dtype=torch.float64)
    assert not any(first <= 99 and 101 <= last and crossed for first, last, crossed in sweeps(network, "value"))
    X = inputs(witness)
    assert np.array_equal(bits(evaluate(network, X, "skip")), bits(evaluate(network, X, "fused")))


def test_knots_in_the_wrong_order_are_run_as_the_reference_runs_them():
    """The second below the first, by a change in place: below the first is no longer below both."""
    witness = te.build(te.targets.builtin("reverse", n=1, d=2), delta=1 / 4, modified=True)
    with torch.no_grad():
        witness.network.stages["quantise"].feed_forward.phi.knots[1, 0, 1] = -1 / 4
    X = np.array([[[0.25, 0.5]], [[0.3, 0.6]], [[0.9, 0.1]]])
    wanted = witness(X, engine="reference")
    assert all(np.array_equal(witness(X, engine=engine), wanted) for engine in ("skip", "fused", "auto"))


def test_a_network_that_qualifies_nowhere_falls_back_and_says_so():
    network = sorted_network(depth=40)
    feed_forward, attention = network.stages["move"].feed_forward, network.stages["shift"].attention
    feed_forward.b_1.copy_(feed_forward.b_1.flip(0))
    attention.b_Q.copy_(attention.b_Q.flip(0))
    X = torch.rand(20, 3, 2, dtype=torch.float64)
    choice = explain(network, X, "skip")
    assert choice.used == "reference"
    assert "no run of layers qualifies for bisection" in choice.because
    assert torch.equal(evaluate(network, X, "skip"), network(X))
    assert explain(network, X).used == "fused"


def test_a_weight_changed_in_place_is_noticed():
    network = built_network("sort-n2-d2-N4")
    X = inputs(built("sort-n2-d2-N4"))
    before = evaluate(network, X, "skip")
    unsorted(network)
    assert np.array_equal(bits(evaluate(network, X, "skip")), bits(network(X)))
    assert not torch.equal(before, network(X))


def test_a_change_behind_the_back_of_torch_is_noticed_after_forget():
    network = built_network("sort-n2-d2-N4")
    X = inputs(built("sort-n2-d2-N4"))
    evaluate(network, X, "skip")
    weights = network.stages["value"].feed_forward.b_1.numpy()
    weights[[100, 101]] = weights[[101, 100]]
    forget(network)
    assert np.array_equal(bits(evaluate(network, X, "skip")), bits(network(X)))


def test_keys_too_close_to_tell_apart_make_every_layer_count():
    """Tokens that nearly coincide: their logits differ by less than softmax needs, and no layer may be skipped."""
    network = sorted_network(depth=64, n=3)
    network.E = None
    X = torch.rand(50, 1, 2, dtype=torch.float64).repeat(1, 3, 1)
    X[:, 1:] += 2.0 ** -torch.randint(3, 52, (50, 2, 1)).double()
    assert np.array_equal(bits(evaluate(network, X, "skip")), bits(evaluate(network, X, "fused")))


def test_minus_zero_comes_out_as_the_reference_has_it():
    network = built_network("sort-n2-d2-N4")
    network.E = None
    X = torch.full((2, 2, 2), -0.0, dtype=torch.float64)
    for engine in ("fused", "skip"):
        assert np.array_equal(bits(evaluate(network, X, engine)), bits(network(X)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e250])
@pytest.mark.parametrize("engine", ["fused", "skip"])
def test_a_dead_layer_with_a_weight_that_is_no_number_is_left_to_the_reference(engine, value):
    network = sorted_network()
    stack = next(stage.feed_forward for stage in network.stages.values() if stage.feed_forward is not None)
    with torch.no_grad():
        stack.W_2[1] = 0.0
        stack.W_1[1] = value
        X = torch.rand(20, 3, network.shape()["d"], dtype=torch.float64)
        assert explain(network, X, engine).used == "reference"
        assert torch.equal(evaluate(network, X, engine).isnan(), network(X).isnan())


@pytest.mark.parametrize("large", [1.0, 2.0**200])
def test_a_query_of_zero_shares_its_mass_however_far_keys_are_apart(large):
    """2^-900 by a gap of 2^199 is 0 in float64, and τ = 0 says that all keys are equal."""
    one, opposite = torch.ones(40, 2, 1, 1).double(), torch.ones(40, 2, 1, 1).double()
    b_Q = torch.zeros(40, 2, 1).double()
    b_Q[:, 1], opposite[:, 1] = -1.0, -1.0
    attention = Attention(one.clone(), b_Q, large * one, one.clone(), opposite)
    network = Transformer({"a": Stage(attention)}, "hardmax")
    X = torch.tensor([[[0.5], [0.5], [0.0], [0.5]]]).double()
    with torch.no_grad():
        meant = network(X)
        for engine in ("fused", "skip"):
            assert torch.equal(te.evaluate.evaluate(network, X, engine), meant)
        assert torch.equal(run_parts(network, X), meant)


@pytest.mark.parametrize("kind", ["unit", "layer", "head", "sweep"])
def test_what_writes_nothing_and_overflows_is_left_to_the_reference(kind):
    network = there_and_back(kind)
    X = torch.tensor([[[0.5, 0.5], [0.25, 0.25]]]).double()
    assert network(X).isnan().all()
    for engine in ("fused", "skip"):
        assert explain(network, X, engine).used == engine  # it takes the network, and sees how far it goes
        assert evaluate(network, X, engine).isnan().all()
    assert run_parts(network, X) is None
    network.stages["grow"].feed_forward.W_2[:] = 1.0  # 2^3 is not far
    for engine in ("fused", "skip"):
        assert torch.equal(evaluate(network, X, engine), network(X))
    assert torch.equal(run_parts(network, X), network(X))
