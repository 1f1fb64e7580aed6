"""The p of d_p: any number of at least 1, as a plain one; everything else is refused in a sentence."""

import fractions

import numpy as np
import pytest

import thereexists as te
from thereexists.functions.exponent import exponent


@pytest.mark.parametrize("p", [1, 2.5, np.int64(2), np.float32(1.5), 10**20])
def test_numbers_become_plain(p):
    assert exponent(p) == p
    assert type(exponent(p)) in (int, float)


@pytest.mark.parametrize(
    "p",
    [None, "2", True, np.True_, 0, 0.99, float("nan"), float("inf"), 10**400, [2], np.ones(2), fractions.Fraction(3)],
)
def test_the_rest_is_refused(p):
    with pytest.raises(te.ThereExistsError, match="'p' must be a finite number of at least 1; got "):
        exponent(p)


def test_a_certificate_for_a_number_of_numpy_is_saved(tmp_path):
    witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 4, p=np.int64(2))
    te.certify(witness, p=np.int64(2), opinions=1).save(tmp_path)
    assert '"p": 2' in (tmp_path / "certificate.json").read_text()
