"""Sums of any length: the range of a number holds it, the work is counted before it is done, numbers are of a size."""

import dataclasses
import time
from fractions import Fraction

import numpy as np
import pytest

import thereexists as te
from thereexists.core.errors import CannotBuild, NotProved

pytest.importorskip("transformers")
from tests.certificates.llama.reals.real_programs import Nodes, checkpoint_of
from thereexists.certificates.llama.reals import network
from thereexists.certificates.llama.reals.claim import RealClaim, checked, real_claim
from thereexists.certificates.llama.reals.operations import network_of
from thereexists.certificates.llama.reals.proof import prove_reals
from thereexists.certificates.llama.reals.verify import real_proofs
from thereexists.certificates.program_numpy import run_reals

SMALL, MANY = 2.0**-53, 1022  # half a unit in the last place of 1: in float64, 1 + SMALL is 1, and so it is MANY times
EXACT = MANY * SMALL  # 1 + SMALL + … + SMALL − 1


def started(n=2):
    nodes = Nodes()
    return nodes, nodes.put("tokens", [], d=1, low=0.0, high=1.0, shorter=False)


def by_linear():
    """At the last token MANY + 2 equal arguments."""
    nodes, x = started()
    t = nodes.put("constant", [], array=[[0.0], [1.0]])
    return nodes, x, nodes.put("linear", [t] * (MANY + 2), coefficients=[1.0, *[SMALL] * MANY, -1.0])


def by_mix():
    nodes, x = started()
    t = nodes.put("constant", [], MANY + 2, array=[[0.0] * (MANY + 2), [1.0] * (MANY + 2)])
    return nodes, x, nodes.put("mix", [t], matrix=[[1.0, *[SMALL] * MANY, -1.0]])


def by_means():
    nodes, x = started()
    t = nodes.put("constant", [], array=[[1.0], *[[SMALL]] * MANY, [-1.0]])
    mean = nodes.put("prefix_mean", [t])
    return nodes, x, nodes.put("scale", [mean], factors=[[0.0]] * (MANY + 1) + [[MANY + 2.0]])


WAYS = {"linear": (by_linear, 2), "mix": (by_mix, 2), "means": (by_means, MANY + 2)}


@pytest.mark.parametrize("way", WAYS)
def test_a_range_holds_a_sum_that_float64_loses(way):
    build, n = WAYS[way]
    nodes, _, _ = build()
    (found,) = network_of({"n": n, "nodes": nodes}).outputs
    assert found.low[-1] <= EXACT <= found.high[-1]
    assert found.high[-1] - found.low[-1] < 2.0**-38  # and is hardly more


@pytest.mark.parametrize("way", WAYS)
def test_a_flat_spline_behind_a_long_sum_proves_nothing(way):
    """Planted: the argument of a sigmoid is 127, and float64 takes it for −384, where a line of 0 is right."""
    build, n = WAYS[way]
    nodes, x, y = build()
    one = nodes.put("constant", [], array=[[1.0]] * n)
    shifted = nodes.put("linear", [y, one], coefficients=[511 / EXACT, -384.0])
    flat = nodes.put("apply", [shifted], function="sigmoid", knots=[-2000.0, -100.0], values=[0.0, 0.0])
    nodes.put("linear", [x, flat], coefficients=[1.0, 1.0])
    claim = RealClaim(checked({"n": n, "nodes": list(nodes)}))
    assert prove_reals(checkpoint_of(claim), "float32").bound > 0.999


@pytest.mark.parametrize("way", WAYS)
def test_a_trial_adds_up_in_another_way(way):
    """What is compared with a model's answers must not lose what the proof lost."""
    build, n = WAYS[way]
    nodes, _, _ = build()
    found = run_reals({"n": n, "nodes": list(nodes)}, np.zeros((2, n, 1)))
    assert (found[:, -1] == EXACT).all()


def test_ranges_hold_long_sums_of_random_numbers():
    """Ends are added up exactly here: 300 numbers of all sizes, that cancel."""
    rng, k = np.random.default_rng(0), 300
    for _ in range(20):
        nodes, _ = started()
        values, c = rng.normal(size=k) * 2.0 ** rng.integers(-30, 30, k), rng.normal(size=k)
        total = Fraction(0)
        for v, a in zip(values[:-1], c[:-1], strict=True):
            total += Fraction(v) * Fraction(a)
        values[-1], c[-1] = float(total), -1.0
        total -= Fraction(values[-1])
        t = nodes.put("constant", [], k, array=[[0.0] * k, values.tolist()])
        nodes.put("mix", [t], matrix=[c.tolist()])
        (found,) = network_of({"n": 2, "nodes": nodes}).outputs
        assert Fraction(found.low[-1]) <= total <= Fraction(found.high[-1])


