"""Every front end against what it stands for: Python's own ``re``, a simulation of the NFA, a step function, a file."""

import itertools
import random
import re

import numpy as np
import pytest

from thereexists import automata as A
from thereexists.automata.att import parse_att
from thereexists.automata.minimise import hopcroft, minimal
from thereexists.core.errors import ThereExistsError

PATTERNS = [
    ("(ab|ba)*", "ab"), (r"^a$\n?", "ab\n"), (r"a$b?", "ab\n"), (r"(a|$|\n)*", "a\n"), (r"(?m)(^a$|\n)*", "a\n"),
    (r"\bab?\b.?|\B", "ab "), (r"[^a]{2,3}", "abc\n"), (r"(?s:.)a.", "ab\n"), (r"(?i)a(?-i:b)C", "aAbBcC"),
    (r"a{0}b?", "ab"), (r"(a?)*?b+", "ab"), (r"\d\w\s", "1a_ "), ("a||b", "ab"), ("", "ab"),
    ("(?:a|ab)(?:c|bcd)", "abcd"), ("(^a)*b", "ab"), (r"(a$|b)*\Z", "ab\n"), (r"a\B\Bb|\b", "ab"),
    (r"[a-b]\Z", "abc\n"), (r"($|^|a)*\n", "a\n"), (r"(?x) a # one" + "\n b", "ab"), (r"(?a:\w)\w", "aé1"),
    (r"(?P<x>a|b)(?m:^|c)$", "abc\n"),
]  # fmt: skip


def strings(alphabet, most):
    return ["".join(s) for length in range(most + 1) for s in itertools.product(alphabet, repeat=length)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("pattern", "alphabet"), PATTERNS)
def test_a_regular_expression_is_pythons_on_all_short_strings(pattern, alphabet):
    found = A.regex(pattern, alphabet)
    every = strings(alphabet, 6 if len(alphabet) < 4 else 4)
    assert [found.accepts(s) for s in every] == [bool(re.fullmatch(pattern, s)) for s in every]
    assert found.size <= found.before


def drawn(rng, depth):
    """A random pattern over a, b and newline."""
    if depth == 0:
        return rng.choice(["a", "b", ".", "[^a]", r"\n", "^", "$", r"\b", r"\B", r"\Z", "[ab]", r"\w"])
    one, two = drawn(rng, depth - 1), drawn(rng, depth - 1)
    return rng.choice(
        [f"(?:{one}|{two})", one + two, f"(?:{one})*", f"(?:{one}){{1,2}}", f"({one})?{two}", f"(?m:{one})"]
    )


def test_random_patterns_are_pythons():
    rng = random.Random(7)
    every = strings("ab\n", 4)
    for _ in range(120):
        pattern = drawn(rng, 3)
        wanted = [bool(re.fullmatch(pattern, s)) for s in every]
        if not any(wanted):
            continue  # perhaps empty, which is refused
        found = A.regex(pattern, "ab\n")
        assert [found.accepts(s) for s in every] == wanted, pattern


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        (r"(a)\1", "a back-reference"), ("a(?=b)", "a look-around"), ("(?<!a)b", "a look-around"),
        ("(?>a)", "an atomic group"), ("a++", "a possessive repetition"), ("(a)?(?(1)b|c)", "a condition on a group"),
        ("(a", "unterminated"), ("a{1,70000}", "lower their"), ("c", "language is empty"), (r"(?L:a)", "not a regular"),
    ],
)  # fmt: skip
def test_what_is_not_regular_is_refused_by_name(pattern, named):
    with pytest.raises(ThereExistsError, match=named):
        A.regex(pattern, "ab")


def test_an_alphabet_of_a_regular_expression_is_of_characters():
    for wrong in (["ab"], [1], "aa", ""):
        with pytest.raises(ThereExistsError, match=r"character|once|one at least"):
            A.regex("a", wrong)
    assert A.regex(r"\d+").accepts("2024")
    assert len(A.regex(r"\d+").alphabet) == 95


def coarsest(table, block):
    """Moore's refinement, round by round: slow and plain."""
    while True:
        rows = np.column_stack([block, block[table]])
        _, finer = np.unique(rows, axis=0, return_inverse=True)
        finer = finer.reshape(-1)
        if finer.max() == block.max():
            return finer
        block = finer


