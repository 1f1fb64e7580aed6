"""What no machine is, or takes too long to become one, is refused in one sentence; odd names change no machine."""

import importlib
import json
import re
import tracemalloc

import numpy as np
import pytest
from typer.testing import CliRunner

import thereexists as te
from tests.hostile import forge_record
from thereexists import automata as A
from thereexists.automata import explore
from thereexists.automata.att import parse_att
from thereexists.certificates.automaton_maps import read_maps
from thereexists.cli import app
from thereexists.core.errors import ThereExistsError

REGEX = importlib.import_module("thereexists.automata.regex")


def refused(make, named):
    with pytest.raises(ThereExistsError, match=named) as found:
        make()
    message = str(found.value)
    assert "\n" not in message
    assert len(message) < 600
    message.encode()


# ---- regular expressions that take too long, or nest too deeply --------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "same"),
    [
        ("(?:){4294967294}(ab|ba)*", "(ab|ba)*"),
        ("(?:){0,4294967293}(ab|ba)*", "(ab|ba)*"),
        ("((?:)(()){1}){70000,}a", "a"),
    ],
)
def test_repetitions_of_nothing_are_nothing(pattern, same):
    assert A.regex(pattern, "ab") == A.regex(same, "ab")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "pattern",
    [
        "(?:" + "()" * 1000 + "a){60000}",
        "(?:" * 40 + "a" + ")+" * 40,
        "(?:(?:){2}|){4294967294}",
        "".join(f"(?i:[\\0-\\U0010{k:04x}])" for k in range(4096)),
    ],
)
def test_a_pattern_that_takes_too_long_is_refused(pattern, monkeypatch):
    monkeypatch.setattr(REGEX, "MOST_STEPS", 1 << 20, raising=False)
    refused(lambda: A.regex(pattern, "ab"), "written out")


def test_classes_are_asked_about_a_large_alphabet_for_a_while_only(monkeypatch):
    monkeypatch.setattr(REGEX, "MOST_STEPS", 1 << 16, raising=False)
    alphabet = [chr(0x4E00 + k) for k in range(2000)]
    refused(lambda: A.regex("".join(f"[^{a}]" for a in alphabet[:200]), alphabet), "reasonable time")


def test_a_large_class_counts_wherever_it_is_repeated(monkeypatch):
    """As a text it has a million characters, which is long if it is made 60,000 times."""
    monkeypatch.setattr(REGEX, "MOST_STEPS", 1 << 18, raising=False)
    large = "".join(map(chr, range(0x4E00, 0x8000)))
    refused(lambda: A.regex(f"[a{large}]{{60000}}", "a"), "reasonable time")
    assert A.regex(f"[a{large}]{{10}}", "a").size == 12


def test_a_folder_cannot_make_verify_wait(tmp_path):
    te.build(A.regex("(ab|ba)*", "ab"), n=4).save(tmp_path / "w")

    def claim(r):
        r["automaton"]["origin"]["pattern"] = "(?:){4294967294}(ab|ba)*"

    forge_record(tmp_path / "w", claim)
    assert te.verify(tmp_path / "w").holds  # it is the language of that pattern, and soon known to be


@pytest.mark.parametrize("depth", [110, 200, 2000, 100000])
@pytest.mark.parametrize(("opens", "closes"), [("(", ")*"), ("(?:", "){2,3}"), ("(?:bb|", ")"), ("(?i:", ")")])
def test_patterns_that_nest_too_deeply(depth, opens, closes):
    deep = opens * depth + "a" + closes * depth
    refused(lambda: A.regex(deep, "ab"), "may be nested at most|at most 262,144 characters|written out")


def test_patterns_that_nest_as_people_write_them():
    assert A.regex("(" * 30 + "a" + ")*" * 30, "ab") == A.regex("a*", "ab")


@pytest.mark.parametrize("pattern", ["(" * 200 + "a" + ")*" * 200, "a|\udcff"])
def test_on_the_command_line_it_is_one_sentence(pattern, tmp_path):
    done = CliRunner().invoke(app, ["build", f"regex:{pattern}", "--n", "4", "--out", str(tmp_path / "w")])
    assert isinstance(done.exception, ThereExistsError)  # which ``main`` prints, with exit code 2


