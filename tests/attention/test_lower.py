"""The cut is exact: the pieces of row k, one after the other, are row k of the step, every key once."""

import dataclasses

import numpy as np
import pytest

from tests.attention.cases import steps, steps_with_empty_rows
from thereexists import patterns as tp
from thereexists.attention.lower import Strip, lower
from thereexists.patterns.parts import Band, Explicit
from thereexists.patterns.step import Step


def wrong_rows(step, lowered):
    """The rows whose pieces do not add up to the row: a key missing, foreign, or counted twice."""
    bad = []
    for k in range(step.n):
        found = np.concatenate([np.asarray(x, np.int64) for x in lowered.members(k)] or [np.array([], np.int64)])
        if not np.array_equal(np.sort(found), step.rows(k)):
            bad.append(k)
    return bad


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", [1, 2, 7, 32, 53])
@pytest.mark.parametrize("listed_below", [0, 8])
def test_every_key_is_in_exactly_one_piece(n, listed_below):
    table = steps(n)
    assert len(table) > 30
    for name, step in table.items():
        assert wrong_rows(step, lower(step, listed_below)) == [], name


def test_a_key_counted_twice_and_a_key_forgotten_are_noticed():
    step = tp.strided(40, 5).union().step(0)
    lowered = lower(step)
    column, window = lowered.strips
    twice = dataclasses.replace(lowered, strips=(column, dataclasses.replace(window, skip=0)))
    assert wrong_rows(step, twice)
    short = dataclasses.replace(window, hi=window.hi - 1)
    assert wrong_rows(step, dataclasses.replace(lowered, strips=(column, short)))


def test_structure_is_found_in_lists_of_entries():
    """A window, and rows that come in equal runs, are recognised in a pattern given as a plain CSR array."""
    listed = tp.from_mask(tp.window(50, 4).mask()[0]).step(0)
    assert [type(s) for s in lower(listed).strips] == [Strip]
    rows = np.repeat(np.array([[0, 5, 9], [3, 4, 63]]), 32, axis=0)
    runs = Step(64, (Explicit(np.arange(65) * 3, rows.ravel()),))
    found = lower(runs)
    assert found.entries is None
    assert found.columns is not None
    assert found.columns.starts.tolist() == [0, 32, 64]
    assert wrong_rows(runs, found) == []


def test_strips_have_ends_that_never_decrease():
    """Kernels take the first row's start and the last row's end for a whole tile."""
    for name, step in steps(53).items():
        for strip in lower(step).strips:
            m = strip.modulus
            for r in range(min(m, 53)):
                assert (np.diff(strip.lo[r::m]) >= 0).all(), name
                assert (np.diff(strip.hi[r::m]) >= 0).all(), name


def test_degrees_of_overlapping_parts_by_counting():
    """``Step.degrees`` counts without listing rectangles; the planner's estimates stand on it."""
    for n in (7, 32, 53):
        for name, step in steps(n).items():
            assert step.degrees.tolist() == [len(step.rows(k)) for k in range(n)], name


@pytest.mark.parametrize("n", [1, 7, 32])
def test_a_window_is_called_one_only_if_it_is(n):
    """The kernels of windows ask nothing else of a step than these two numbers."""
    k, found = np.arange(n), 0
    table = steps(n) | steps_with_empty_rows(n)
    table |= {f"{a}, {b}": Step(n, (Band(-a, b),)) for a in range(n) for b in (0, 1, n)}
    table |= {f"{a}, {b}, causal": Step(n, (Band(-a, b),), True) for a in range(n) for b in (0, n)}
    for name, step in table.items():
        window = lower(step).window
        if window is not None:
            left, right = window
            far = k[None, :] - k[:, None]
            assert np.array_equal((far >= -left) & (far <= right), step.mask()), name
            found += 1
    assert found >= 5 * n  # every band was seen to be one
