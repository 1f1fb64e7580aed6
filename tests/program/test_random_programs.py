"""Random programs: whatever the graph, rows and schedule must not let one value disturb another."""

import dataclasses

import numpy as np
import pytest

from tests.program.cases import PROGRAMS, inputs
from tests.program.test_contract import SANE, in_dtype, violations
from thereexists import program as P
from thereexists.program.weights import network_of


def random_program(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 7)), int(rng.integers(1, 3))
    values = [P.tokens(n, d, low=float(rng.choice([-1.0, 0.0])))]

    def pick():
        return values[rng.integers(max(0, len(values) - 4), len(values))]

    makers = [
        lambda: pick() * float(rng.choice([0.5, -1.0, 0.3])) + pick(),
        lambda: pick() / 2 - rng.integers(-2, 3, n) / 4,
        lambda: P.gather(pick(), rng.integers(0, n, n)),
        lambda: P.mean(pick()),
        lambda: P.relu(pick() - 0.1),
        lambda: P.absolute(pick()),
        lambda: P.maximum(pick(), pick()),
        lambda: P.minimum(pick(), 0.5),
        lambda: P.clip(pick(), -0.25, 0.5),
        lambda: P.sort(pick()),
    ]
    for _ in range(10):
        values.append(makers[rng.integers(len(makers))]())
    return values[-1] + values[-2] - values[int(rng.integers(len(values)))]


@pytest.mark.parametrize("seed", range(10))
def test_a_random_program_keeps_its_bound(seed):
    compiled = P.compile(random_program(seed))
    claim = compiled.bound("float64")
    assert claim.total < SANE
    assert violations(compiled, claim, "float64", count=64, seed=seed) == 0.0
    assert violations(compiled, compiled.bound("float32"), "float32", count=64, seed=seed) == 0.0


def test_rows_that_are_not_erased_are_caught():
    compiled = P.compile(PROGRAMS["layered"](5))
    layout = dataclasses.replace(compiled.layout, erased={})
    network = network_of(compiled.atoms, list(compiled.outputs), compiled.plan, layout, compiled.source.d)
    network.safe = compiled.network.safe
    dirty = dataclasses.replace(compiled, network=network)
    assert violations(dirty, compiled.bound("float32"), "float32") > 0.0


def test_the_inputs_of_the_suite_are_numbers_of_the_dtype():
    source = P.tokens(4, low=-1.0)
    X = in_dtype(inputs(source, 64, 0), "bfloat16", source)
    assert np.array_equal(X, in_dtype(X, "bfloat16", source))