def test_hopcroft_gives_the_coarsest_partition():
    rng = np.random.default_rng(3)
    for _ in range(60):
        Q, S = rng.integers(1, 30), rng.integers(1, 4)
        table, block = rng.integers(0, Q, (Q, S)), rng.integers(0, 2, Q)
        block = np.unique(block, return_inverse=True)[1]
        found, wanted = hopcroft(table, block), coarsest(table, block)
        assert len(set(zip(found.tolist(), wanted.tolist(), strict=True))) == found.max() + 1 == wanted.max() + 1


def test_equal_languages_have_equal_minimal_automata():
    assert A.regex("(ab|ba)*", "ab") == A.regex("((ab)*(ba)*)*", "ab")
    assert A.regex("(ab|ba)*", "ab") != A.regex("(ab)*", "ab")
    big = A.regex("a{3,5}b|a{3,5}c", "abc")
    assert minimal(big).size == big.size < big.before


def test_dfa_of_a_dict_and_of_an_array():
    even = A.dfa({"even": {"1": "odd", "0": "even"}, "odd": {"1": "even", "0": "odd"}}, "even", ["even"])
    assert even.size == 2
    assert even.accepts("0110")
    assert not even.accepts("010")
    assert even == A.dfa([[1, 0], [0, 1]], 0, [0], alphabet="10")
    partial = A.dfa({0: {"a": 1}, 1: {"b": 0}}, 0, [0])
    assert partial.dead is not None
    assert partial == A.regex("(ab)*", "ab")
    for wrong in (
        lambda: A.dfa({0: {"a": 1}}, 5, [0]),
        lambda: A.dfa({0: {"a": 1}}, 0, [7]),
        lambda: A.dfa([[0, 3]], 0, [0], "ab"),
        lambda: A.dfa([[0, 0]], 0, [0]),
        lambda: A.dfa({}, 0, [0]),
        lambda: A.dfa({0: {"c": 0}}, 0, [0], "ab"),
        lambda: A.dfa({0: {"a": 0}}, 0, []),
    ):
        with pytest.raises(ThereExistsError):
            wrong()


def test_nfa_is_made_deterministic():
    ends = A.nfa({0: {"a": [0, 1], "b": [0]}, 1: {"b": [2]}}, 0, [2])
    assert ends == A.regex("[ab]*ab", "ab")
    with_nothing = A.nfa({0: {None: [1, 2]}, 1: {"a": [1]}, 2: {"b": [2]}}, 0, [1, 2], alphabet="ab")
    assert with_nothing == A.regex("a*|b*", "ab")
    assert A.nfa({0: {"a": [1]}, 2: {"b": [1]}}, {0, 2}, [1]) == A.regex("a|b", "ab")


def test_a_step_function_is_explored():
    thirds = A.from_function(lambda q, a: (2 * q + int(a)) % 3, 0, "01", accept=[0])
    assert thirds.size == 3
    assert all(thirds.accepts(f"{k:b}") == (k % 3 == 0) for k in range(200))
    adder = A.mealy(lambda c, ab: divmod(int(ab[0]) + int(ab[1]) + c, 2), [0, 1], ["00", "01", "10", "11"])
    assert adder.transduce(["11", "10", "01"]) == [0, 0, 0]
    table = {(q, a): ((q + a) % 3, "xyz"[q]) for q in range(3) for a in (0, 1)}
    assert A.mealy(table, range(3), [0, 1]).transduce([1, 1, 0]) == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("step", "named"),
    [
        (lambda q, a: random.random(), "not deterministic"),
        (lambda q, a: [q], "tuples in place of lists"),
        (lambda q, a: q + 1, "more than"),
        (lambda q, a: 1 / 0, "ZeroDivisionError"),
        (7, "must be a function"),
    ],
)
def test_step_functions_that_are_none(step, named):
    with pytest.raises(ThereExistsError, match=named):
        A.from_function(step, 0, "a")