# ---- texts that no file holds ------------------------------------------------------------------------------------


def test_halves_of_surrogate_pairs(tmp_path):
    refused(lambda: A.regex("a|\ud800", "ab"), "valid Unicode text")
    refused(lambda: A.regex("a", "a\ud800"), "valid Unicode text")
    named = A.dfa({"\ud800": {"a": "x\udfff"}, "x\udfff": {"a": "\ud800"}}, "\ud800", ["x\udfff"])
    assert all(name.isascii() for name in named.names)
    te.build(named, n=3).save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds

    def halves(r):
        r["automaton"]["names"][0] = "\ud800"

    def origin(r):
        r["automaton"]["origin"] = {"kind": "\ud800"}

    for change in (halves, origin):
        forge_record(tmp_path / "w", change)
        verdict = te.verify(tmp_path / "w")
        assert verdict.holds is False
        json.dumps(verdict.reasons, ensure_ascii=False).encode()


# ---- machines that are none --------------------------------------------------------------------------------------


def test_a_transducer_may_have_a_state_called_dead():
    """The state "(dead)" of the file is not the one of missing transitions."""
    odd, plain = (parse_att(f"0 {q} a x\n{q} {q} a y\n{q} 0 b z\n0\n{q}\n") for q in ("(dead)", "1"))
    assert odd == plain
    assert odd.transduce("aab") == ["x", "y", "z"]
    assert odd.transduce("bab") == ["", "", ""]  # no transition by b: nothing is written any more


def test_what_is_written_is_a_symbol_always():
    refused(lambda: A.mealy(lambda q, a: ((q + 1) % 2, None if q == 0 else "x"), [0, 1], "ab"), "writes.*None")
    refused(lambda: A.mealy(lambda q, a: ((q + 1) % 2, "x" if q == 0 else None), [0, 1], "ab"), "writes.*None")
    refused(lambda: A.mealy(lambda q, a: (q, None), [0], "ab"), "writes.*None")
    refused(lambda: A.mealy(lambda q, a: (q, 1.5), [0], "ab"), "writes")


class Silent:
    def __init__(self, k):
        self.k = k

    def __hash__(self):
        return hash(self.k)

    def __eq__(self, other):
        return self.k == other.k

    def __repr__(self):
        raise RuntimeError("says nothing")


@pytest.mark.parametrize(
    ("make", "how"),
    [
        (lambda: A.regex("(a|b)*a(a|b){9}", "ab"), "lower the bounds of its repetitions"),
        (lambda: A.regex(r"(a|b)*a(a|b){9}\b", "ab"), "lower the bounds of its repetitions"),
        (lambda: A.regex("(?m)(a|\n)*^a(a|\n){9}", "a\n"), "lower the bounds of its repetitions"),
        (lambda: A.nfa(tenth_from_the_end(), 0, [10]), "made deterministic"),
        (lambda: A.dfa({k: {"a": k + 1} for k in range(200)}, 0, [3]), "more than 100 states"),
    ],
)
def test_too_many_states_are_told_without_what_is_inside(make, how, monkeypatch):
    monkeypatch.setattr(explore, "MOST_STATES", 100)
    with pytest.raises(ThereExistsError, match=how) as found:
        make()
    assert "100 states" in str(found.value)
    assert not re.search(r"frozenset|_Look|\(\d|<", str(found.value)), found.value


def tenth_from_the_end():
    """Whether the tenth symbol from the end is an a: 1,024 sets of its states are met."""
    moves = {k: {"a": [k + 1], "b": [k + 1]} for k in range(1, 10)}
    return moves | {0: {"a": [0, 1], "b": [0]}}


