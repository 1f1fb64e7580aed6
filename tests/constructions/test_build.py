"""The theorem is the test: built networks equal f̄ off the ramps, with the layers and the rate that are claimed."""

import dataclasses
import math
import sys

import numpy as np
import pytest
import torch

import thereexists as te
from tests.cases import CASES, IDS
from thereexists.constructions.faithful.value_mapping import ROUNDING_SHARE
from thereexists.functions.targets import builtin


def tolerance(witness):
    """One sweep is used only if z + (A − z) rounds by less than this share of the largest |A|."""
    grid = witness.grid
    return ROUNDING_SHARE * np.abs(witness.target(grid.centre(grid.cube(np.arange(grid.cells))))).max()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_both_networks_equal_the_piecewise_constant_function(case):
    target = case.target()
    standard = te.build(target, delta=1 / case.N)
    modified = te.build(target, delta=1 / case.N, modified=True)
    for witness in (standard, modified):
        assert witness.exactness(samples=2000).max_error <= tolerance(witness)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_layers_equal_the_formulas_and_the_plan(case):
    want = {"quantise": case.quantise, "context": case.context, "value": case.value}
    want["total"] = sum(want.values())
    plan = te.plan(case.target(), delta=1 / case.N)
    witness = te.build(case.target(), delta=1 / case.N)
    assert plan.layers == want
    assert {name: stage.depth for name, stage in witness.network.stages.items()} | {
        "total": witness.network.depth
    } == want
    assert plan.parameters == witness.network.parameter_count
    assert witness.network.shape() == {"h": 2, "m": 1, "r": 4, "d": case.d}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_plan_of_the_modified_network_counts_it_too(case):
    plan = te.plan(case.target(), delta=1 / case.N, modified=True)
    witness = te.build(case.target(), delta=1 / case.N, modified=True)
    for told in (plan, witness.plan):
        assert told.parameters == witness.network.parameter_count
        assert told.layers["total"] == witness.network.depth
        assert told.width == witness.network.shape()["r"]


def test_plans_equal_networks_whatever_is_asked_for():
    rng = np.random.default_rng(7)
    for _ in range(12):
        n, d = int(rng.integers(1, 4)), int(rng.integers(1, 3))
        options = {"delta": 1 / int(rng.choice([2, 3, 4] if n * d <= 3 else [2])), "modified": bool(rng.integers(2))}
        if n > 1 and rng.integers(2):
            options["pattern"] = te.patterns.window(n, 1)
        target = builtin(str(rng.choice(["sort", "deep-sets"])), n=n, d=d)
        plan, network = te.plan(target, **options), te.build(target, **options).network
        assert (plan.parameters, plan.layers["total"]) == (network.parameter_count, network.depth), (n, d, options)
        assert plan.width == network.shape()["r"]


def test_sort_of_four_tokens_has_16449_layers_and_is_exact():
    witness = te.build(builtin("sort", n=4), delta=1 / 8)
    assert witness.network.depth == 16449
    assert witness.exactness(samples=10_000).max_error <= 1e-6  # the figure promised to users


def test_sort_of_three_tokens_has_1585_layers_and_is_exact():
    witness = te.build(builtin("sort", n=3), delta=1 / 8)
    assert witness.network.depth == 1585
    assert witness.exactness(samples=10_000).max_error <= 1e-6


def test_equivariant_target_on_a_fine_grid_is_exact_where_columns_are_distinct():
    witness = te.build(builtin("softmax-attention", n=3), delta=1 / 16)
    assert witness.plan.theorem == 1
    assert witness.exactness(samples=10_000).max_error <= 1e-6


def test_distance_falls_like_delta():
    """Sort: |x_(i) − centre| has mean δ/4 per token, so d_1 = 3δ/4: halving δ halves it."""
    d1 = {N: te.build(builtin("sort", n=3), delta=1 / N).estimate_distance(p=1, samples=1024) for N in (4, 8, 16)}
    for N, distance in d1.items():
        # Off the ramps the law is exact; on them the error is at most 2 per token.
        ramps = 6 * te.plan(builtin("sort", n=3), delta=1 / N).grid.ramp_share()
        assert distance.low - ramps <= 0.75 / N <= distance.high + ramps
    for coarse, fine in ((4, 8), (8, 16)):
        assert 1 - math.log2(d1[coarse].high / d1[fine].low) <= 0.05
        assert math.log2(d1[coarse].low / d1[fine].high) - 1 <= 0.05


@pytest.mark.sampled(3)
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("name", ["sort", "convolution", "distance-to-mean", "deep-sets"])
def test_measured_distance_is_below_the_predicted_one(name, p):
    witness = te.build(builtin(name, n=2), delta=1 / 8, p=p)
    assert witness.estimate_distance(p=p).low <= witness.plan.error.total


def test_epsilon_picks_the_coarsest_power_of_two_that_keeps_it():
    target = builtin("sort", n=2)
    witness = te.build(target, epsilon=0.1)
    N = witness.grid.N
    assert witness.plan.error.total <= 0.1 < te.plan(target, delta=2 / N).error.total
    assert witness.estimate_distance().high <= 0.1


