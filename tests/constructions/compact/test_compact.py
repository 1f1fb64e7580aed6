"""The compact network is f̄ on every cell, in four blocks, and goes through the same plan, certificate and checks."""

import numpy as np
import pytest

import thereexists as te
from tests.cases import CASES, IDS
from thereexists.certificates.enclose import enclose_cubes
from thereexists.certificates.output_bound import output_bound
from thereexists.functions.targets import builtin


def all_centres(witness):
    return witness.grid.centre(witness.grid.cube(np.arange(witness.grid.cells)))


def random_off_ramp(witness, count=2000, seed=0):
    low, high = witness.target.low, witness.target.high
    X = low + (high - low) * np.random.default_rng(seed).random((count, witness.grid.n, witness.grid.d))
    return X[~witness.grid.on_ramp(X)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_every_cell_is_exact_and_the_plan_said_so(case):
    target = case.target()
    planned = te.plan(target, delta=f"1/{case.N}", construction="compact")
    witness = te.build(target, delta=f"1/{case.N}", construction="compact")
    X = all_centres(witness)
    # Equivariant targets sum over tokens in floats: another order of equal tokens may round once differently.
    rounding = 4 * case.n * case.d * np.finfo(float).eps * max(1.0, np.abs(target(X)).max())
    assert np.abs(witness.run(X) - target(X)).max() <= (rounding if target.equivariant else 0.0)
    off = random_off_ramp(witness)
    assert np.abs(witness.run(off) - witness.cell_values(off)).max() <= (rounding if target.equivariant else 0.0)
    assert witness.network.depth == planned.layers["total"] == 4
    assert witness.network.parameter_count == planned.parameters
    assert planned.sizes["d_model"] == witness.network.shape()["d"]
    widths = [stage.feed_forward.W_1.shape[1] for stage in witness.network.stages.values()]
    assert list(planned.sizes["widths"].values()) == widths


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES[:8], ids=IDS[:8])
def test_it_agrees_with_the_faithful_network_wherever_that_is_defined(case):
    target = case.target()
    compact = te.build(target, delta=f"1/{case.N}", construction="compact")
    faithful = te.build(target, delta=f"1/{case.N}")
    X = random_off_ramp(compact, 200)
    ids = np.sort(compact.grid.column_ids(compact.grid.index(X)), axis=1)
    defined = np.ones(len(X), bool) if compact.grid.positional else (ids[:, 1:] != ids[:, :-1]).all(axis=1)
    scale = max(1.0, float(np.abs(faithful.cell_values(X)).max()))
    tolerance = faithful.exactness(500).max_error + 64 * np.finfo(float).eps * scale
    assert defined.any()
    assert np.abs(compact.run(X[defined]) - faithful.run(X[defined])).max() <= tolerance


def test_sort_of_the_issue():
    witness = te.build(builtin("sort", n=4), delta=1 / 8, construction="compact")
    X = all_centres(witness)
    assert len(X) == 4096
    for dtype in ("float64", "float32"):
        assert np.array_equal(witness.to(dtype).run(X), np.sort(X, axis=1))
    assert witness.plan.sizes["units"] < 1000  # 16,384 contexts share them


def test_equal_columns_are_exact_and_the_bound_beats_the_faithful_one():
    target = builtin("distance-to-mean", n=3)
    compact = te.build(target, delta=1 / 8, construction="compact")
    X = all_centres(compact)
    ids = np.sort(compact.grid.column_ids(compact.grid.index(X)), axis=1)
    equal = (ids[:, 1:] == ids[:, :-1]).any(axis=1)
    assert equal.mean() == pytest.approx(0.34375, abs=0)
    assert np.abs(compact.run(X) - target(X)).max() <= 12 * np.finfo(float).eps
    ours, theirs = te.certify(compact, opinions=1), te.certify(te.build(target, delta=1 / 8), opinions=1)
    assert ours.undecided == 0
    assert ours.bound < theirs.bound / 2
    assert compact.estimate_distance(samples=2048).low <= ours.bound <= compact.plan.error.total


@pytest.mark.parametrize("name", ["sort", "deep-sets"])
def test_a_maximal_width_spreads_the_units_over_blocks(name):
    target = builtin(name, n=2)
    planned = te.plan(target, delta=1 / 4, construction="compact", max_width=5)
    witness = te.build(target, delta=1 / 4, construction="compact", max_width=5)
    assert witness.network.shape()["r"] <= 5
    assert witness.network.depth == planned.layers["total"] > 4
    assert witness.network.parameter_count == planned.parameters
    X = all_centres(witness)
    assert np.abs(witness.run(X) - target(X)).max() <= 8 * np.finfo(float).eps
    assert np.isfinite(output_bound(witness.network)).all()