def test_states_that_cannot_be_shown(monkeypatch):
    monkeypatch.setattr(explore, "MOST_STATES", 3000)
    refused(lambda: A.from_function(lambda q, a: (q, a), 0, "a"), "more than 3,000 states")
    refused(lambda: A.from_function(lambda q, a: Silent(q.k + 1), Silent(0), "a"), "more than 3,000 states")

    def deeper(q, a):
        depth, made = q[0], 0
        for _ in range(depth):
            made = (made, a)
        return (depth + 5000) % 10000, made

    refused(lambda: A.from_function(deeper, (0, 0), "a"), "nested too deeply|not deterministic|failed")
    found = A.from_function(lambda q, a: Silent((q.k + 1) % 3), Silent(0), "a", accept=[Silent(0)])
    assert found.accepts("aaa")
    assert found.names[0] == "<Silent>"


def array(q):
    return np.zeros(2)


def fails(q):
    raise KeyError("no")


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: A.dfa({0: {"a": 0}}, 0, None), "'accept' must be a list; got None"),
        (lambda: A.dfa({0: {"a": 0}}, 0, 0), "'accept' must be a list; got 0"),
        (lambda: A.dfa({0: {"a": 0}}, 0, [["a"]]), "hashable"),
        (lambda: A.dfa({0: {"a": 0}}, [0], [0]), "hashable"),
        (lambda: A.dfa({0: {"a": [0]}}, 0, [0]), "hashable"),
        (lambda: A.dfa([[0, 1], [0]], 0, [0], "ab"), "A DFA is"),
        (lambda: A.dfa([[0]], 0, [0], 5), "The alphabet must be a list"),
        (lambda: A.nfa({0: {"a": 1}}, 0, [1]), r"write \[1\]"),
        (lambda: A.nfa({"s": {"a": "done"}}, "s", ["s"]), r"write \['done'\]"),
        (lambda: A.nfa({0: {"a": [1]}}, [[0]], [1]), "hashable"),
        (lambda: A.nfa({0: {"a": [[1]]}}, 0, [0]), "hashable"),
        (lambda: A.nfa({0: {"a": [1]}}, 0, None), "'accept' must be a list"),
        (lambda: A.from_function(lambda q, a: q, 0, "a", accept=0), "'accept', where it is not a function, must be"),
        (lambda: A.from_function(lambda q, a: q, 0, "a", accept=[[0]]), "list of states"),
        (lambda: A.from_function(lambda q, a: q, 0, "a", accept=array), "neither true nor false"),
        (lambda: A.from_function(lambda q, a: q, 0, "a", accept=fails), "KeyError"),
        (lambda: A.from_function(lambda q, a: q, [0], "a"), "hashable"),
        (lambda: A.from_function(lambda q, a: q, 0, None), "The alphabet must be a list"),
        (lambda: A.mealy(7, [0], "a"), "'step' must be"),
        (lambda: A.mealy({}, 7, "a"), "'states' must be a list"),
        (lambda: A.regex("a", None), "The alphabet must be a list"),
        (lambda: A.regex("a", "a", flags="x"), "'flags' must be"),
        (lambda: A.regex("a" * (1 << 19)), "at most"),
    ],
)
def test_machines_that_are_none(make, named):
    refused(make, named)


def test_an_alphabet_may_be_an_iterator():
    assert A.dfa([[1, 0], [0, 1]], 0, [0], alphabet=iter("10")) == A.dfa([[1, 0], [0, 1]], 0, [0], alphabet="10")


def test_patterns_that_were_written_out_before_still_are():
    for pattern in (r"[^a]{2,3}", "(a|b){0,300}", "(?:a|ab){3,40}", r"\w{1,64}@\w{1,63}"):
        found = A.regex(pattern, "ab@")
        assert all(found.accepts(s) == bool(re.fullmatch(pattern, s)) for s in ("", "ab", "bb@", "ab@b", "a" * 41))


def test_rows_of_many_states_and_targets_take_no_table_of_both():
    """15,000 states and as many targets, one row: 1.8 GB, were there a number for every pair."""
    Q = 15_000
    machine = A.dfa([[(q + 1) % Q] for q in range(Q)], 0, [0], ["a"])
    maps = read_maps(machine, {"kind": "states", "targets": [[q, -1] for q in range(Q)], "labels": [[0, 0]]})
    tracemalloc.start()
    try:
        fetched, own, made = maps.products()
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()
    assert [*fetched, *own, *made] == [0, 0, 0]
