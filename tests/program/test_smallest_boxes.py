"""Boxes as narrow as float64 has them: a program on one is built and verified, or refused in a sentence."""

import math

import numpy as np
import pytest

import thereexists as te
from tests.cli.in_process import ran
from thereexists import program as P
from thereexists.constructions.program.lowering import short_bottom
from thereexists.core.errors import ThereExistsError

LEAST = math.ulp(0.0)
BOXES = [(-LEAST, LEAST), (0.0, LEAST), (-1e-320, 1e-320), (1e-300, 1e-300 + 1e-315), (-3e-308, 5e-308), (-1.0, 3.0)]
PROGRAMS = {
    "factors": lambda x: x * [0.5, 2.0],
    "prefix mean": P.prefix_mean,
    "soft": lambda x: P.median(P.soft_largest(x, sharpness=1.0)),
    "product": lambda x: x * x,
    "curve": lambda x: P.apply(np.cos, x, curvature=1.0),
}


@pytest.mark.parametrize(("low", "high"), BOXES)
def test_the_bottom_of_a_range_is_at_most_its_low_end(low, high):
    """And lower by 2^-20 of the span at most."""
    bottom = short_bottom(low, high)
    assert low - 2.0**-20 * (high - low) <= bottom <= low


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_on_the_narrowest_box_is_built_or_refused(name):
    try:
        witness = te.build(PROGRAMS[name](P.tokens(n=2, low=-LEAST, high=LEAST)))
    except ThereExistsError:
        return
    X = np.array([[[-LEAST], [LEAST]], [[LEAST], [-LEAST]]])
    assert np.abs(witness(X) - witness.interpret(X)).max() <= witness.certificate.bound


def test_the_commands_have_no_traceback_and_it_verifies(tmp_path):
    (tmp_path / "p.py").write_text(
        "from thereexists import program as P\nz = P.tokens(n=2, low=-5e-324, high=5e-324) * [0.5, 2.0]\n"
    )
    for words in ("plan p.py:z", "build p.py:z --out w", "verify w"):
        assert ran(words, cwd=tmp_path).code == 0
