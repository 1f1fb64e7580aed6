"""Compact networks on all of R^{d×n}: exactly 0 as soon as one entry is outside, with positions too, in every dtype."""

import numpy as np
import pytest

import thereexists as te
from tests.supported import BOXES, bumped, inputs_everywhere, keeps_the_theorem
from thereexists.core.errors import InvalidInput


@pytest.mark.sampled(3)
@pytest.mark.parametrize("equivariant", [True, False])
@pytest.mark.parametrize("d", BOXES)
def test_0_outside_and_right_inside(d, equivariant):
    target = bumped("distance-to-mean", n=2, d=d, domain=BOXES[d], equivariant=equivariant)
    witness = keeps_the_theorem(target, 1 / 4, 4000, "compact")
    assert witness.plan.parameters == witness.network.parameter_count
    assert witness.plan.layers["total"] == witness.network.depth == 4
    assert te.certify(witness, opinions=1).bound >= witness.estimate_distance(samples=256).low


def test_a_single_token_and_many_blocks():
    keeps_the_theorem(bumped("token-sine", n=1), 1 / 8, 4000, "compact")
    target = bumped("distance-to-mean", n=2, equivariant=False)
    narrow = te.build(target, delta=1 / 4, construction="compact", max_width=5)
    X, outside = inputs_everywhere(target, 2000)
    assert not narrow(X)[outside].any()
    assert narrow.plan.layers["total"] == narrow.network.depth > 4


@pytest.mark.parametrize("equivariant", [True, False])
def test_lower_dtypes_answer_0_outside_too(equivariant):
    target = bumped("distance-to-mean", n=2, equivariant=equivariant)
    witness = te.build(target, delta=1 / 4, construction="compact")
    single = witness.to("float32")
    X, outside = inputs_everywhere(target, 4000)
    kept = np.abs(X).max(axis=(1, 2)) <= single.largest_input()
    assert kept.sum() > 3000
    assert not single(X[kept])[outside[kept]].any()
    inside = X[~outside]
    inside = inside[~witness.grid.on_ramp(inside.astype(np.float32).astype(np.float64))]
    assert (single(inside) == witness(inside).astype(np.float32)).all()
    with pytest.raises(InvalidInput, match="takes numbers up to"):
        single([[1e38], [0.5]])


def test_the_largest_input_is_beyond_1e300():
    witness = te.build(bumped("distance-to-mean", n=2), delta=1 / 8, construction="compact")
    assert witness.largest_input() > 1e300
    assert not witness(np.array([[1e300], [0.3]])).any()
