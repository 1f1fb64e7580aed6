"""Index arrays that do not describe a matrix are refused before scipy's compiled code follows them."""

import numpy as np
import pytest
from scipy.sparse import bsr_array, csc_array, csr_array

from thereexists.core.errors import InvalidInput
from thereexists.heads.matrix import as_matrix

BROKEN = {
    "falls": ([0, 5, 2], [0, 1]),
    "begins late": ([1, 1, 2], [0, 1]),
    "ends early": ([0, 1, 1], [0, 1]),
    "negative": ([0, -7, 2], [0, 1]),
    "outside": ([0, 1, 2], [0, 1 << 20]),
    "before": ([0, 1, 2], [-5, 1]),
    "short": ([0, 2], [0, 1]),
    "floats": ([0.0, 1.0, 2.0], [0.5, 1.0]),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("kind", [csr_array, csc_array])
def test_broken_index_arrays_are_refused(name, kind, monkeypatch):
    monkeypatch.setattr(kind, "sum_duplicates", _never)  # on the old tree it would corrupt the heap
    monkeypatch.setattr(csr_array, "sum_duplicates", _never)
    A = kind(np.eye(2))
    A.indptr, A.indices = map(np.array, BROKEN[name])
    with pytest.raises(InvalidInput):
        as_matrix(A)


def _never(self):
    raise AssertionError("scipy was called with unchecked index arrays")


def test_blocks_and_columns_still_pass():
    for kind in (csr_array, csc_array, bsr_array):
        assert as_matrix(kind(np.eye(4))).nonzeros == 4
    assert as_matrix(csr_array(([1.0, 2.0, 1.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))).nonzeros == 2
