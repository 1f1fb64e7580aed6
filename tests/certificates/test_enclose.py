"""Enclosures contain the network on whole cores: against float runs, Arb, rationals, and layer by layer."""

import numpy as np
import pytest
import torch

import thereexists as te
from tests.cases import CASES, IDS
from tests.hostile import planted
from thereexists.arithmetic.balls import Ball
from thereexists.certificates import enclose
from thereexists.certificates.output_bound import output_bound
from thereexists.certificates.second_opinion import _layers, arb_run, consistent, exact_run, second_opinion
from thereexists.functions.targets import builtin


@pytest.fixture(scope="module", params=CASES, ids=IDS)
def witness(request):
    return te.build(request.param.target(), delta=1 / request.param.N)


@pytest.mark.sampled(3)
def test_every_core_is_enclosed_tightly(witness):
    grid = witness.grid
    numbers = np.arange(min(grid.cells, 512))
    enclosure = enclose.enclose_cubes(witness.network, grid, numbers)
    lower, upper = enclose.core_margins(grid)
    rng = np.random.default_rng(0)
    edge = np.array(grid.origin) + grid.cube(numbers) * np.array(grid.step)
    for share in (
        np.zeros(edge.shape),
        np.ones(edge.shape),
        rng.random(edge.shape),
    ):
        X = edge + lower + share * (np.array(grid.step) - lower - upper)
        gap = np.abs(witness.run(X) - enclosure.mid)
        # The float run rounds z + (A − z) in the last place of the largest id, and so may the network's own weights.
        rounding = 4 * np.spacing(float(witness.network.stages["value"].feed_forward.b_1.detach().abs().max()))
        assert (gap <= enclosure.rad + rounding).all()
    assert enclosure.rad.max() <= 1e-200


@pytest.mark.sampled(3)
def test_bisection_equals_layer_by_layer(witness):
    grid, stage = witness.grid, witness.network.stages["value"]
    numbers = np.arange(0, grid.cells, max(1, grid.cells // 7))
    fast = enclose.enclose_cubes(witness.network, grid, numbers)
    encloser = enclose.Encloser(witness.network, grid)
    cells = grid.cube(numbers) @ (grid.N ** np.arange(grid.d))
    Z = encloser.cells[np.arange(grid.n), cells]
    Z = encloser._stage(Z, witness.network.stages["context"], "softmax", enclose.find_twins(Z))
    shape, Z = Z.mid.shape, enclose._reshaped(Z, (-1, grid.d))
    weights = enclose._weights(stage.feed_forward)
    for layer in range(stage.depth):
        Z = enclose.feed_forward_layer(Z, *(w[layer] for w in weights))
    assert np.array_equal(fast.mid, Z.mid.reshape(shape))
    assert (fast.rad <= Z.rad.reshape(shape)).all()


@pytest.mark.sampled(3)
def test_three_opinions_agree(witness):
    assert second_opinion(witness.network, witness.grid, sample=3, seed=0).disagreeing == ()


def test_all_three_catch_a_planted_fault():
    """Move one cell's value by 2^-30: each of the three evaluations, on its own, sees that cube's output change."""
    witness = te.build(builtin("sort", n=2), delta=1 / 4)
    grid = witness.grid

    def fault(network):
        value = network.stages["value"].feed_forward
        value.W_2[5, 0, 0] += 2.0**-30 / grid.window
        value.W_2[5, 0, 1] -= 2.0**-30 / grid.window

    wrong = planted(witness.network, fault)
    numbers = np.arange(grid.cells)
    centres = grid.centre(grid.cube(numbers))
    good, bad = (enclose.enclose_cubes(network, grid, numbers) for network in (witness.network, wrong))
    changed = np.flatnonzero((good.mid != bad.mid).any(axis=(1, 2)))
    assert len(changed) == 1
    at = int(changed[0])
    for run in (arb_run, exact_run):
        right, off = (run(n, _layers(n), centres[at]) for n in (witness.network, wrong))
        assert any(float(abs(a[0] - b[0])) >= 2.0**-31 if run is arb_run else a[0] != b[0]
                   for a, b in zip(right, off, strict=True))  # fmt: skip
    claim = Ball(good.mid[at], good.rad[at])
    by_arb, by_rationals = arb_run(wrong, _layers(wrong), centres[at]), exact_run(wrong, _layers(wrong), centres[at])
    assert not consistent(by_arb, by_rationals, claim)


def test_an_undecidable_comparison_is_admitted():
    """A window moved onto a cell's edge leaves ReLUs straddling: the enclosure gets wide, never wrong."""
    witness = te.build(builtin("sort", n=2), delta=1 / 4)

    def fault(network):
        network.stages["quantise"].feed_forward.b_1[3] -= witness.grid.step[0] / 2

    wrong = planted(witness.network, fault)
    numbers = np.arange(witness.grid.cells)
    enclosure = enclose.enclose_cubes(wrong, witness.grid, numbers)
    assert (enclosure.rad > 1).any()
    rng = np.random.default_rng(0)
    edge = witness.grid.cube(numbers) * np.array(witness.grid.step)
    lower, upper = enclose.core_margins(witness.grid)
    for _ in range(20):
        X = edge + lower + rng.random(edge.shape) * (np.array(witness.grid.step) - lower - upper)
        with torch.no_grad():
            Y = wrong(torch.from_numpy(X)).numpy()
        assert (np.abs(Y - enclosure.mid) <= enclosure.rad + 1e-6).all()


def test_output_bound_holds_and_needs_the_clamp(witness):
    bound = np.array(output_bound(witness.network))
    assert np.isfinite(bound).all()
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (500, witness.grid.n, witness.grid.d))  # even far outside the domain
    rounding = 4 * np.spacing(float(witness.network.stages["value"].feed_forward.b_1.detach().abs().max()) * 1e3)
    assert (np.abs(witness.run(X)) <= bound + rounding).all()

    def unclamped(network):
        network.stages["value"].feed_forward.W_2[-1, 0, 3] = 0.0

    assert output_bound(planted(witness.network, unclamped))[0] == np.inf