def test_a_wide_flag_counts_in_the_range_of_where():
    """The formula of `where` at a flag of 3^20: rounded are numbers of that size, times the height."""
    nodes, _ = started()
    g = nodes.put("constant", [], array=[[0.5], [3.0**20]])
    v = nodes.put("constant", [], array=[[0.1], [0.3]])
    nodes.put("where", [g, v, v], bottom=0.1, height=0.7)
    (found,) = network_of({"n": 2, "nodes": nodes}).outputs
    v, l, R, g = (Fraction(part) for part in (0.3, 0.1, 0.7, 3.0**20))
    wanted = l + max(v - l - R * (1 - g), 0) + max(v - l - R * g, 0)
    assert Fraction(found.low[1]) <= wanted <= Fraction(found.high[1])
    assert found.high[1] - float(wanted) > 2.0**-48 * 3.0**20  # not by luck


def test_an_end_less_what_a_choice_misses_is_rounded_outward():
    """The bottom cuts off 2^-54; an end of 3.3 less that is 3.3 in float64."""
    nodes, _ = started()
    g = nodes.put("constant", [], array=[[1.0], [1.0]])
    v = nodes.put("constant", [], array=[[0.25], [3.3]])
    nodes.put("where", [g, v, v], bottom=0.25 + 2.0**-54, height=4.0)
    (found,) = network_of({"n": 2, "nodes": nodes}).outputs
    assert Fraction(found.low[1]) <= Fraction(3.3) - Fraction(2.0**-54)
    assert Fraction(found.high[1]) >= Fraction(3.3) + Fraction(2.0**-54)


# --- work -----------------------------------------------------------------------------------------------------------


def many_times(arguments):
    """One value of 500 coefficients, added up so many times."""
    nodes, D = Nodes(), 500
    x = nodes.put("tokens", [], D, d=D, low=0.0, high=1.0, shorter=False)
    y = nodes.put("mix", [x], matrix=[(np.arange(1.0, D + 1) * 7919 % 1000003 / 1000003).tolist()])
    nodes.put("linear", [y] * arguments, coefficients=[1.0] * arguments)
    return {"n": 1, "nodes": list(nodes)}


def many_hinges(knots):
    """The same, and a spline of so many knots: each of its hinges has 500 coefficients."""
    nodes = Nodes(many_times(1)["nodes"])
    nodes.put("interp", [2], knots=np.linspace(0.0, 1.0, knots).tolist(), values=[k % 2 for k in range(knots)])
    return {"n": 1, "nodes": list(nodes)}


def many_flat_splines(knots):
    nodes, D = Nodes(), 500
    x = nodes.put("tokens", [], D, d=D, low=0.0, high=1.0, shorter=False)
    nodes.put("interp", [x], D, knots=np.linspace(0.0, 1.0, knots).tolist(), values=[0.5] * knots)
    return {"n": 1, "nodes": list(nodes)}


@pytest.mark.parametrize("asked", [many_times(20_000), many_hinges(4_000), many_flat_splines(400)])
def test_work_is_counted_before_it_is_done(asked, monkeypatch):
    """With the limit that there is, a megabyte took minutes; here it is lower, as the files are."""
    monkeypatch.setattr(network, "MOST_NUMBERS", 1 << 16)
    before = time.process_time()
    with pytest.raises(CannotBuild, match="coefficients"):
        real_claim(asked)
    assert time.process_time() - before < 1


def test_what_cannot_be_wired_is_found_once(monkeypatch):
    """And not once for every dtype."""
    import thereexists.certificates.llama.reals.claim as module

    honest = real_claim(many_times(2))
    checkpoint, calls = checkpoint_of(honest), []
    claim = RealClaim(honest.program)

    def refused(program):
        calls.append(program)
        raise NotProved("too much.")

    monkeypatch.setattr(module, "network_of", refused)
    found, reasons = real_proofs(dataclasses.replace(checkpoint, claim=claim))
    assert not found
    assert set(reasons.values()) == {"too much."}
    assert len(calls) == 1


# --- numbers that float64 does not hold -----------------------------------------------------------------------------


def _of(*added):
    nodes, x = started()
    for operation, arguments, settings in added:
        nodes.put(operation, arguments, **settings)
    nodes.put("linear", [x, len(nodes) - 1], coefficients=[1.0, 1.0])
    return {"n": 2, "nodes": list(nodes)}


def _linear(arguments, *coefficients):
    return "linear", arguments, {"coefficients": list(coefficients)}


LARGE = "constant", [], {"array": [[2.0**39]] * 2}
TOO_LARGE = {
    "a product of constants": _of(LARGE, _linear([1], 1e300)),
    "a coefficient": _of(_linear([0], 1e300)),
    "parts of a sum": _of(_linear([0], 2.0), _linear([0, 1], 1e300, -5e299)),
    "a slope": _of(("interp", [0], {"knots": [0.0, 1e-300], "values": [0.0, 2.0**39]})),
    "a function": _of(("apply", [0], {"function": "exp", "knots": [0.0, 5e-324], "values": [-1e300, 1e300]})),
    "a table": _of(("scale", [0], {"factors": [[1e300], [5e-324]]})),
    "the height of where": _of(LARGE, ("where", [1, 0, 0], {"bottom": 0.0, "height": 1e300})),
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_numbers_too_large_for_float64_are_refused_in_a_sentence(what):
    """And without a warning: warnings are errors here."""
    with pytest.raises(te.ThereExistsError, match="has no stock Llama checkpoint") as refused:
        real_claim(TOO_LARGE[what])
    assert "\n" not in str(refused.value)
