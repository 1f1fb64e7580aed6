"""What a user states of a function: numbers of any type, or one sentence. And what is no answer of a function."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import thereexists as te
from thereexists.core.errors import InvalidInput, InvalidTarget


def identity(X):
    return X


@pytest.mark.sampled(3)
@pytest.mark.parametrize("one", [np.int64(1), np.float32(1), np.float16(1), Fraction(1), Decimal(1), np.array(1.0), 1])
def test_a_number_of_any_type_is_a_number(one, tmp_path):
    target = te.Target(identity, n=2, lipschitz=one, bound=one, equivariant=np.True_)
    assert (type(target.lipschitz), type(target.bound), type(target.equivariant)) == (float, float, bool)
    witness = te.build(target, delta=1 / 2)
    witness.save(tmp_path / "w")
    te.certify(witness).save(tmp_path / "w")
    assert te.verify(tmp_path / "w", target).holds


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"lipschitz": True}, "'lipschitz' must be a finite number"),
        ({"lipschitz": "1"}, "'lipschitz' must be a finite number"),
        ({"bound": 10**400}, "'bound' must be a finite number"),
        ({"bound": 1j}, "'bound' must be a finite number"),
        ({"bound": [1, 2]}, "'bound' must be a finite number"),
        ({"equivariant": "no"}, "'equivariant' must be True or False"),
        ({"name": None}, "must be a text"),
        ({"name": "\ud800"}, "must be a text"),
        ({"domain": (0, 10**400)}, "'domain' must be"),
    ],
)
def test_what_is_none_is_named(stated, says):
    with pytest.raises(InvalidInput, match=says):
        te.Target(identity, n=2, **stated)


def leave(radius):
    raise SystemExit(3)


@pytest.mark.parametrize("modulus", [lambda r: 1 / 0, lambda r: None, lambda r: np.ones(2), lambda r: 1j, leave])
def test_a_modulus_that_gives_no_number_is_named(modulus):
    with pytest.raises(InvalidTarget, match="The modulus of function cannot be called"):
        te.build(te.Target(identity, n=2, modulus=modulus), delta=1 / 2)


def test_masked_answers_are_none():
    masked = te.Target(lambda X: np.ma.masked_array(X, mask=X > 0.5), n=2, lipschitz=1.0)
    with pytest.raises(InvalidTarget, match="masked"):
        te.build(masked, delta=1 / 2)


def test_an_input_beyond_float64_is_named():
    with pytest.raises(InvalidInput, match="real numbers"):
        te.build(te.targets.builtin("sort", n=2), delta=1 / 2)([[10**400], [0]])
