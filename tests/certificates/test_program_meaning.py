"""The verifier's own table: what an operation means is what numpy says, and forms keep their identities."""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

import thereexists as te
from tests.program.cases import PROGRAMS, inputs
from tests.program.drawn import random_program
from thereexists import program as P
from thereexists.certificates import program_meaning
from thereexists.certificates.program_bound import compare
from thereexists.certificates.program_certificate import certify_program
from thereexists.certificates.program_execute import Execution
from thereexists.certificates.program_forms import ZERO, Form, Terms, exact
from thereexists.certificates.program_meaning import MEANINGS, meaning_of, sorting_rounds
from thereexists.certificates.program_meant import Meant
from thereexists.certificates.program_splines import EVEN, KNOWN, Pieces, Spline, spline_error
from thereexists.certificates.program_values import values_of
from thereexists.constructions.program import splines
from thereexists.constructions.program.graph import nodes
from thereexists.constructions.program.primitives import PRIMITIVES
from thereexists.constructions.program.saving import from_record, to_record
from thereexists.core.errors import InvalidInput, NotProved


def forged_root(low, first):
    """The record of a root whose argument goes below 0, which no public call would write."""
    root = P.apply(np.sqrt, P.tokens(2, low=first, high=1.0), epsilon=0.05)
    return P.Value("apply", (P.tokens(2, low=low, high=1.0),), 2, 1, dict(root.settings))


@pytest.mark.parametrize(("low", "first"), [(-0.5, 0.0), (-0.001, 0.0), (-0.4, 0.1), (-(2.0**-45), 0.0)])
def test_numbers_below_0_have_no_root(low, first):
    with pytest.raises(InvalidInput, match="numbers below 0 have no root"):
        te.build(forged_root(low, first), dtypes=("float64",))


@pytest.mark.parametrize("square", [lambda x: x * x, lambda x: P.apply(np.square, x)])
def test_the_mean_of_squares_has_one(square):
    """Its splines go below 0; squares do not, but for the rounding of their ends, which is said."""
    x = P.tokens(3)
    certificate = te.build(P.apply(np.sqrt, P.mean(square(x - P.mean(x)))), dtypes=("float64",)).certificate
    assert certificate.bound < 0.05
    assert any("the root of a number from -1e-1" in text for text in certificate.assumptions)
    shorter = P.tokens(3, shorter=True)  # of one token the variance is 0, and its enclosure a number below that
    assert te.build(np.sqrt(np.var(shorter, axis=0)), dtypes=("float64",)).certificate.bound < 0.05
    plain = te.build(P.apply(np.sqrt, x), dtypes=("float64",)).certificate
    assert not any("root" in text for text in plain.assumptions)


@given(st.floats(-3, 3), st.floats(0, 3), st.sampled_from(EVEN))
def test_the_image_of_even_powers(low, width, name):
    knots = (-4.0, 4.0)
    pieces = Pieces.of(Spline(name, tuple(map(exact, knots)), (0, 0), (), None))
    least, most = pieces.image(low, low + width)
    values = np.linspace(low, low + width, 99) ** {"square": 2}.get(name, int(name[-1]) if name[-1].isdigit() else 0)
    assert max(least, 0.0) <= values.min()
    assert values.max() <= most <= values.max() * (1 + 2.0**-20) + 2.0**-20


@pytest.mark.parametrize("n", range(1, 11))
def test_the_rounds_sort(n):
    """The 0-1 principle: a comparator network that sorts all zeros and ones sorts everything."""
    X = np.array(list(itertools.product((0, 1), repeat=n)))
    for pairs in sorting_rounds(n):
        assert all(i < j for i, j in pairs)
        for i, j in pairs:
            X[:, [i, j]] = np.sort(X[:, [i, j]], axis=1)
    assert (np.diff(X, axis=1) >= 0).all()


KNOWN_PROGRAMS = [name for name, make in PROGRAMS.items() if all(node.operation in MEANINGS for node in nodes(make(5)))]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", KNOWN_PROGRAMS)
def test_meaning_against_the_interpreter(name):
    """Two definitions that share no line: the verifier's forms on numbers, and the program's own numpy."""
    program = PROGRAMS[name](5)
    meaning, meant = meaning_of(to_record(program))
    source = next(node for node in nodes(program) if node.operation == "tokens")
    X = inputs(source, 32, 0)
    found, noise = values_of(meaning, meant, X)
    wanted = P.interpret(program, X.astype(np.longdouble))
    assert np.abs(found - wanted).max() <= meant.gap.max() + noise + 2.0**-50 * np.abs(wanted).max()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=4),
       st.integers(-8, 8), st.integers(-8, 8))  # fmt: skip
