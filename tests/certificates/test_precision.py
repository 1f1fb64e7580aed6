"""A dtype called safe gives the same outputs on every cell; one called unsafe is refused, with the reason."""

import numpy as np
import pytest
import torch

import thereexists as te
from tests.hostile import forge_weights
from thereexists.certificates.safe_dtypes import in_dtype, verdict, verdicts
from thereexists.core.dtypes import DTYPES, represents
from thereexists.functions.targets import builtin


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["sort", "cumulative-mean", "distance-to-max", "soft-rank"])
@pytest.mark.parametrize("N", [3, 8])
def test_safe_dtypes_round_the_output_once_on_every_cell_and_on_its_edges(name, N):
    witness = te.build(builtin(name, n=3), delta=f"1/{N}", construction="compact")
    grid = witness.grid
    numbers = np.arange(grid.cells)
    index = grid.cube(numbers)
    lower = np.array(grid.origin) + index * np.array(grid.step)
    last = lower + np.array(grid.step) - grid.ramp  # the last point before the ramp
    safe = witness.network.safe
    assert "float64" in safe
    assert ("float32" in safe) == verdict(witness.network, grid, "float32").holds
    for dtype in safe:
        converted = witness.to(dtype)
        for X in (grid.centre(index), lower, np.where(index == grid.N - 1, lower, last)):
            wanted = torch.from_numpy(witness.run(X)).to(getattr(torch, dtype)).double().numpy()
            assert np.array_equal(converted.run(X), wanted)
    assert "float32" in safe  # the unit box with few cells: edges and ramps fit into 24 bits
    assert "bfloat16" not in safe


def test_unsafe_dtypes_are_refused_at_conversion_load_and_export(tmp_path):
    witness = te.build(builtin("sort", n=2), delta=1 / 4, construction="compact")
    witness.save(tmp_path / "w")
    for dtype in ("bfloat16", "float16"):
        for attempt in (
            lambda d: witness.to(d),
            lambda d: te.load(tmp_path / "w", d),
            lambda d: te.export(witness, "torch", tmp_path / "e", dtype=d),
        ):
            with pytest.raises(te.ThereExistsError, match="cell edges need a resolution"):
                attempt(dtype)
    assert not (tmp_path / "e").exists()
    with pytest.raises(te.ThereExistsError, match="must be one of float64"):
        witness.to("int8")
    moved = witness.network.__class__.from_structure(witness.network.structure(), dict(witness.network.state_dict()))
    with pytest.raises(te.ThereExistsError, match="not safe in bfloat16"):
        moved.to(torch.bfloat16)(torch.zeros(1, 2, 1, dtype=torch.bfloat16))


def test_what_is_called_unsafe_really_fails_when_forced():
    witness = te.build(builtin("sort", n=2), delta=1 / 8, construction="compact")
    X = witness.grid.centre(witness.grid.cube(np.arange(64)))
    edge = np.nextafter(witness.grid.step[0], 0) - witness.grid.ramp[0]
    X = np.concatenate([X, np.full((1, 2, 1), edge)])
    forced = witness.network.to(torch.bfloat16)
    forced.safe = ("bfloat16",)
    with torch.no_grad():
        found = forced(torch.from_numpy(X).bfloat16()).double().numpy()
    wanted = torch.from_numpy(witness.cell_values(X)).bfloat16().double().numpy()
    assert not np.array_equal(found, wanted)


def test_a_far_domain_is_not_safe_in_float32():
    target = te.Target(lambda X: X, n=1, domain=(1000.0, 1001.0), lipschitz=1.0)
    witness = te.build(target, delta=1 / 4, construction="compact")
    assert verdicts(witness.network, witness.grid)["float32"].holds is False
    assert witness.exactness(500).max_error == 0


def test_values_that_would_be_rounded_twice_are_noticed():
    witness = te.build(builtin("sort", n=2), delta=1 / 4, construction="compact")
    with torch.no_grad():
        witness.network.E[0, 1] = 1 / 3  # the default of position 0
    found = verdict(witness.network, witness.grid, "float32")
    assert found.holds is False
    assert "rounded twice" in found.reasons[0]


def test_attention_that_is_no_average_is_noticed():
    witness = te.build(builtin("sort", n=2), delta=1 / 4, construction="compact")
    with torch.no_grad():
        witness.network.stages["gather"].attention.W_Q[0, 0, 0, 0] = 1.0
    assert "plain average" in verdict(witness.network, witness.grid, "float32").reasons[0]


def test_only_the_original_converts():
    witness = te.build(builtin("sort", n=2), delta=1 / 4, construction="compact")
    low = witness.to("float32")
    assert low.to("float32").network is low.network
    with pytest.raises(te.ThereExistsError, match="float64 original"):
        in_dtype(low.network, "float64", low.grid)
    with pytest.raises(te.ThereExistsError, match="float64 weights"):
        te.certify(low)


def test_represents_is_the_definition():
    values = np.array([1.0, 1 + 2.0**-7, 1 + 2.0**-8, 65504.0, 65505.0, 1e300])
    assert represents(values, torch.bfloat16).tolist() == [True, True, False, False, False, False]
    assert represents(values, torch.float16).tolist() == [True, True, True, True, False, False]
    assert set(DTYPES) == {"float64", "float32", "bfloat16", "float16"}


def test_a_sum_that_float64_rounds_is_not_exact(tmp_path):
    """1.5 − 2^-53 is nearest to 1, and every float run makes 1.5 of it, which is rounded to the stored 2."""
    rows = [[0, 1], [1, 2], [2, 2], [0, 0]], [["a", "c"], ["c", "a"], ["a", "a"], ["c", "b"]]
    te.build(te.Table(*rows), construction="compact").save(tmp_path / "w")

    def change(weights):
        outputs = weights["W_out"].argmax(1)
        weights["E"][:, outputs] = -(2.0**-53)
        for name, weight in weights.items():
            if name.endswith("feed_forward.W_2"):
                value = weight[0, outputs]
                weight[0, outputs] = torch.where((value == 2) | (value == 4), value - 0.5, value)

    def only(record):
        record["structure"]["safe"] = ["float64"]

    forge_weights(tmp_path / "w", change, only)
    found = te.verify(tmp_path / "w")
    assert found.holds is False
    assert "not proved safe in float64: a stored value would be rounded" in found.reasons[0]
