"""Ranges: whatever is done, what is missing and how it is cut tile the whole exactly once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thereexists.core.errors import BadWitnessFile
from thereexists.parallel.ranges import Range, cut, missing


@given(st.integers(1, 60), st.integers(1, 9), st.data())
def test_done_and_cut_tile_the_whole(total, size, data):
    whole = cut(missing([], total), size, total)
    done = data.draw(st.lists(st.sampled_from(whole), unique=True))
    rest = cut(missing(done, total), size, total)
    assert sorted(done + rest) == sorted(whole)  # the raster does not move when a job is resumed
    assert [b for part in sorted(done + rest) for b in range(part.first, part.stop)] == list(range(total))
    assert max(map(len, whole)) <= size


@given(st.integers(2, 30), st.integers(1, 9))
def test_one_missing_chunk_is_one_gap(total, size):
    whole = cut(missing([], total), size, total)
    for hole in whole:
        gaps = missing([part for part in whole if part != hole], total)
        assert gaps == [hole]


@pytest.mark.parametrize("bad", [Range(2, 5), Range(0, 1), Range(3, 4), Range(9, 11), Range(-1, 0), Range(7, 7)])
def test_overlaps_and_ranges_outside_are_refused(bad):
    with pytest.raises(BadWitnessFile):
        missing([Range(0, 4), Range(4, 6), bad], 10)
