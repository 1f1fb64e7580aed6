"""The number of a box with the fewest bits is a number of every dtype that has one there."""

import numpy as np
import pytest
import torch

from thereexists.arithmetic.simplest import simplest


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(0.1, 0.9, 0.5), (-1.0, 2.0, 0.0), (3.0, 9.0, 8.0), (2.5, 3.5, 3.0), (-9.0, -3.0, -8.0), (0.1, 0.1, 0.1)],
)
def test_known_ones(low, high, found):
    assert simplest(low, high) == found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_dtype_that_has_a_number_there_has_this_one(dtype):
    rng, met = np.random.default_rng(0), 0
    for _ in range(4000):
        size = 2.0 ** rng.integers(-30, 15)
        low = float(size * rng.uniform(-1, 1))
        high = low + float(size * 2.0 ** -rng.uniform(0, 24))
        some = torch.tensor([low, (low + high) / 2, high], dtype=torch.float64).to(dtype).double()
        if not bool(((some >= low) & (some <= high)).any()):
            continue
        x = simplest(low, high)
        assert low <= x <= high
        assert float(torch.tensor(x, dtype=torch.float64).to(dtype)) == x
        met += 1
    assert met > 1000


@pytest.mark.parametrize(("low", "high"), [(5e-324, 1e-320), (1.7e308, 1.79e308), (1e-300, 1e300)])
def test_the_ends_of_float64(low, high):
    assert low <= simplest(low, high) <= high
