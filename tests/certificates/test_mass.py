"""Units that contradict each other are compared once for all positions, and within one budget."""

from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

from thereexists.certificates import mass
from thereexists.certificates.float_run import FloatRun

VERTICES = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T  # eight units, each against all others


def one_fires(signs, gate):
    return FloatRun._one_fires.func(SimpleNamespace(signs=signs, gate=gate))  # pyright: ignore


@pytest.fixture
def compared():
    with patch.object(mass, "_compared", wraps=mass._compared) as counted:
        yield counted


def test_positions_with_the_same_units_are_compared_once(compared):
    gate = np.ones((1000, 8))
    gate[500:, 3] = 0
    assert one_fires(VERTICES, gate) == [True] * 1000
    assert compared.call_count == 2
    assert one_fires(VERTICES[[0, 0]], np.eye(2)) == [True, True]
    assert one_fires(VERTICES[[0, 0]], np.ones((2, 2))) == [False, False]


def test_all_positions_together_have_one_budget():
    gate = 1.0 - np.eye(8)  # at each position seven others
    with patch.object(mass, "_MOST_COMPARISONS", 3 * 7**2):
        assert one_fires(VERTICES, gate) == [True] * 3 + [False] * 5
