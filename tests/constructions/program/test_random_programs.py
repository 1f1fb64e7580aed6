"""Random programs: whatever the graph, rows and schedule must not let one value disturb another."""

import dataclasses

import numpy as np
import pytest

from tests.program.cases import PROGRAMS, inputs
from tests.program.test_contract import SANE, in_dtype, violations
from thereexists import program as P
from thereexists.constructions.program.ranges import value_range
from thereexists.constructions.program.weights import network_of
from thereexists.core.dtypes import DTYPES


def random_program(seed, everything=False):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 7)), int(rng.integers(1, 3))
    values = [P.tokens(n, d, low=float(rng.choice([-1.0, 0.0])))]

    def pick():
        return values[rng.integers(max(0, len(values) - 4), len(values))]

    makers = [
        lambda: pick() * float(rng.choice([0.5, -1.0, 0.3])) + pick(),
        lambda: pick() / 2 - rng.integers(-2, 3, n) / 4,
        lambda: P.take(pick(), rng.integers(0, n, n)),
        lambda: P.mean(pick()),
        lambda: P.relu(pick() - 0.1),
        lambda: P.abs(pick()),
        lambda: P.maximum(pick(), pick()),
        lambda: P.minimum(pick(), 0.5),
        lambda: P.clip(pick(), -0.25, 0.5),
        lambda: P.sort(pick()),
    ]
    if everything:
        makers += [
            lambda: P.scale(pick(), rng.integers(-2, 3, n) / 3),
            lambda: P.cumsum(pick()) / n,
            lambda: P.prefix_mean(pick()),
            lambda: P.cummax(pick()),
            lambda: P.delay(pick(), int(rng.integers(1, n))),
            lambda: P.where(P.greater(pick(), pick(), margin=0.25), pick(), pick()),
            lambda: P.where(np.repeat(rng.integers(0, 2, (n, 1)), d, axis=1), pick(), pick()),
            lambda: P.interp(pick(), [-0.5, 0.0, 0.4], rng.normal(size=3)),
            lambda: P.multiply(pick(), pick(), epsilon=1e-3),
            lambda: P.apply(np.tanh, pick(), epsilon=1e-3),
            lambda: P.attend(pick(), pick() * float(rng.choice([0.5, 4.0, 32.0])), pick()),
            lambda: P.soft_largest(pick(), sharpness=float(rng.choice([4.0, 256.0]))),
            lambda: P.rank(pick(), margin=0.5) / n,
        ]
    while len(values) < 11:
        value = makers[rng.integers(len(makers))]()
        values += [value] if max(map(abs, value_range(value))) < 100 else []  # nothing grows for ever
    return values[-1] + values[-2] - values[int(rng.integers(len(values)))]


@pytest.mark.parametrize("seed", range(6))
def test_a_random_program_keeps_its_bound(seed):
    compiled = P.compile(random_program(seed))
    claim = compiled.bound("float64")
    assert claim.total < SANE
    assert violations(compiled, claim, "float64", count=64, seed=seed) == 0.0
    assert violations(compiled, compiled.bound("float32"), "float32", count=64, seed=seed) == 0.0


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))])
def test_a_random_program_of_all_operations_keeps_its_bound(seed):
    """In every dtype, with or without limits on heads and widths."""
    program = random_program(seed, everything=True)
    compiled = P.compile(program, heads=2, width=6) if seed % 2 else P.compile(program)
    for dtype in DTYPES:
        assert violations(compiled, compiled.bound(dtype), dtype, count=64, seed=seed) == 0.0


def test_rows_that_are_not_erased_are_caught():
    compiled = P.compile(PROGRAMS["layered"](5))
    layout = dataclasses.replace(compiled.layout, erased={})
    network = network_of(compiled.atoms, list(compiled.outputs), compiled.schedule, layout, compiled.source.d)
    network.safe = compiled.network.safe
    dirty = dataclasses.replace(compiled, network=network)
    assert violations(dirty, compiled.bound("float32"), "float32") > 0.0


def test_the_inputs_of_the_suite_are_numbers_of_the_dtype():
    source = P.tokens(4, low=-1.0)
    X = in_dtype(inputs(source, 64, 0), "bfloat16", source)
    assert np.array_equal(X, in_dtype(X, "bfloat16", source))
