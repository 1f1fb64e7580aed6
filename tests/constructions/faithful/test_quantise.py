"""Step 1: every entry goes to the lower end of its cell, exactly, whatever the box and the float."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import thereexists as te
from thereexists.constructions.faithful.quantise import layer_count, quantise, ramp_widths
from thereexists.constructions.faithful.softmax_limit import relu_limit
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.model import Stage, Transformer

BOXES = [(0.0, 1.0), (-3.0, 5.0), (-1.0, float(np.pi)), (0.1, 0.3), (-1e-3, 7e-4), (1e3, 1e3 + 1)]


def quantisers(grid):
    hard = quantise(grid)
    soft = Stage(feed_forward=relu_limit(hard.feed_forward, ramp_widths(grid)))
    E = None if grid.encoding is None else torch.from_numpy(grid.encoding)
    return Transformer({"quantise": hard}, E=E), Transformer({"quantise": soft}, E=E)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("positional", [False, True])
@given(data=st.data())
def test_lands_exactly_on_the_grid(box, positional, data):
    N = data.draw(st.sampled_from([2, 3, 5, 8, 10, 16]))
    d = data.draw(st.integers(1, 2))
    target = Target(lambda X: X, n=3, d=d, domain=box, equivariant=not positional)
    grid = Grid.for_target(target, f"1/{N}")
    inside = st.floats(*box, allow_nan=False)
    X = np.array(data.draw(st.lists(inside, min_size=6 * d, max_size=6 * d))).reshape(2, 3, d)
    edges = data.draw(st.lists(st.integers(0, N), min_size=3 * d, max_size=3 * d))
    on_edges = np.minimum(np.array(grid.origin) + np.array(edges).reshape(1, 3, d) * np.array(grid.step), box[1])
    X = np.concatenate([X, np.maximum(on_edges, box[0])])
    X = X[~grid.on_ramp(X)]
    want = grid.index(X) * np.array(grid.step) + (np.arange(3)[:, None] * grid.pitch)
    # Without a shift all is exact. With one, −origin meets one unquantised cell and may round in an input's last place;
    # and a ramp is ReLU(s(x − a)) − ReLU(s(x − a) − step), whose terms round in the last place of s times the width.
    steepest = (np.array(grid.step) / grid.ramp).max()
    for network, largest in zip(quantisers(grid), (1.0, steepest), strict=True):
        with torch.no_grad():
            got = network(torch.from_numpy(X)).numpy()
        if positional or grid.origin[0] == 0:
            assert np.array_equal(got, want)
        else:
            assert np.abs(got - want).max() <= 2 * np.spacing(np.abs(box).max() * largest)


def test_both_ends_of_the_domain_belong_to_it():
    grid = Grid.for_target(Target(lambda X: X, n=2, domain=(-1.0, 1.0)), "1/4")
    ends = np.array([[[-1.0], [1.0]], [[1.0], [-1.0]]])
    assert grid.index(ends)[..., 0].tolist() == [[0, 3], [3, 0]]
    assert not grid.on_ramp(ends).any()


def test_layers_are_those_of_the_theorem():
    for d, n, N in [(1, 3, 8), (2, 2, 4), (3, 2, 2)]:
        target = Target(lambda X: X, n=n, d=d)
        assert quantise(Grid.for_target(target, f"1/{N}")).depth == d * n * N
        equivariant = dataclasses.replace(target, equivariant=True)
        assert quantise(Grid.for_target(equivariant, f"1/{N}")).depth == d * N


def test_a_shifted_threshold_is_noticed():
    """The exactness test above can fail: move one bias by a quarter of a cell and a token lands elsewhere."""
    grid = Grid.for_target(Target(lambda X: X, n=2), "1/4")
    _, network = quantisers(grid)
    with torch.no_grad():
        network.stages["quantise"].feed_forward.b_1[2] += 1 / 16
        X = np.linspace(0, 1, 41)[:, None, None].repeat(2, axis=1)
        X = X[~grid.on_ramp(X)]
        got = network(torch.from_numpy(X)).numpy()
    want = grid.index(X) * np.array(grid.step) + np.arange(2)[:, None] * grid.pitch
    assert not np.array_equal(got, want)


ODD_SIDES = [((0.0, 0.0), (1.0, 3.0)), ((0.0, 0.0), (0.7, 0.3)), ((-1.0, 2.0, 0.0), (0.3, 2.7, 1e-3))]


@pytest.mark.parametrize("sides", ODD_SIDES)
@pytest.mark.parametrize("positional", [False, True])
@pytest.mark.parametrize("N", [2, 3, 8])
def test_sides_of_any_ratio_go_to_levels_of_one_unit(sides, positional, N):
    """The ids u^T z are whole numbers of units, exactly; with sides of one length nothing is added."""
    d = len(sides[0])
    target = Target(lambda X: X, n=2, d=d, domain=sides, equivariant=not positional)
    grid = Grid.for_target(target, f"1/{N}")
    ratio = grid.level / grid.unit
    assert (np.frexp(ratio)[0] == 0.5).all()
    assert ((grid.level >= np.array(grid.step)) & (grid.level < 2 * np.array(grid.step))).all()
    X = target.low + (target.high - target.low) * np.random.default_rng(0).random((500, 2, d))
    X = X[~grid.on_ramp(X)]
    index = grid.index(X)
    moved = np.arange(2)[:, None] * (N + 1) if positional else 0
    for network in quantisers(grid):
        with torch.no_grad():
            got = network(torch.from_numpy(X)).numpy()
        if positional or not any(grid.origin):
            assert np.array_equal(got, (index + moved) * grid.level)
            assert np.array_equal(got @ grid.u / grid.unit, grid.column_ids(index))
        else:
            assert np.abs(got - (index + moved) * grid.level).max() <= 2 * np.spacing(3.0)
    assert layer_count(grid) == quantise(grid).depth


def test_sides_of_one_length_or_dyadic_ratio_get_no_further_layers():
    for high in ((1.0, 1.0), (1.0, 4.0), (0.3, 0.15)):
        target = Target(lambda X: X, n=2, d=2, domain=((0.0, 0.0), high))
        grid = Grid.for_target(target, "1/4")
        assert layer_count(grid) == 2 * 2 * 4


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("high", "n", "N", "equivariant"), [((1.0, 3.0), 2, 4, False), ((0.7, 0.3), 2, 4, True)])
def test_the_network_part_is_as_small_as_with_equal_sides(high, n, N, equivariant, tmp_path):
    target = Target(
        lambda X: 0.5 * X[..., ::-1], n=n, d=2, lipschitz=0.5, domain=((0.0, 0.0), high), equivariant=equivariant
    )
    witness = te.build(target, delta=f"1/{N}")
    witness.save(tmp_path / "w")
    certificate = te.certify(witness, opinions=1)
    certificate.save(tmp_path / "w")
    assert certificate.parts["network"] <= 1e-20
    assert te.verify(tmp_path / "w", target, opinions=1).holds
    X = np.random.default_rng(0).random((64, n, 2)) * np.array(high)
    runs = [witness(X, engine) for engine in ("reference", "fused", "skip")]
    assert np.abs(runs[0] - runs[1]).max() <= 1e-9
    assert np.abs(runs[0] - runs[2]).max() <= 1e-9
    assert witness.exactness(2000).max_error <= 1e-9
