"""A value over a number is the quotient, in exact rationals: not the value times the float64 nearest to 1/number."""

from fractions import Fraction

import numpy as np
import pytest

import thereexists as te
from tests.hostile import forge_record
from thereexists import program as P
from thereexists.constructions.program.graph import Value, linear
from thereexists.constructions.program.saving import from_record, to_record


def within(witness, X, exact):
    """Whether the network keeps its float64 bound at every token, against rationals."""
    bound = Fraction(witness.certificate.bounds["float64"]["bound"])
    got, x = witness(X).ravel().tolist(), X.ravel().tolist()
    return all(abs(Fraction(y) - exact(Fraction(t))) <= bound for y, t in zip(got, x, strict=True))


def test_thirds_add_up():
    """Times 2^54, what a rounded 1/3 loses is 1."""
    x, X = P.tokens(3), np.array([[[1.0], [0.5], [0.75]]])
    for nothing in (x / 3 * 3 - x, x / 3 + x / 3 + x / 3 - x, (x / 7 - x / 14 - x / 14), x / -3 * -3 - x):
        witness = te.build(nothing * 2.0**54)
        assert (witness(X) == 0).all()
        assert witness.certificate.bound == 0


@pytest.mark.parametrize("number", [3.0, -3.0, 0.1, 7.5, 1e-3, 2.0**-900 * 3, 1e30])
def test_quotients_keep_their_bound(number):
    scale = max(1.0, abs(number)) if abs(number) > 2.0**-800 else number
    witness = te.build(P.relu(P.tokens(8) * scale / number), dtypes=("float64",))
    X = np.random.default_rng(0).random((64, 8, 1))
    assert within(witness, X, lambda t: max(Fraction(0), t * Fraction(scale) / Fraction(number)))


def test_ramps_are_as_steep_as_their_margin_says():
    """Found by a search: a slope of 1/margin in float64 was off by more than the bound."""
    for point, at in ((1.96875, 1.6354166666666667), (1.5, 1.2), (1.25, 1.4833333)):
        witness = te.build(P.equal(P.tokens(1, low=1.0, high=2.0), point, margin=1 / 3))
        X = np.append(np.linspace(1, 2, 501), at).reshape(-1, 1, 1)
        ramp = lambda t, point=point: max(Fraction(0), 1 - abs(t - Fraction(point)) / Fraction(1 / 3))  # noqa: E731
        assert within(witness, X, ramp)


def test_a_power_of_two_needs_no_divisor_and_other_numbers_keep_theirs(tmp_path):
    x = P.tokens(2)
    assert (x / 4).settings == {"coefficients": (0.25,)}
    assert (x / 3).settings == {"coefficients": (1.0,), "divisor": 3.0}
    again = from_record(to_record(x / 3))
    assert again.settings == (x / 3).settings
    te.build(x / 3 + 0.5).save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds


@pytest.mark.parametrize("divisor", [3.25, -3.0, 0, float("inf"), "3", True, 1e-300])
def test_a_forged_divisor_is_caught(tmp_path, divisor):
    te.build(P.tokens(2) / 3 + 0.5).save(tmp_path / "w")

    def change(record):
        node = next(node for node in record["program"]["nodes"] if "divisor" in node["settings"])
        node["settings"]["divisor"] = divisor

    forge_record(tmp_path / "w", change)
    assert te.verify(tmp_path / "w").holds is False


def test_an_error_below_all_float64_is_carried(tmp_path):
    """Forged: a spline that is far off, times 2^-1174 and then 2^345: the first factor is 0 in float64."""
    x = Value("tokens", (), 2, 1, {"low": 0.0, "high": 2.0**415, "shorter": False})
    te.build(linear("*", (2.0**-414,), (x,), x), dtypes=("float64",)).save(tmp_path / "w")

    def change(record):
        first = record["program"]["nodes"][0]
        nodes = [first]
        for operation, settings in (
            ("apply", {"function": "square", "knots": [0.0, 2.0**415], "values": [0.0, 2.0**830]}),
            ("linear", {"coefficients": [5e-324], "divisor": 2.0**100}),
            ("linear", {"coefficients": [2.0**345]}),
        ):
            nodes.append({"operation": operation, "arguments": [len(nodes) - 1], "d": 1, "settings": settings})
        record["program"]["nodes"], record["places"] = nodes, []

    forge_record(tmp_path / "w", change)
    witness = te.load(tmp_path / "w")
    bound = te.certify(witness).bound  # the network gives x·2^-414, the program x²·2^-829: 1 and 1/2 at 2^414
    assert bound >= abs(witness(np.full((1, 2, 1), 2.0**414)).max() - 0.5)


def test_a_page_says_what_it_is_divided_by():
    from thereexists.reports.witness.program import written_out

    assert written_out(to_record(P.tokens(2) / 3)) == "x/3"
