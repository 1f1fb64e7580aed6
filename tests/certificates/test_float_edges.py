"""A clamp that rounding undoes, in a place where nobody looks: off the cores, where only exact arithmetic bounds g."""

import dataclasses
import itertools
from unittest.mock import patch

import numpy as np
import pytest
import torch

import thereexists as te
from tests.hostile import forge_weights
from thereexists.certificates.certify_function import float_error
from thereexists.certificates.float_edges import beyond, carried, edge_points
from thereexists.certificates.output_bound import output_bound
from thereexists.certificates.statistical import statistical_bound

STRIP = 2.0**-33  # of the domain: the last token's upper end
LARGE = 1.9876 * 2.0**300
NEAR = np.array([[[0.3], [1.0 - 2.0**-36]]])


def half_sorted(**states):
    return te.Target(lambda X: 0.5 * np.sort(X, axis=1), n=2, name="half-sorted", **states)


def undo_the_clamp(folder, order):
    """One layer more, before all others, that leaves 1e80 on the strip; the units of the clamp in another order."""

    def change(weights):
        first, last = "stages.quantise.feed_forward.", "stages.value.feed_forward."
        layer = {"W_1": [[1.0], [0.0], [0.0], [0.0]], "b_1": [-(2.25 - STRIP), 0.0, 0.0, 0.0]}
        layer |= {"W_2": [[LARGE, 0.0, 0.0, 0.0]], "b_2": [0.0]}
        for name, values in layer.items():
            new = torch.tensor([values], dtype=torch.float64)
            weights[first + name] = torch.cat([new, weights[first + name]])
        for name, axis in (("W_1", 0), ("b_1", 0), ("W_2", 1)):
            weights[last + name][-1] = weights[last + name][-1].index_select(axis, torch.tensor(order))

    def deeper(record):
        stages = record["structure"]["stages"]
        stages["quantise"]["depth"] += 1
        for part in ("quantise", "total"):
            record["plan"]["layers"][part] += 1

    forge_weights(folder, change, deeper)


@pytest.fixture(scope="module")
def order(tmp_path_factory):
    """An order of the clamp's units that does not cancel in float64."""
    honest = te.build(half_sorted(bound=0.5), delta=1 / 4)
    for k, order in enumerate(itertools.permutations(range(4))):
        folder = tmp_path_factory.mktemp(f"w{k}")
        honest.save(folder)
        undo_the_clamp(folder, order)
        if np.abs(te.load(folder)(NEAR)).max() > 1e30:
            return order
    raise AssertionError("no order undoes the clamp")


@pytest.mark.parametrize("states", [{"bound": 0.5}, {"lipschitz": 0.5}], ids=["statistical", "rigorous"])
def test_verify_finds_a_run_that_leaves_its_bound(tmp_path, order, states):
    target = half_sorted(**states)
    honest = te.build(target, delta=1 / 4)
    honest.save(tmp_path / "w")
    te.certify(honest, opinions=1, samples=2000).save(tmp_path / "w")
    assert te.verify(tmp_path / "w", target, opinions=1).holds
    undo_the_clamp(tmp_path / "w", order)
    forged = te.load(tmp_path / "w")
    assert output_bound(forged.network) == output_bound(honest.network)  # in exact arithmetic nothing is wrong
    reasons = te.verify(tmp_path / "w", target, opinions=1).reasons
    assert any(reason.startswith("float run: ") and "the float64 run gives" in reason for reason in reasons)
    if "lipschitz" in states:  # and no point need be found: what reaches the clamp is bounded, or the check fails
        assert any(reason.startswith("float bound: ") for reason in reasons)
    if "bound" in states:
        with pytest.raises(te.ThereExistsError, match="Not proved: the float64 run gives"):
            te.certify(forged, target=target, opinions=1)


@pytest.mark.parametrize("bad", [7.0, np.nan, -np.inf])
def test_a_statistical_bound_meets_no_output_beyond_its_range(bad):
    target = half_sorted(bound=0.5)
    honest = te.build(target, delta=1 / 4)

    def run(X):
        Y = honest(X)
        Y[(X[:, 0, 0] > 0.5) & (X[:, 0, 0] < 0.51)] = bad  # no edge is near
        return Y

    with pytest.raises(te.ThereExistsError, match="Not proved: the float64 run gives"):
        statistical_bound(honest.network, target, honest.grid, run, 1.0, 0.99, 4000, 0)


