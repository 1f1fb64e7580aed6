"""What a caller's functions answer where they should not: NaN, infinity, ends upside down, another shape."""

import numpy as np
import pytest

import thereexists as te
from thereexists.core.errors import InvalidTarget, NotProved

D = te.domains


def identity(X):
    return X


def wide(low, high):
    return np.full_like(low, -2.0), np.full_like(low, 2.0)


def below(x):
    """≤ 0 everywhere."""
    return x[:, 0] - 2


def range_of_h(low, high):
    return low[:, 0] - 2, high[:, 0] - 2


def f_is(answer):
    return te.Target(answer, n=1, lipschitz=1.0)


def interval_is(answer):
    return te.Target(identity, n=1, interval=answer)


def h_is(answer):
    return te.Target(identity, n=1, lipschitz=1.0, domain=D.Implicit(answer, 0, 1, lipschitz=1.0))


def range_is(answer):
    """The constant of h is stated too: it must not hide what the extension says."""
    return te.Target(identity, n=1, lipschitz=1.0, domain=D.Implicit(below, 0, 1, lipschitz=1.0, interval=answer))


NOT_FINITE = "NaN, infinity"
NOT_ENDS = "NaN or low > high"
NO_FORM = "must return"
SPOILED = {
    "f: NaN at one point": (f_is, lambda X: np.where(X > 0.9, np.nan, X), NOT_FINITE),
    "f: infinity": (f_is, lambda X: np.where(X > 0.9, np.inf, X), NOT_FINITE),
    "f: another shape": (f_is, lambda X: X[:, :, 0], NO_FORM),
    "f: complex": (f_is, lambda X: X + 0j, "complex"),
    "interval: NaN below": (interval_is, lambda low, high: (np.where(high > 0.9, np.nan, low), high), NOT_ENDS),
    "interval: NaN above": (interval_is, lambda low, high: (low, np.where(high > 0.9, np.nan, high)), NOT_ENDS),
    "interval: upside down": (interval_is, lambda low, high: (high + 1, low), NOT_ENDS),
    "interval: another shape": (interval_is, lambda low, high: (low[0], high[0]), NO_FORM),
    "interval: complex": (interval_is, lambda low, high: (low + 0j, high), "complex"),
    "h: NaN": (h_is, lambda x: np.where(x[:, 0] > 0.9, np.nan, -1.0), "finite numbers"),
    "h: infinity": (h_is, lambda x: np.where(x[:, 0] > 0.9, -np.inf, -1.0), "finite numbers"),
    "h: another shape": (h_is, lambda x: x - 2, "finite numbers"),
    "h: complex": (h_is, lambda x: x[:, 0] - 2 + 0j, "complex"),
    "range of h: NaN below": (range_is, lambda low, high: (low[:, 0] * np.nan, high[:, 0] - 2), NOT_ENDS),
    "range of h: NaN above": (range_is, lambda low, high: (low[:, 0] - 2, high[:, 0] * np.nan), NOT_ENDS),
    "range of h: NaN at one end": (
        range_is,
        lambda low, high: (np.where(high[:, 0] == 0.5, np.nan, low[:, 0] - 2), high[:, 0] - 2),
        NOT_ENDS,
    ),
    "range of h: upside down": (range_is, lambda low, high: range_of_h(high, low - 1), NOT_ENDS),
    "range of h: another shape": (range_is, lambda low, high: (low - 2, high - 2), NO_FORM),
    "range of h: one array": (range_is, lambda low, high: low[:, 0], NO_FORM),
    "range of h: complex": (range_is, lambda low, high: (low[:, 0] - 2 + 0j, high[:, 0]), "complex"),
    "range of h: an error": (range_is, lambda low, high: 1 / 0, "ZeroDivisionError"),
}


@pytest.mark.parametrize("what", SPOILED)
@pytest.mark.parametrize("construction", ["faithful", "compact"])
def test_an_answer_that_is_none_is_refused_in_one_sentence(what, construction):
    kind, answer, says = SPOILED[what]
    with pytest.raises(InvalidTarget, match=says):
        te.certify(te.build(kind(answer), delta=1 / 2, construction=construction), opinions=1)


def test_an_infinite_enclosure_of_h_is_true_and_says_nothing():
    domain = D.Implicit(below, 0, 1, interval=lambda low, high: (np.array(-np.inf), np.array(np.inf)))
    witness = te.build(te.Target(identity, n=1, lipschitz=1.0, domain=domain), delta=1 / 2)
    assert witness.grid.cells == 2
    assert te.certify(witness, opinions=1).bound >= 0.125


def test_an_infinite_enclosure_of_f_proves_nothing():
    """With a constant beside it, that one decides."""
    endless = te.Target(identity, n=1, interval=lambda low, high: (-np.inf, np.inf))
    with pytest.raises(NotProved):
        te.certify(te.build(endless, delta=1 / 2), opinions=1)
    steep = te.Target(identity, n=1, lipschitz=1.0, interval=lambda low, high: (low - 1e99, high + 1e99))
    assert te.certify(te.build(steep, delta=1 / 2), opinions=1).bound >= 0.125


def test_nothing_is_asked_of_h_beside_its_box():
    """The logarithm is claimed from 1/4 on; the other part of the union reaches down to 0."""

    def h(x):
        assert (x >= 0.25).all()
        return np.log(x[:, 0]) - 1

    def interval(low, high):
        assert (low >= 0.25).all()
        return np.log(low[:, 0]) - 1, np.log(high[:, 0]) - 1

    both = D.Implicit(h, 0.25, 1.0, interval=interval) | D.Box(0.0, 0.3)
    witness = te.build(te.Target(identity, n=1, lipschitz=1.0, domain=both), delta=1 / 8)
    assert witness.grid.cells == 8
    assert te.certify(witness, opinions=1).bound < 0.5


@pytest.mark.parametrize("lipschitz", ["one", True, float("nan"), -1.0, 1j, [1.0, 2.0]])
def test_a_constant_of_h_that_is_none_is_named(lipschitz):
    with pytest.raises(te.ThereExistsError, match="'lipschitz' must be"):
        D.Implicit(below, 0, 1, lipschitz=lipschitz)
