"""The sets of numbers that the verifier follows hold what the program gives, at every operation and every string."""

from itertools import product

import numpy as np
import pytest

import thereexists as te
from tests.constructions.symbols.cases import EXACT, SOFT
from thereexists import program as P
from thereexists.certificates import symbol_values
from thereexists.certificates.program_numbers import exact
from thereexists.certificates.symbol_values import Held, added, apart, common, every_value, modulo
from thereexists.constructions.program.compiler import interpret
from thereexists.constructions.program.graph import nodes
from thereexists.constructions.program.saving import to_record

CASES = EXACT | SOFT


def outside(name):
    """Operations with a value, at some string, that the verifier's sets do not hold."""
    case = CASES[name]
    program = case.written().number
    found = every_value(to_record(program), len(case.alphabet))
    number = {a: float(k) for k, a in enumerate(case.alphabet)}
    wrong = []
    for length in range(1 if case.shorter else case.n, case.n + 1):
        X = np.array([[number[a] for a in s] for s in case.strings() if len(s) == length])[..., None]
        for node, features in zip(nodes(program), found, strict=True):
            if all(part.operation != "tokens" for part in nodes(node)):
                continue  # of constants alone
            Y = interpret(node, X)
            wrong += [node.operation for f, held in enumerate(features) if not holds(held, Y[..., f])]
    return wrong


def holds(held, Y):
    """(strings, length): each within ``off`` of one of the values, and a little for the interpreter's rounding."""
    at = np.zeros(Y.shape[1]) if held.at is None else np.array([float(x) for x in held.at])[: Y.shape[1]]
    values = np.array([float(x) for x in held.values])
    away = np.abs((Y - at)[..., None] - values).min(axis=-1)
    return bool((away <= float(held.off) + 2.0**-40 * max(1.0, np.abs(Y).max())).all())


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", CASES)
def test_every_operation_is_held(name):
    assert outside(name) == []


@pytest.mark.parametrize("rule", ["relu", "interp", "linear", "where", "sum", "maximum"])
def test_a_planted_rule_that_forgets_a_value_is_noticed(rule, monkeypatch):
    honest = symbol_values.RULES[rule]

    def forgetful(*arguments):
        return [Held(held.values[:-1] or (99,), held.at, held.off) for held in honest(*arguments)]

    monkeypatch.setitem(symbol_values.RULES, rule, forgetful)
    names = {"sum": "how many a, any length", "maximum": "is there a c", "linear": "weights of symbols"}
    assert outside(names.get(rule, "induction")) != []


def test_the_lead_is_that_of_the_logits():
    """All logits of all strings written out, for heads drawn at random: none is closer to the largest than the lead."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, U = int(rng.integers(1, 5)), float(rng.choice([3.0, 4.0, 4.5]))
        queries, keys = (sorted({float(x) for x in rng.integers(-2, 3, 3)}) for _ in range(2))
        places = rng.integers(0, 12, n) / 2
        key = Held(tuple(exact(U * k) for k in keys))
        position = Held((0,), tuple(exact(p) for p in places)) if n > 1 else Held((exact(places[0]),))
        q = [Held(tuple(exact(x) for x in queries)), Held((1,))]
        lead = float(symbol_values._lead(n, q, [key, position]))
        for query in queries:
            for drawn in np.stack(np.meshgrid(*[keys] * n), axis=-1).reshape(-1, n):
                logits = np.sort(query * U * drawn + places)
                assert n == 1 or lead <= np.diff(logits).min()


def test_what_is_taken_from_itself_is_nothing():
    """A flag that is always 1, as the compiler knows: a look-up of it has a narrower range than of 0 and 1."""
    s = P.symbols("abc", 3)
    alike = P.as_symbols(P.same(s, s), ["no", "yes"])
    witness = te.build(P.previous(alike, default="?"))
    assert witness(["abc", "aab"]) == [["?", "yes", "yes"]] * 2
    two = P.symbols("ab", 2)  # equal sets, and other numbers: they do not cancel
    apart = every_value(to_record(two.number - two.roll(1).number), 2)[-1][0].flat
    assert set(apart.values) == {-1, 0, 1}


def test_what_no_position_can_hold_is_no_obstacle():
    """At two positions a string that is delayed twice is its fill; the verifier holds every symbol for possible."""
    s = P.symbols("ab", n=2).delay(1, fill="b")
    witness = te.build(P.find(s, s.delay(1, fill="b"), s, default="b"))
    assert witness(["aa", "ab", "bb"]) == ["ab", "ab", "bb"]


def test_a_choice_beyond_its_range_is_held():
    """``where`` made for 1 alone and given 0: what the formula gives is held, and no more than the range is missed."""
    s = P.symbols("ab", n=2)
    record = to_record(P.delay(P.delay(s.number, 1, 1.0), 1, 1.0))
    of = next(node for node in reversed(record["nodes"]) if node["operation"] == "where")
    l, R = exact(of["settings"]["bottom"]), exact(of["settings"]["height"])
    for g, a, b in product((0, 1), (-1, 0, 1, 2), (-1, 0, 1, 2)):
        given = [[Held((x,))] for x in (g, a, b)]
        held = symbol_values.RULES["where"](symbol_values.Strings(2, 2, False), of["settings"], *given)[0].flat
        formula = l + max(a - l - R * (1 - g), 0) + max(b - l - R * g, 0)
        assert held.ends[0] <= formula <= held.ends[1]
        chosen, other = (a, b) if g else (b, a)
        assert held.off <= max(1 - chosen, 0) + max(other - 1, 0)


def test_arithmetic():
    half, third = exact(0.5), symbol_values.ratio(1, 3)
    assert common((6, 10, 0)) == 2
    assert common((half, third)) == symbol_values.ratio(1, 6)
    assert common(()) == 0
    assert apart((1, 4, 10)) == 3
    assert modulo(-1, 3) == 2
    assert modulo(exact(2.5), 2) == half
    assert added(Held((0, 1)), Held((0, 10))).values == (0, 1, 10, 11)


def test_large_sums_are_evenly_spaced_numbers():
    wide = Held(tuple(range(0, 2000, 2)))
    assert added(wide, wide).values == tuple(range(0, 3997, 2))
    with pytest.raises(te.ThereExistsError, match="more than 4,096 values"):
        added(added(wide, wide), added(added(wide, wide), wide))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("program", "said"),
    [
        (lambda s: P.as_symbols(P.prefix_mean(s.number), "abc"), "'prefix_mean'"),
        (lambda s: P.as_symbols(P.multiply(s.number, s.number), "abcd"), "'multiply'"),
        (lambda s: P.as_symbols(P.where(s.number / 2, 1.0, 0.0), "ab"), "its flag is not 0 or 1"),
        (lambda s: P.as_symbols(P.rank(s.number, margin=2.0), "abc"), "closer than its margin"),
        (lambda s: P.as_symbols(P.mean(s.number), "abc"), "may be 0.333333"),
        (lambda s: P.Symbols(("a", "b", "c"), P.attend(s.number, s.number, s.number)), "only known up to"),
        (
            lambda s: P.Symbols(("a", "b"), P.interp(P.attend(s.number, s.number, s.number), [0.25, 0.75], [0.0, 1.0])),
            "only known up to",
        ),
    ],
)
def test_what_no_rule_covers_is_not_proved(program, said):
    with pytest.raises(te.ThereExistsError) as refused:
        te.build(program(P.symbols("abc", n=3)))
    assert said in str(refused.value)
