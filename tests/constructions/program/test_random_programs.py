"""Random programs: whatever the graph, rows and schedule must not let one value disturb another."""

import dataclasses

import numpy as np
import pytest

from tests.program.cases import PROGRAMS, inputs
from tests.program.claims import SANE, in_dtype, violations
from tests.program.drawn import random_program
from thereexists import program as P
from thereexists.constructions.program.weights import network_of
from thereexists.core.dtypes import DTYPES


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(6))
def test_a_random_program_keeps_its_bound(seed):
    compiled = P.compile(random_program(seed))
    claim = compiled.bound("float64")
    assert claim.total < SANE
    assert violations(compiled, claim, "float64", count=64, seed=seed) == 0.0
    assert violations(compiled, compiled.bound("float32"), "float32", count=64, seed=seed) == 0.0


@pytest.mark.sampled(3)
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