def test_a_sum_of_units_is_what_its_form_says(units, a, b):
    """Σ c·ReLU(p·x + q·y + r) at a point of the box, by the form and by hand."""
    terms = Terms()
    x, y = (Form({terms.term(("token", i, 0), -1, 1, "token"): 1}) for i in range(2))
    point = {0: fmpq(a, 8), 1: fmpq(b, 8)}
    parts, wanted = [], fmpq(0)
    for c, p, q in units:
        inner = terms.combine([(p, x), (q, y)], exact(fmpq(c, 3)))
        parts.append((c, terms.relu(inner)))
        wanted += c * max(p * point[0] + q * point[1] + fmpq(c, 3), 0)
    form = terms.combine(parts)
    assert _at(terms, form, point) == wanted
    low, high = terms.range(form)
    assert low <= wanted <= high


def _at(terms, form, point):
    total = fmpq(form.constant)
    total += sum((c * point[t] for t, c in form.linear.items()), start=fmpq(0))
    for s, bend in form.bends.items():
        along = _at(terms, terms.as_form(s), point)
        total += sum((jump * max(along - t, 0) for t, jump in terms.jumps(bend)), start=fmpq(0))
    return total


@pytest.mark.parametrize("name", KNOWN)
def test_the_error_of_a_spline_is_proved_and_tight(name):
    low, high = 0.5, 2.0
    knots = np.linspace(low, high, 9)
    f = next(function for function, known in splines.KNOWN.items() if known.name == name)
    spline = Spline.of({"knots": knots.tolist(), "values": f(knots).tolist(), "function": name})
    error = spline_error(spline, 0.0, exact(low), exact(high))
    x = np.linspace(low, high, 4001)
    measured = np.abs(np.interp(x, knots, f(knots)) - f(x)).max()
    assert measured <= error.own <= 2.5 * measured
    slopes = np.abs(np.diff(f(x)) / np.diff(x)).max()
    assert slopes <= error.slope * (1 + 1e-9)


def test_a_spline_of_wrong_values_is_charged_for_them():
    knots = np.linspace(0.0, 1.0, 5)
    values = np.sin(knots)
    values[2] += 0.01
    spline = Spline.of({"knots": knots.tolist(), "values": values.tolist(), "function": "sin"})
    assert spline_error(spline, 0.0, 0, 1).own >= 0.01


def test_an_argument_that_leaves_the_knots_is_charged():
    knots = np.linspace(0.0, 1.0, 5)
    spline = Spline.of({"knots": knots.tolist(), "values": np.sin(knots).tolist(), "function": "sin"})
    error = spline_error(spline, 0.0, exact(-0.25), exact(1.0))
    assert error.outside >= 0.25
    assert error.slope >= 1.0


TINY = 1e-12  # far above what float64 weights cost in these programs, far below what a wrong one would


@pytest.mark.sampled(48)
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"width": 6, "heads": 2}], ids=str)
@pytest.mark.parametrize("name", KNOWN_PROGRAMS)
def test_the_weights_are_the_program(name, options):
    """Every program of the table, compiled in three ways, and for shorter sequences at every length."""
    program = PROGRAMS[name](5)
    try:
        compiled = P.compile(program, **options)
    except InvalidInput:
        if "causal" in options:
            pytest.skip("it looks ahead, and says so")
        raise
    assert compare(to_record(program), compiled.network).weights <= TINY


SHORTER = {
    "sort": lambda x: P.sort(x),
    "mean": lambda x: P.mean(x) - x,
    "sum": lambda x: P.sum(x),
    "rank": lambda x: P.rank(x, margin=0.25),
    "argsort": lambda x: P.argsort(x, margin=0.25),
    "soft_largest": lambda x: P.soft_largest(x, sharpness=8.0),
    "min": lambda x: P.min(x),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SHORTER)
def test_shorter_sequences(name):
    program = SHORTER[name](P.tokens(6, shorter=True))
    record = to_record(program)
    assert compare(record, P.compile(program).network).weights <= TINY
    for length in (1, 4, 6):
        meaning, meant = meaning_of(record, length)
        X = np.random.default_rng(0).random((16, length, 1))
        found, noise = values_of(meaning, meant, X)
        wanted = P.interpret(program, X.astype(np.longdouble))
        assert np.abs(found - wanted).max() <= meant.gap.max() + noise + 2.0**-50 * np.abs(wanted).max()


