"""Derived bounds: the pieces of a spline keep theirs, and the second derivatives are the right ones."""

import dataclasses

import numpy as np
import pytest
from flint import arb

import thereexists as te
from thereexists import program as P
from thereexists.certificates.program_splines import KNOWN as PROVED
from thereexists.constructions.program import splines
from thereexists.constructions.program.splines import KNOWN, place

RANGES = {
    "log": (0.01, 5.0),
    "sqrt": (0.0, 3.0),
    "reciprocal": (-3.0, -0.05),
    "rsqrt": (0.05, 8.0),
    "log1p": (-0.9, 4.0),
    **{f"power{k}": (-1.0, 1.25) for k in range(3, splines.MOST_POWER + 1)},
}
FUNCTIONS = {known.name: function for function, known in KNOWN.items()}


def missed(function, low, high, knots, values):
    """Largest distance of function and spline, on a fine grid, in extended precision."""
    x = np.linspace(low, high, 200_001).astype(np.longdouble)
    exact = function(x)
    return float(np.abs(np.interp(x.astype(np.float64), knots, values) - exact).max())


@pytest.mark.sampled(9)
@pytest.mark.parametrize("epsilon", [1e-2, 1e-5])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_spline_keeps_its_derived_bound_and_comes_close_to_it(name, epsilon):
    low, high = RANGES.get(name, (-3.0, 4.0))
    knots, values, own = place(FUNCTIONS[name], low, high, epsilon)
    assert (knots[0], knots[-1]) == (low, high)
    assert own <= epsilon
    found = missed(FUNCTIONS[name], low, high, knots, values)
    assert found <= own + 2.0**-50 * np.abs(values).max()
    assert own < 2.5 * found  # knots are not wasted


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives_are_those_of_the_function(name):
    """A second difference of f is a mean of f'': it lies in the enclosure of f'' over the three points."""
    known = KNOWN[FUNCTIONS[name]]
    low, high = RANGES.get(name, (-3.0, 4.0))
    for x in np.linspace(low + 0.04, high - 0.04, 23).tolist():
        h = arb(2) ** -7
        centre = arb(x)
        difference = (known.f(centre - h) - 2 * known.f(centre) + known.f(centre + h)) / h**2
        assert known.second((centre - h).union(centre + h)).overlaps(difference), x
        wrong = 1.5 * known.second((centre - h / 64).union(centre + h / 64))
        close = (known.f(centre - h / 64) - 2 * known.f(centre) + known.f(centre + h / 64)) / (h / 64) ** 2
        assert abs(float(close.mid())) < 0.05 or not wrong.overlaps(close), x


def test_a_wrong_second_derivative_would_be_caught(monkeypatch):
    right = KNOWN[np.sin]
    monkeypatch.setitem(KNOWN, np.sin, dataclasses.replace(right, second=lambda x: -x.sin() / 2))
    knots, values, own = place(np.sin, -3.0, 4.0, 1e-3)
    assert missed(np.sin, -3.0, 4.0, knots, values) > own


def test_flat_parts_get_few_knots():
    """tanh on [−8, 8]: equal pieces would need 2.5 times as many."""
    knots, _, _ = place(np.tanh, -8.0, 8.0, 1e-4)
    equal, _, _ = splines.uniform(np.tanh, -8.0, 8.0, 1e-4, 0.77)
    assert len(knots) < 0.5 * len(equal)


def test_the_verifier_proves_every_function_that_the_compiler_knows():
    """Else a bound on |f''| that nobody stated would be listed as the author's; with knots by curvature it is false."""
    x = P.tokens(2)
    for function, known in KNOWN.items():
        certificate = te.build(P.apply(function, x / 2 + 0.25, epsilon=1e-2), dtypes=("float64",)).certificate
        assert not any("author" in text for text in certificate.assumptions), known.name
        assert certificate.splines[0]["function"] == known.name


@pytest.mark.parametrize("k", [3, 4, 5, 8])
def test_powers_have_pieces_around_0(k):
    """Of a ball with its centre at 0 python-flint's power is no number."""
    small = te.build(np.sin(P.tokens(2, low=-0.05, high=0.05)) ** k)
    x = np.random.default_rng(0).uniform(-0.05, 0.05, (200, 2, 1))
    assert np.abs(small(x) - np.sin(x) ** k).max() <= small.certificate.bound
    whole = splines.KNOWN[splines.POWERS[k]].f(arb(0, 0.5))
    assert whole.is_finite()
    assert whole.overlaps(arb(0.5) ** k)


@pytest.mark.parametrize(("name", "low", "high"), [("log", -1.0, 0.0), ("log", -1.0, -0.5), ("rsqrt", -1.0, 0.0)])
def test_no_spline_where_the_function_is_not_real(name, low, high):
    """The second derivative of the logarithm is finite there, and steps towards 0 have no end."""
    with pytest.raises(te.ThereExistsError, match=f"cannot bound {name} near -1 "):
        P.apply(FUNCTIONS[name], P.tokens(4, low=low, high=high))


@pytest.mark.parametrize(("name", "reach"), [("sigmoid", 3e4), ("tanh", 3e4), ("arctan", 3e4), ("tanh", 1e-5)])
def test_the_verifier_follows_smooth_functions_on_every_range(name, reach):
    """Balls that are wide, or have their centre at 0, are no reason to call a function not differentiable."""
    applied = P.apply(FUNCTIONS[name], P.tokens(1, low=-reach, high=reach), epsilon=1e-2)
    assert te.build(applied, dtypes=("float64",)).certificate.bound <= 1.001e-2


@pytest.mark.parametrize("name", PROVED)
def test_the_verifiers_balls_hold_values_and_derivatives(name):
    rng = np.random.default_rng(0)
    known, above = PROVED[name], name in RANGES
    for _ in range(64):
        width = 10 ** rng.uniform(-8, 2)
        centre = rng.uniform(0, 1) * 10 ** rng.uniform(-8, 2) + 1.01 * width if above else rng.normal() * 50
        wide = arb(centre, width)
        for f in (known.f, known.first, known.second):
            point = f(arb(centre + rng.uniform(-0.999, 0.999) * width))
            assert not f(wide).is_finite() or f(wide).overlaps(point)


@pytest.mark.parametrize("curvature", [0.0, 0.1, 50.0])
def test_a_known_function_takes_nobodys_word_on_its_curvature(curvature):
    x = P.tokens(1, low=0, high=3)
    for options in ({}, {"epsilon": 1e-3}, {"epsilon": 1e-5}):
        alone, told = (P.apply(np.sin, x, **options, **more) for more in ({}, {"curvature": curvature}))
        assert np.array_equal(told.settings["knots"], alone.settings["knots"])
    assert told.settings.keys() == alone.settings.keys()
