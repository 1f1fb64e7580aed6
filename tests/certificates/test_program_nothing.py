"""Programs whose operations cancel, or come to nothing: the network leaves them out, and the proof follows."""

import numpy as np
import pytest

import thereexists as te
from thereexists import program as P

x, one = P.tokens(3), P.tokens(1)
bent = P.relu(x - 0.5)

NOTHING = {
    "no sort": lambda: 0.0 * P.sort(x) + x,
    "sort less sort": lambda: P.sort(x) - P.sort(x) + x,
    "the rank of one": lambda: P.rank(P.relu(one - 0.5), margin=0.1),
    "a scale of zeros": lambda: P.scale(P.abs(x - 0.5), np.zeros(3)),
    "a product with nothing": lambda: P.multiply(bent, 0.0 * x),
    "queries of nothing": lambda: P.attend(bent * 0.0, x, x),
    "keys of nothing": lambda: P.attend(x, bent * 0.0, x),
    "keys that are one number": lambda: P.attend(bent, 0.0 * x + 3.0, x),
    "one of two queries": lambda: P.attend(P.mix(x, [[1.0], [0.0]]), P.mix(x, [[1.0], [1.0]]), x),
    "one of two keys": lambda: P.attend(P.mix(x, [[1.0], [1.0]]), P.mix(x, [[0.0], [1.0]]), x),
    "a spline that is 0": lambda: P.apply(lambda t: 0 * t, x, epsilon=0.1, curvature=0.0),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NOTHING)
def test_what_comes_to_nothing_is_proved(name, tmp_path):
    program = NOTHING[name]()
    witness = te.build(program, dtypes=("float64",))
    witness.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds
    X = np.random.default_rng(0).random((100, program.n, 1))
    assert np.abs(witness(X) - P.interpret(program, X)).max() <= witness.certificate.bound