def test_a_flag_that_is_not_asked_is_noticed():
    """A sort that does not know its padding is right for full sequences only."""
    whole, shorter = P.tokens(4), P.tokens(4, shorter=True)
    network = P.compile(P.sort(shorter)).network
    compare(to_record(P.sort(shorter)), network)
    with torch.no_grad():
        network.W_in[:, 1] = 0.0  # pyright: ignore[reportOptionalSubscript]
    with pytest.raises(NotProved, match="sequences of"):
        compare(to_record(P.sort(shorter)), network)
    assert whole.settings["shorter"] is False


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_are_followed(seed):
    program = random_program(seed)
    found = compare(to_record(program), P.compile(program).network)
    assert found.weights <= TINY


def test_a_program_comes_back_from_its_record():
    program = PROGRAMS["mixed"](5)
    record = to_record(program)
    again = from_record(record)
    assert to_record(again) == record
    X = np.random.default_rng(0).random((3, 5, 2))
    assert np.array_equal(P.interpret(again, X), P.interpret(program, X))


def test_errors_of_rows_are_carried_by_the_slope_bound():
    """x' = max(x, p) of two rows that are off by 1e-6 and 1e-3: off by 1e-3, and not by their sum."""
    terms = Terms()
    forms = [Form({terms.term(("token", 0, f), 0, 1, "token"): 1}) for f in range(2)]
    state = Execution(terms, 1, [[forms[0]], [forms[1]]], np.array([[1e-6, 1e-3]]), {})
    W_1, b_1 = np.array([[-1.0, 1.0]]), np.zeros(1)
    state.feed_forward(W_1, b_1, np.array([[1.0], [0.0]]), np.zeros(2), "test")
    assert 1e-3 <= state.error[0, 0] <= 1e-3 * (1 + 1e-6)


def test_every_operation_of_the_compiler_has_a_meaning_or_is_refused():
    unknown = set(PRIMITIVES) - set(MEANINGS)
    for operation in unknown:
        node = {"operation": operation, "arguments": [], "d": 1, "settings": {}}
        with pytest.raises(InvalidInput, match="not an operation"):
            meaning_of({"n": 2, "nodes": [node]})


def test_where_beyond_both_ends():
    """A forged span [0.25, 0.75] of numbers in [0, 1]: at x = (1, 0) a unit does not close *and* the end is missed."""
    x = P.tokens(2)
    honest = P.where(np.array([[1.0], [0.0]]), x, P.flip(x))
    program = dataclasses.replace(honest, settings={"bottom": 0.25, "height": 0.5})
    compiled = P.compile(program)
    certificate = certify_program(to_record(program), compiled.network, dtypes=("float64",))
    X = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 5)] * 2), axis=-1).reshape(-1, 2, 1)
    off = np.abs(compiled(X) - P.interpret(program, X)).max()
    assert off > 0.4
    assert off <= certificate.bound


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bound_that_is_no_number_is_not_dropped(bad, monkeypatch):
    """Python's max(0.0, nan) is 0.0."""
    from thereexists.certificates import program_bound

    program = P.clip(P.tokens(2), 0.25, 0.75)
    compiled, execute = P.compile(program), program_bound.execute

    def broken(*arguments):
        outputs, error, strange = execute(*arguments)
        return outputs, np.full_like(error, bad), strange

    monkeypatch.setattr(program_bound, "execute", broken)
    with pytest.raises(NotProved):
        compare(to_record(program), compiled.network)


@pytest.mark.parametrize("operation", ["linear", "mix"])
def test_a_long_sum_of_gaps_is_rounded_up_by_its_length(operation, monkeypatch):
    """Planted: 1 and 2^15 times 2^-53, which float64 takes for 1; the gap is to be 1 + 2^-38 or more."""
    monkeypatch.setattr(program_meaning, "profile_of", lambda *_: None)  # another bound, which takes its time
    monkeypatch.setattr(program_meaning, "sum_of", lambda _: None)
    k, entry, meaning = 1 << 15, program_meaning.MEANINGS[operation], program_meaning.Meaning(1, 1)
    weights = [1.0, *[2.0**-53] * k]
    if operation == "linear":
        found = entry(meaning, {"coefficients": weights}, *[Meant([[ZERO]], np.ones((1, 1)))] * (k + 1))
    else:
        found = entry(meaning, {"matrix": [weights]}, Meant([[ZERO]] * (k + 1), np.ones((k + 1, 1))))
    assert 0 <= Fraction(float(found.gap[0, 0])) - (1 + Fraction(k, 2**53)) < Fraction(1, 2**30)