def test_any_box_and_any_number_of_cells():
    target = te.Target(lambda X: X[:, ::-1] ** 2, n=3, d=1, domain=(-2.0, 5.0), lipschitz=10.0)
    witness = te.build(target, delta="1/5", construction="compact")
    assert witness.exactness(2000).max_error == 0
    X = np.array([[[-2.0], [5.0], [5.0]]])
    assert np.array_equal(witness(X), witness.cell_values(X))


def test_a_function_that_needs_little_gets_little():
    few = te.plan(builtin("reverse", n=3), delta=1 / 8, construction="compact").sizes
    assert few["units"] <= 3 * 8  # a position depends on one token
    assert few["contexts"] == 3 * 8**3


def test_epsilon_chooses_the_grid():
    planned = te.plan(builtin("deep-sets", n=2), epsilon=0.15, construction="compact")
    assert planned.error.total <= 0.15
    assert te.plan(builtin("deep-sets", n=2), epsilon=0.15).grid.N > planned.grid.N


def test_enclosures_contain_the_network_on_cores_and_bounds_hold_on_ramps():
    witness = te.build(builtin("convolution", n=2), delta=1 / 4, construction="compact")
    grid, rng = witness.grid, np.random.default_rng(0)
    G = enclose_cubes(witness.network, grid, np.arange(grid.cells))
    lower = np.array(grid.origin) + grid.cube(np.arange(grid.cells)) * np.array(grid.step)
    for _ in range(20):
        X = lower + rng.uniform(2.0**-28, 1 - 2.0**-19, lower.shape) * np.array(grid.step)
        assert (np.abs(witness.run(X) - G.mid) <= G.rad + 16 * np.finfo(float).eps).all()
    (B,) = output_bound(witness.network)
    edges = np.array(grid.origin) + rng.integers(1, grid.N, (5000, 2, 1)) * np.array(grid.step)
    ramp = edges - rng.random(edges.shape) * grid.ramp
    assert grid.on_ramp(ramp[(ramp < edges).all(axis=(1, 2))]).all()
    assert np.abs(witness.run(ramp)).max() <= B * (1 + 1e-9)


def test_save_load_trace_round_trip(tmp_path):
    witness = te.build(builtin("sort", n=3), delta=1 / 4, construction="compact")
    witness.save(tmp_path / "w")
    loaded = te.load(tmp_path / "w")
    X = all_centres(witness)
    assert np.array_equal(loaded.run(X), witness.run(X))
    assert loaded.plan == witness.plan
    assert te.load(tmp_path / "w", "float32").network.dtype.itemsize == 4
    with pytest.raises(te.ThereExistsError, match="not safe in bfloat16"):
        te.load(tmp_path / "w", "bfloat16")
    traced = te.trace(loaded, X[5])
    assert np.array_equal(traced.output, witness.run(X[5:6])[0])
    assert {move.stage for move in traced.moves} <= {"recall"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"construction": "small"}, "'construction' must be one of"),
        ({"max_width": 4}, "'max_width' is not an option of Faithful"),
        ({"construction": "compact", "max_width": 0}, "'max_width' must be"),
        ({"construction": "compact", "modified": True}, "'modified' is not an option of Compact"),
        ({"construction": "compact", "pattern": te.patterns.star(n=2)}, "'pattern' is not an option of Compact"),
    ],
)
def test_requests_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(te.ThereExistsError, match=message):
        te.build(builtin("sort", n=2), delta=1 / 2, **arguments)


def test_too_large_is_refused_before_any_work():
    with pytest.raises(te.ThereExistsError, match="contexts and needs"):
        te.build(builtin("sort", n=12), delta=1 / 8, construction="compact")


def test_a_witness_in_a_lower_dtype_is_not_saved(tmp_path):
    witness = te.build(builtin("sort", n=2), delta=1 / 4, construction="compact")
    with pytest.raises(te.ThereExistsError, match="saved in float64"):
        witness.to("float32").save(tmp_path / "w")
    assert list(tmp_path.iterdir()) == []


def test_more_cubes_than_a_witness_carries_are_refused_when_it_is_planned(tmp_path):
    """2^60 cubes in 61 contexts: the table is small, but nobody could load such a witness again."""
    for request in ({"delta": 1 / 2}, {"epsilon": 0.1}):
        with pytest.raises(te.ThereExistsError, match=r"cubes, and a witness carries at most 2\^52\. Choose"):
            te.plan(builtin("distance-to-mean", n=60), construction="compact", **request)
    most = te.build(builtin("distance-to-mean", n=52), delta=1 / 2, construction="compact")
    most.save(tmp_path / "w")
    assert te.load(tmp_path / "w").plan.grid.cells == 1 << 52