BOXES = [(-3.0, 5.0), (-1.0, float(np.pi)), (0.0, 1e-3), (-2000.0, 1000.0)]


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("name", ["sort", "deep-sets"])
def test_any_box_and_any_scale_of_values(box, name):
    target = builtin(name, n=2, domain=box)
    witness = te.build(target, delta=1 / 8)
    assert witness.network.shape() == {"h": 2, "m": 1, "r": 4, "d": 1}
    assert witness.exactness(samples=1000).max_error <= tolerance(witness)


def test_features_may_have_different_ranges():
    target = te.Target(lambda X: X[:, ::-1], n=2, d=2, domain=([-3.0, 1.0], [5.0, 1.7]), lipschitz=1.0)
    assert te.build(target, delta=1 / 4).exactness(samples=1000).max_error <= ROUNDING_SHARE * 5


def test_large_and_negative_values_take_two_sweeps_and_stay_exact():
    target = te.Target(lambda X: 1e9 * (X[:, ::-1] - 0.5), n=2)
    witness = te.build(target, delta=1 / 4)
    assert witness.plan.sweeps == 2
    assert witness.plan.layers["value"] == 2 * 2 * 4**2
    assert witness.exactness(samples=1000).max_error <= ROUNDING_SHARE * 1e9


def test_tiny_values_are_not_eaten_by_large_ids():
    target = te.Target(lambda X: 1e-9 * np.sort(X, axis=1), n=3)
    witness = te.build(target, delta=1 / 8)
    assert witness.plan.sweeps == 2
    assert witness.exactness(samples=1000).max_error <= ROUNDING_SHARE * 1e-9


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_clamp_bounds_the_output_even_on_the_ramps(case):
    """Inputs on the ramps may come out as anything, but never larger than the clamp and the last moves allow."""
    witness = te.build(case.target(), delta=1 / case.N)
    grid = witness.grid
    rng = np.random.default_rng(0)
    index = rng.integers(0, grid.N - 1, (2000, grid.n, grid.d))
    upper = np.array(grid.origin) + (index + 1) * np.array(grid.step)
    X = upper - grid.ramp * rng.random(upper.shape)
    Y = witness(X)
    assert grid.on_ramp(X).all()
    assert np.abs(Y - witness.cell_values(X)).max() > 0.01 * np.abs(Y).max()  # ramps do go wrong
    value = witness.network.stages["value"].feed_forward
    steps = (value.W_2[-grid.d :, :, 0].abs() * grid.window).sum(0)  # the moves of the last d layers
    level = torch.stack([-value.b_1[-1 - i, 3] for i in range(grid.d)])
    bound = (level + (steps if grid.d > 1 else 0)).detach().numpy()
    rounding = 2 * np.spacing(float(value.b_1.detach().abs().max()))  # the clamp subtracts numbers as large as the ids
    assert (np.abs(Y) <= bound + rounding).all()


def test_a_false_claim_of_equivariance_is_refused_with_the_counterexample():
    claim = dataclasses.replace(builtin("sort", n=3), equivariant=True)
    with pytest.raises(te.ThereExistsError, match=r"not permutation equivariant: for X = .* permutation \["):
        te.build(claim, delta=1 / 4)


def test_ids_beyond_float64_are_refused_before_any_work():
    calls = []
    target = te.Target(lambda X: calls.append(1) or X, n=8)
    with pytest.raises(
        te.ThereExistsError, match=r"need 6\d bits and float64 carries 52 safely. Choose a coarser grid"
    ):
        te.build(target, delta=1 / 8)
    assert not calls


def test_a_table_beyond_this_machine_is_refused(monkeypatch):
    monkeypatch.setattr(sys.modules["thereexists.constructions.faithful.plan"], "physical_memory", lambda: 2**20)
    with pytest.raises(te.ThereExistsError, match=r"16,384 ids and needs .* GiB; this machine has"):
        te.plan(builtin("sort", n=4), delta=1 / 8)


@pytest.mark.parametrize("delta", [0, -1, 0.3, "1/0", "abc", 1, 2, float("nan")])
def test_delta_must_divide_one(delta):
    with pytest.raises(te.ThereExistsError, match="'delta' must"):
        te.build(builtin("sort", n=2), delta=delta)


def test_delta_and_epsilon_exclude_each_other():
    with pytest.raises(te.ThereExistsError, match="either 'delta'"):
        te.build(builtin("sort", n=2))
    with pytest.raises(te.ThereExistsError, match="either 'delta'"):
        te.build(builtin("sort", n=2), delta=0.5, epsilon=0.1)


def test_epsilon_needs_a_modulus():
    with pytest.raises(te.ThereExistsError, match="modulus of continuity"):
        te.build(te.Target(lambda X: X, n=2), epsilon=0.1)


def test_a_modulus_of_continuity_serves_instead_of_a_constant():
    target = te.Target(np.sqrt, n=1, modulus=lambda r: float(np.sqrt(r)))
    witness = te.build(target, epsilon=0.3)
    assert witness.estimate_distance().high <= witness.plan.error.total <= 0.3


def test_torch_functions_are_targets_too():
    target = te.Target(lambda X: torch.sort(X, dim=1).values, n=2, lipschitz=1.0)
    assert te.build(target, delta=1 / 4).exactness(samples=100).max_error == 0