@pytest.mark.parametrize("construction", ["faithful", "compact"])
@pytest.mark.parametrize(("name", "domain"), [("sort", (0, 1)), ("reverse", (-3, 7)), ("distance-to-mean", (0, 1e-6))])
def test_honest_runs_keep_to_their_bounds_around_the_edges(name, domain, construction):
    target = te.targets.builtin(name, 2, 1, domain)
    witness = te.build(target, delta=1 / 4, construction=construction)
    X = edge_points(target, witness.grid, np.random.default_rng(0), 4096)
    assert (X.min(), X.max()) == (target.low.min(), target.high.max())  # the ends are tried, and nothing beyond them
    assert not beyond(witness(X), output_bound(witness.network), witness.grid).any()


def test_a_run_that_is_right_at_centres_only_is_measured_elsewhere():
    """ReLU(z + 1)·2^54 + ReLU(z)·2^10, taken away again: 0 over the reals, and in float64 where z has few bits."""
    honest = te.build(te.targets.builtin("sort", n=2), delta=1 / 4)
    structure, weights = honest.network.structure(), dict(honest.network.state_dict())
    large, small = 2.0**54, 2.0**10
    layer = {"W_1": torch.ones(1, 4, 1), "b_1": torch.tensor([[1.0, 0.0, 1.0, 0.0]]), "b_2": torch.zeros(1, 1)}
    layer["W_2"] = torch.tensor([[[large, small, -large, -small]]])
    for name, values in layer.items():
        at = f"stages.quantise.feed_forward.{name}"
        weights[at] = torch.cat([values.double(), weights[at]])
    structure["stages"]["quantise"]["depth"] += 1
    forged = dataclasses.replace(honest, network=type(honest.network).from_structure(structure, weights))
    numbers = np.arange(honest.grid.cells)
    centres = honest.grid.centre(honest.grid.cube(numbers))
    assert np.array_equal(forged(centres), honest(centres))
    assert float_error(honest.network, honest.grid, 0)["max"] < 1e-280
    assert min(float_error(forged.network, forged.grid, seed)["max"] for seed in range(16)) > 0.1


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A constant on a domain with 0 inside: entries close to 0 are rounded, and few samples are alike."""
    target = te.Target(lambda X: 0 * X + 0.3, n=3, domain=(-1.0, 2.0), equivariant=True, lipschitz=0.0, name="constant")
    witness = te.build(target, delta=1 / 4)
    errors = {seed: float_error(witness.network, witness.grid, seed)["max"] for seed in range(8)}
    folder = tmp_path_factory.mktemp("measured") / "w"
    witness.save(folder)
    te.certify(witness, opinions=1, seed=min(errors, key=errors.__getitem__)).save(folder)
    return folder, target, witness, errors


def float_run(folder, target):
    (check,) = (check for check in te.verify(folder, target, opinions=1).evidence if check.name == "float run")
    return check


def test_an_honest_run_that_rounds_otherwise_on_other_cubes_is_not_refused(measured):
    folder, target, witness, errors = measured
    B = output_bound(witness.network)
    assert min(errors.values()) * 1.5 < max(errors.values())
    assert 2.0**-20 * max(B) < max(errors.values()) < carried(witness.grid, B)
    with patch("secrets.randbits", return_value=max(errors, key=errors.__getitem__)):
        assert float_run(folder, target).passed


@pytest.mark.parametrize("beside", [0.99, 1.01])
def test_more_than_the_grid_carries_is_refused(measured, beside):
    folder, target, _, errors = measured
    seed = min(errors, key=errors.__getitem__)

    def found(network, grid, drawn):
        own = float_error(network, grid, seed)
        return own if drawn == seed else own | {"max": beside * carried(grid, output_bound(network))}

    with patch("thereexists.certificates.verify_bound.float_error", found), patch("secrets.randbits", return_value=9):
        assert float_run(folder, target).passed is (beside < 1)


def test_no_grid_carries_more_than_a_share_of_the_bound():
    grids = [te.plan(te.targets.builtin("sort", n=n), delta=1 / N).grid for n, N in ((2, 4), (3, 8), (2, 64))]
    shares = [carried(grid, [3.0]) / 3.0 for grid in grids]
    assert shares == sorted(shares)
    assert shares[0] < 2.0**-20 < shares[1] < shares[2] == 2.0**-10
