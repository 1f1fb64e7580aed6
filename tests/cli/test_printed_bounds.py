"""What the commands print of a bound is not smaller than the bound, nor than what the network is off by."""

import re
from fractions import Fraction

import numpy as np

import thereexists as te
from tests.command import thereexists

_FILE = """import numpy as np
from thereexists import program as P
y = P.apply(np.square, P.tokens(n=2, low=-1.0, high=1.0), epsilon=0.12)
"""


def test_a_printed_bound_is_kept(tmp_path):
    (tmp_path / "sq.py").write_text(_FILE)
    built = thereexists("build", "sq.py:y", "--dtype", "float64", "--out", "w", cwd=tmp_path).stdout
    shown = thereexists("show", "w", cwd=tmp_path).stdout
    certified = thereexists("certify", "w", cwd=tmp_path).stdout
    witness = te.load(tmp_path / "w")
    bound = Fraction(witness.certificate.bounds["float64"]["bound"])
    grid = np.linspace(-1.0, 1.0, 20001)
    off = np.abs(witness.run(np.stack([grid, -grid], axis=1)[:, :, None])[:, 0, 0] - grid**2).max()
    assert Fraction(float(off)) <= bound
    said = [witness.certificate.claim(), witness.certificate.statement(), repr(witness), str(witness.verdicts())]
    for text in (built, shown, certified, *said):
        printed = [Fraction(number) for number in re.findall(r"≤ ([0-9.]+(?:e[+-][0-9]+)?)", text)]
        assert printed, text
        assert all(one >= bound for one in printed if one > Fraction("0.05")), text
    assert "sup norm ≤ 0.102873 in float64" in built
