"""Numbers that a dtype cannot hold: no bound, rather than one that a NaN breaks."""

import numpy as np
import pytest

import thereexists as te
from thereexists import program as P
from thereexists.core.errors import CannotBuild


def far_away_constant():
    return P.tokens(3) + 1e5  # a row of E that is infinite in float16


def steep_head():
    """A query weight of 300,000, infinite in float16; at a token that is exactly 0 it would make a NaN."""
    x = P.tokens(2, high=1e-3)
    return P.attend(3e5 * x, x, x)


def unread_tokens():
    """Nothing reads the tokens; padding them with −10^6 is infinite in float16, and 0 times that a NaN."""
    return 0.0 * P.tokens(3, low=-1e6, high=1e6, shorter=True) + 1.0


@pytest.mark.parametrize("program", [far_away_constant, steep_head, unread_tokens])
def test_a_weight_that_overflows_has_no_bound(program):
    compiled = P.compile(program())
    assert np.isfinite(compiled.bound("float32").total)
    with pytest.raises(CannotBuild, match="overflow"):
        compiled.bound("float16")


def test_a_certificate_names_the_dtype_that_overflows():
    certificate = te.build(far_away_constant()).certificate
    assert "float16" not in certificate.bounds
    assert "overflow" in certificate.reasons["float16"]
    with pytest.raises(CannotBuild, match="overflow"):
        te.build(far_away_constant(), dtype="float16", epsilon=1e-3)
