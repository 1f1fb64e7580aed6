"""d_p is an integral. What a certificate says of single inputs: a bound on the cores, and the share of all others."""

import json

import numpy as np
import pytest

import thereexists as te
from tests.cli.in_process import ran
from thereexists.certificates.ramps import equal_column_share, off_core_share
from thereexists.functions.targets import BUILTINS, builtin
from thereexists.reports.explore.viewer import open_viewer


def worst(witness, count, seed=0):
    """The largest error of any entry on random inputs off the ramps, and whether two tokens of each share a cell."""
    target, grid = witness.target, witness.grid
    rng = np.random.default_rng(seed)
    X = target.low + (target.high - target.low) * rng.random((count, target.n, target.d))
    X = X[~grid.on_ramp(X)]
    ids = np.sort(grid.column_ids(grid.index(X)), axis=1)
    return np.abs(target(X) - witness(X)).max(axis=(1, 2)), (ids[:, 1:] == ids[:, :-1]).any(axis=1)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("construction", ["faithful", "compact"])
@pytest.mark.parametrize("name", BUILTINS)
def test_no_input_off_the_ramps_is_farther_than_stated(name, construction):
    witness = te.build(builtin(name, n=2), delta=1 / 4, construction=construction)
    uniform = te.certify(witness, opinions=1).uniform
    error, equal = worst(witness, 2000)
    assert error.max() <= uniform["most"]
    assert error[~equal].max() <= uniform["most_distinct"] <= uniform["most"]
    assert uniform["most_distinct"] <= 2 * error[~equal].max() or witness.target.lipschitz > 2  # and not by much


def test_a_general_modulus_and_a_stated_constant_bound_single_inputs_too():
    def f(X):
        return np.sqrt(np.sort(X, axis=1))

    for states in ({"modulus": np.sqrt}, {"interval": lambda low, high: (f(low) - 1e-12, f(high) + 1e-12)}):
        witness = te.build(te.Target(f, n=2, name="roots", **states), delta=1 / 4)
        assert worst(witness, 2000)[0].max() <= te.certify(witness, opinions=1).uniform["most"] <= 0.55


def test_an_input_on_a_ramp_is_farther_off_than_the_bound_on_the_integral():
    witness = te.build(builtin("sort", n=3), delta=1 / 4)
    certificate = te.certify(witness, opinions=1)
    X = np.tile([[0.1], [0.4], [0.9]], (200, 1, 1))
    X[:, 1, 0] = 0.5 - np.linspace(0.0, 1.0, 202)[1:-1] * witness.grid.ramp[0]
    error = np.abs(witness.target(X) - witness(X)).max()
    assert error > certificate.bound > certificate.uniform["most"]
    share = off_core_share(np.ones(1), witness.grid)
    assert share <= certificate.uniform["share"] <= share * (1 + 2.0**-40) < 1e-5


def test_the_shares_are_at_least_the_measures():
    """By counting cells: of ramps, and of cubes with equal columns, also where the grid overhangs the domain."""
    for target in (builtin("deep-sets", n=2), builtin("deep-sets", n=2, domain=(-1.0, 0.7))):
        witness = te.build(target, delta=1 / 3)
        uniform, grid = te.certify(witness, opinions=1).uniform, witness.grid
        width = float(target.high[0] - target.low[0])
        ends = np.minimum(grid.origin[0] + np.arange(4) * grid.step[0], target.high[0])
        inside = np.diff(np.maximum(ends, target.low[0])) / width
        assert equal_column_share(target.high - target.low, grid) >= (inside**2).sum()
        assert uniform["share_distinct"] >= (inside**2).sum() + uniform["share"]
        assert uniform["share"] >= 1 - (1 - 2 * grid.ramp[0] / width) ** 2


def test_undecided_cubes_are_no_part_of_the_statement():
    witness = te.build(builtin("sort", n=2), delta=1 / 4)
    witness.network.stages["quantise"].feed_forward.W_2.data[1, 0, 0] += 0.5  # a cell that does not become a point
    certificate = te.certify(witness, opinions=1)
    assert certificate.undecided > 0
    assert certificate.uniform["share"] >= certificate.undecided / certificate.cells


def test_every_place_that_prints_a_bound_says_what_it_is(tmp_path):
    """Of the command line, a report and explore: that d_p is an integral, and how many inputs may be far off."""
    made = ran("build sort --n 2 --delta 1/4 --out w", cwd=tmp_path).stdout
    says = {name: ran(f"{name} w", cwd=tmp_path).stdout for name in ("certify", "verify", "show")}
    says |= {"build": made, "plan": ran("plan sort --n 2 --delta 1/4", cwd=tmp_path).stdout}
    ran("report w --out r.html", cwd=tmp_path)
    says |= {"report": (tmp_path / "r.html").read_text(), "explore": str(open_viewer(tmp_path / "w").about())}
    for name, text in says.items():
        text = " ".join(text.split()).replace("At most", "at most").replace("2·10⁻⁶", "2e-06")
        assert "integral" in text, name
        assert "for every input of the domain" not in text, name
        assert name == "verify" or "can be far off" in text, name
        if name not in ("show", "plan"):
            assert "at most 0.125001 at every entry in exact arithmetic, for all inputs but a share of 2e-06" in text, (
                name
            )
    given = json.loads(ran("certify w --json", cwd=tmp_path).stdout)
    assert given["uniform"]["most"] == pytest.approx(0.125)
    assert len(given["meaning"]) == 3  # the float run is the last
