"""Step 1: every entry goes to the lower end of its cell, exactly, whatever the box and the float."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from thereexists.constructions import quantise
from thereexists.constructions.quantise import ramp_widths
from thereexists.constructions.softmax_limit import relu_limit
from thereexists.grid import Grid
from thereexists.model import Stage, Transformer
from thereexists.target import Target

BOXES = [(0.0, 1.0), (-3.0, 5.0), (-1.0, float(np.pi)), (0.1, 0.3), (-1e-3, 7e-4), (1e3, 1e3 + 1)]


def quantisers(grid):
    hard = quantise(grid)
    soft = Stage(feed_forward=relu_limit(hard.feed_forward, ramp_widths(grid)))
    E = None if grid.encoding is None else torch.from_numpy(grid.encoding)
    return Transformer({"quantise": hard}, E=E), Transformer({"quantise": soft}, E=E)


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
    for network in quantisers(grid):
        with torch.no_grad():
            got = network(torch.from_numpy(X)).numpy()
        exact = want if positional or grid.origin[0] == 0 else None
        if exact is not None:
            assert np.array_equal(got, exact)
        else:  # the last addition, −origin, meets one unquantised cell; it may round in the input's own last place
            assert np.abs(got - want).max() <= 2 * np.spacing(np.abs(box).max())


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