def test_att_text(tmp_path):
    (tmp_path / "m.fst").write_text("0 1 a\n1 0 b\n0\n")
    assert A.from_att(tmp_path / "m.fst") == A.regex("(ab)*", "ab")
    assert parse_att("0 0 a 0\n0 1 a 0.0\n1 0\n", acceptor=True) == A.regex("a+", "a")
    assert parse_att("0 1 <eps>\n1 1 a\n1\n") == A.regex("a*", "a")
    swap = parse_att("0 0 a b\n0 0 b a\n0\n")
    assert swap.transduce("abba") == ["b", "a", "a", "b"]
    drops = parse_att("0 0 a <eps>\n0 0 b b\n0\n")
    assert drops.transduce("abab") == ["", "b", "", "b"]
    for wrong, named in (
        ("", "is empty"), ("0 1 a 2.5\n1\n", "language is empty|not 0|weight"), ("0 0 a b 3\n0\n", "weight 3 is not 0"),
        ("0 0 <eps> b\n0\n", "must read"), ("0 0 a b\n0 1 a b\n0\n", "not deterministic"),
        ("0 1 a b c d\n0\n", "words"), ("0 1 a\n", "language is empty"), ("0 0 a b x\n0\n", "not a number"),
    ):  # fmt: skip
        acceptor = True if "2.5" in wrong else None
        with pytest.raises(ThereExistsError, match=named):
            parse_att(wrong, acceptor=acceptor)


def test_an_unknown_symbol_is_named():
    found = A.regex("(ab)*", "ab")
    with pytest.raises(ThereExistsError, match=r"'x' \(symbol 1\) is not in the alphabet of 2 symbols \('a', 'b'\)"):
        found.accepts("ax")
    with pytest.raises(ThereExistsError, match="a string or a list"):
        found.accepts(3)
    assert len(repr(found)) < 200


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u2028", "\x85", "\x0c", "\x1c"])
def test_only_spaces_and_tabs_separate_words_in_att(space):
    """Other white space may be a symbol: a machine with one arc less would be another one."""
    machine = parse_att(f"0\t1\ta\n1\t0\t{space}\n0\n")
    assert set(machine.alphabet) == {"a", space}
    assert [machine.accepts(word) for word in ("", "a", f"a{space}", f"a{space}a")] == [True, False, True, False]
    writes = parse_att(f"0\t0\ta\t{space}\n0\n")
    assert writes.transduce("aa") == [space, space]


def test_an_array_holds_symbols_not_their_numbers():
    ends_in_1 = A.dfa({"s": {1: "t", 0: "s"}, "t": {1: "t", 0: "s"}}, "s", ["t"], alphabet=[1, 0])
    assert ends_in_1.accepts(np.array([0, 1]))
    assert not ends_in_1.accepts(np.array([1, 0]))
    with pytest.raises(ThereExistsError, match="not in the alphabet"):
        ends_in_1.accepts(np.array([5]))


def test_a_machine_that_reads_no_symbol_is_refused():
    with pytest.raises(ThereExistsError, match="a list of tokens, one at least; this one is empty"):
        A.dfa({0: {}}, 0, [0])


def test_a_table_of_gigabytes_is_refused_before_it_is_made():
    alphabet = [chr(0x4E00 + k) for k in range(20_000)]
    with pytest.raises(ThereExistsError, match="entries in all"):
        A.regex("[^\u4e00].{1000}", alphabet)


def test_an_automaton_stays_what_it_was_when_its_tables_change():
    table, accept = np.array([[1], [0]]), np.array([True, False])
    machine = A.Automaton(("a",), table, 0, accept, np.full((2, 1), -1), (), ("even", "odd"), 2)
    table[:], accept[:] = 0, True
    assert [machine.accepts("a" * k) for k in range(4)] == [True, False, True, False]


def test_tables_are_kept_in_numbers_that_do_not_wrap_around():
    machine = A.Automaton(
        ("a",),
        np.array([[1], [0]], np.uint8),
        0,
        np.array([True, False]),
        np.full((2, 1), -1, np.int8),
        (),
        ("p", "q"),
        2,
    )
    assert machine.table.dtype == machine.outputs.dtype == np.int64
    with pytest.raises(ThereExistsError, match="'accept' of an automaton must be an array of Booleans"):
        A.Automaton(("a",), machine.table, 0, np.array([1, 0]), machine.outputs, (), ("p", "q"), 2)
