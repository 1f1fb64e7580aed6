"""The judge of contextual mappings: against the definition, word by word, and with faults planted."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thereexists as te


def by_the_definition(ids, sequences, equivariant):
    for row in ids:
        if len(set(row)) < len(row):
            return False
    for (p, a), (q, b) in itertools.combinations(zip(ids, sequences, strict=True), 2):
        same = sorted(a) == sorted(b) if equivariant else a == b
        if not same and set(p) & set(q):
            return False
    return True


@given(
    st.integers(1, 3).flatmap(
        lambda n: st.lists(
            st.tuples(
                st.lists(st.integers(0, 12), min_size=n, max_size=n),
                st.lists(st.integers(0, 2), min_size=n, max_size=n),
            ),
            min_size=1,
            max_size=5,
        )
    ),
    st.booleans(),
)
def test_verdict_equals_the_definition(table, equivariant):
    ids, sequences = [row[0] for row in table], [row[1] for row in table]
    verdict = te.is_contextual_mapping(ids, sequences, equivariant=equivariant)
    assert verdict.holds == by_the_definition(ids, sequences, equivariant)
    if not verdict.holds:  # the witness is a real collision
        (i, j), (k, l) = verdict.evidence
        assert ids[i][j] == ids[k][l]
        assert (i, j) != (k, l)


def test_verdict_equals_the_definition_on_every_small_table():
    rows = [list(row) for row in itertools.product(range(3), repeat=2)]
    sequences = [list(row) for row in itertools.product(range(2), repeat=2)]
    tables = itertools.product(itertools.product(rows, repeat=2), itertools.product(sequences, repeat=2))
    for (ids, cases), equivariant in itertools.product(tables, (False, True)):
        verdict = te.is_contextual_mapping(ids, cases, equivariant=equivariant)
        assert verdict.holds == by_the_definition(ids, cases, equivariant), (ids, cases)


def test_numbers_beyond_float64_are_compared_exactly():
    far = 2**63  # beside −4, NumPy makes float64 of it, in which far + 1 is far
    assert te.is_contextual_mapping([[far + 1, 2], [far, -4]], [[0, 1], [1, 0]]).holds
    assert not te.is_contextual_mapping([[2**80, 2.0], [2**80, -4]], [[0, 1], [1, 0]]).holds
    assert not te.is_contextual_mapping([[1, 2], [1, 2]], [[far + 1, -1], [far, -1]]).holds


def test_a_planted_collision_is_found_among_many():
    rng = np.random.default_rng(0)
    sequences = rng.random((1000, 3, 2))
    ids = np.arange(3000).reshape(1000, 3)
    assert te.is_contextual_mapping(ids, sequences).holds
    ids[700, 1] = ids[13, 2]
    verdict = te.is_contextual_mapping(ids, sequences)
    assert not verdict.holds
    assert set(verdict.evidence) == {(13, 2), (700, 1)}


def test_permutations_count_as_one_sequence_only_for_equivariant_maps():
    sequences = [[[0.0], [1.0]], [[1.0], [0.0]]]
    ids = [[5, 6], [6, 5]]
    assert te.is_contextual_mapping(ids, sequences, equivariant=True).holds
    assert not te.is_contextual_mapping(ids, sequences, equivariant=False).holds


@pytest.mark.parametrize(
    ("ids", "sequences", "message"),
    [
        ([], [], "non-empty"),
        ([[1, 2]], [[[0.0]]], "must be an array"),
        ([[np.nan]], [[0.0]], "finite"),
        ([[1], [2]], [["a"], ["b"]], "finite real numbers"),
        ([[1, 2], [3]], [[1, 2], [3]], "rows of one length"),
    ],
)
def test_bad_input_is_named(ids, sequences, message):
    with pytest.raises(te.ThereExistsError, match=message):
        te.is_contextual_mapping(ids, sequences)
