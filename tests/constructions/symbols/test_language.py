"""Every operation on symbols, on all strings: interpreter, network in its dtypes and proof, as Python has it."""

import functools

import numpy as np
import pytest

import thereexists as te
from tests.constructions.symbols.cases import EXACT, SOFT
from thereexists import program as P

CASES = EXACT | SOFT
each = pytest.mark.parametrize("name", CASES)


@functools.cache
def built(name):
    return te.build(CASES[name].written())


@pytest.mark.sampled(9)
@each
def test_on_all_strings(name):
    case = CASES[name]
    strings = case.strings()
    wanted = [case.meant(string) for string in strings]
    assert P.interpret(case.written(), strings) == wanted
    witness = built(name)
    assert name == "found twice" or {"float64", "float32"} <= witness.certificate.bounds.keys()
    for dtype, part in witness.certificate.bounds.items():
        there = witness.to(dtype)
        assert there(strings) == wanted, dtype
        assert part["bound"] < 0.5
        assert furthest(there, strings, wanted) <= part["bound"], dtype
    assert witness.meant(strings) == wanted


def furthest(witness, strings, wanted):
    """How far the network is from the numbers of the right symbols: what the certificate bounds."""
    symbols, off = witness.alphabets.output_alphabet, 0.0
    for length in {len(string) for string in strings}:
        here = [k for k, string in enumerate(strings) if len(string) == length]
        X = np.array(witness.words([strings[k] for k in here])[0], dtype=np.float64)[..., None]
        right = np.array([[symbols.index(symbol) for symbol in wanted[k]] for k in here])
        off = max(off, np.abs(witness.run(X)[..., 0] - right).max())
    return off


QUICK = ("merged", "sorted, any length", "how many a, any length", "rank", "induction", "recall", "most frequent")
verified = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CASES]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", verified)
def test_saved_and_verified(name, tmp_path):
    witness, case = built(name), CASES[name]
    witness.save(tmp_path / "w")
    verdict = te.verify(tmp_path / "w")
    assert verdict.holds, verdict.reasons
    loaded, string = te.load(tmp_path / "w"), case.strings()[-1]
    assert loaded(string) == case.meant(string)
    for dtype in witness.certificate.bounds:
        assert loaded.to(dtype)(string) == case.meant(string)


def test_what_is_moved_is_exact_in_every_dtype():
    """Whole numbers are added without rounding: the bound is 0, not small."""
    for name in ("sorted", "reversed", "swapped", "chosen", "delayed", "same as before"):
        assert {part["bound"] for part in built(name).certificate.bounds.values()} == {0.0}
        assert set(built(name).certificate.bounds) == {"float64", "float32", "bfloat16", "float16"}


LONG = [("abcdefghi", 8), pytest.param("abcdefghijklmnopqrstuvwxyz", 16, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("letters", "n"), LONG)
def test_long_random_strings(letters, n):
    s = P.symbols(letters, n=n)
    witness = te.build(P.choose(P.isin(s, "aei"), s.sort(), P.recode(s.flip(), {"g": "_"})), dtypes=("float32",))
    rng = np.random.default_rng(0)
    for string in ("".join(rng.choice(list(letters), n)) for _ in range(50)):
        ordered, mirrored = "".join(sorted(string)), string[::-1].replace("g", "_")
        wanted = "".join(a if c in "aei" else b for a, b, c in zip(ordered, mirrored, string, strict=True))
        assert witness(string) == wanted
        assert witness.to("float32")(string) == wanted


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("letters", "n"), LONG)
def test_long_look_ups(letters, n, causal):
    """In float32 too."""
    rng = np.random.default_rng(1)
    s = P.symbols(letters, n=n)
    witness = te.build(P.find(s, s.delay(1, fill="-"), s, default="?", causal=causal), dtypes=("float32",))
    for string in ("".join(rng.choice(list(letters[:9]), n)) for _ in range(10)):
        seen = [{string[j]: string[j + 1] for j in range(i if causal else n - 1)} for i in range(n)]
        wanted = "".join(there.get(a, "?") for a, there in zip(string, seen, strict=True))
        assert witness(string) == witness.to("float32")(string) == wanted


# ---- strings ---------------------------------------------------------------------------------------------------------


def test_a_string_a_list_of_strings_and_lists_of_symbols():
    witness = built("sorted")
    assert witness("cbaa") == "aabc"
    assert witness(["cbaa", "aaab"]) == witness([list("cbaa"), list("aaab")]) == ["aabc", "aaab"]
    assert witness(np.array(["cbaa"])) == ["aabc"]


def test_words_are_given_as_lists_or_between_spaces():
    witness = te.build(P.symbols(["red", "green"], n=3).flip())
    assert witness(["red", "red", "green"]) == witness("red red green") == ["green", "red", "red"]
    assert witness([["red", "red", "green"], "green red red"]) == [["green", "red", "red"], ["red", "red", "green"]]


def test_strings_of_several_lengths_at_once():
    assert built("sorted, any length")(["ba", "c", "cba"]) == ["ab", "c", "abc"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("abca!"[1:], "'!' (symbol 3 of string 0) is not in the alphabet of 3 symbols abc"),
        (["abca", "abx!"], "'x' (symbol 2 of string 1)"),
        ("abc", "must have 4 symbols"),
        ("abcab", "string 0 has 5"),
        ([], "one at least; got nothing"),
        (7, "got int"),
        ([7], "String 0 must be text or a list of symbols; got int"),
        ([["a", 1, "b", "c"]], "1 (symbol 1 of string 0)"),
        ("\x1b[2J", "x1b"),
    ],
)
def test_other_strings_are_refused_in_one_sentence(given, said):
    with pytest.raises(te.ThereExistsError) as refused:
        built("sorted")(given)
    assert said in str(refused.value)


# ---- what is refused -------------------------------------------------------------------------------------------------

S = P.symbols("abc", n=3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: P.symbols("", n=3), "1 to 1,024 symbols; got 0"),
        (lambda: P.symbols("aba", n=3), "'a' is there twice"),
        (lambda: P.symbols(["a", ""], n=3), "a character or a word; got ''"),
        (lambda: P.symbols(7, n=3), "a string or a list of words; got 7"),
        (lambda: P.symbols([1, 2], n=3), "a character or a word; got 1"),
        (lambda: P.symbols("\ud800", n=3), "a character or a word"),
        (lambda: P.symbols("ab", n=0), "at least 1"),
        (lambda: P.isin(S, "xy"), "'x', which is not in the alphabet abc"),
        (lambda: P.isin(S.number, "a"), "takes symbols of a program"),
        (lambda: P.same(S, P.recode(S, {"a": "x"})), "of one alphabet; got abc and xbc"),
        (lambda: P.recode(S, {"x": "a"}), "'x', which is not in the alphabet"),
        (lambda: P.recode(S, "abc"), "takes a table"),
        (lambda: P.recode(S, {"a": 1}), "a character or a word; got 1"),
        (lambda: P.recode(S, {"a": "x"}, alphabet="abc"), "'recode' gives 'x'"),
        (lambda: P.numbers_of(S, {"a": 1, "b": 2}), "'c' has none"),
        (lambda: P.numbers_of(S, {"a": 1, "b": 2, "c": "3"}), "the number of 'c'"),
        (lambda: P.numbers_of(S, {"a": 1, "b": 2, "c": float("nan")}), "finite"),
        (lambda: S.delay(1, fill=""), "fill, a character or a word"),
        (lambda: S.delay(0.5, fill="a"), "a whole number of places"),
        (lambda: P.choose(1, "a", "b"), "takes symbols of a program"),
        (lambda: P.choose(np.full(3, 0.5), S, "b"), "zeros and ones"),
        (lambda: P.as_symbols(P.one_hot(S), "01"), "one feature; got 3"),
        (lambda: P.as_symbols(S, "01"), "a value of a program"),
        (lambda: S == S, "P.same(s, t)"),
        (lambda: S != "a", "P.same(s, t)"),
        (lambda: bool(S), "P.choose"),
        (lambda: "a" in S, "P.max(P.isin"),
        (lambda: list(S), "s.take(places)"),
        (lambda: S[0], "s.take(places)"),
        (lambda: S + 1, "P.numbers_of"),
        (lambda: 2 * S, "P.numbers_of"),
        *((lambda write=write: write(S), "P.numbers_of") for write in (abs, float, int, round)),
        (lambda: S**2, "P.numbers_of"),
        (lambda: 2 % S, "P.numbers_of"),
        (lambda: S // 2, "P.numbers_of"),
        (lambda: S @ S, "P.numbers_of"),
        (lambda: S & S, "P.minimum"),
        (lambda: 1 | S, "P.minimum"),
        (lambda: ~S, "P.minimum"),
        (lambda: S < S, "s.sort()"),
        (lambda: np.ones(3) * S, "P.numbers_of"),
        (lambda: P.sort(S), "a value of a program"),
        (lambda: P.find(S, S, S, default=""), "a default, a character or a word"),
        (lambda: P.find(S, S, S, default="?", which="any"), "which='last' or which='first'"),
        (lambda: P.find(S, S.number, S, default="?"), "takes symbols of a program"),
        (lambda: P.find(S, P.symbols("abc", n=4), S, default="?"), "values of one program"),
        (lambda: P.argmax(P.counts(S), "ab"), "a score for each of the 2 symbols; got 3"),
        (lambda: P.argmax(P.counts(S), "abc", gap=0), "a positive gap"),
        (lambda: te.build(P.previous(S, default="?"), causal=False), "needs a causal network"),
        (lambda: te.build(S.sort(), epsilon=0.1), "'epsilon' is not an option"),
        (lambda: te.build(P.as_symbols(P.tokens(3), "01")), "P.symbols(alphabet, n); this one has numbers"),
        (lambda: te.build(P.choose(P.same(S, S), S, P.symbols("abc", n=3))), "this one has 2 inputs"),
        (lambda: te.build(S.flip(), causal=True), "which a causal mask hides"),
        (lambda: te.build(P.symbols("ab", 3, shorter=True).flip()), "shorter"),
    ],
)  # fmt: skip
def test_what_makes_no_program_is_refused_in_one_sentence(wrong, said):
    with pytest.raises(te.ThereExistsError) as refused:
        wrong()
    assert said in str(refused.value)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("program", "said"),
    [
        (P.as_symbols(S.number / 2, "abc"), "may be 0.5"),
        (P.as_symbols(P.apply(np.sin, S.number), "ab"), "'apply'"),
        (P.argmax(P.mix(P.counts(S), np.diag([1.0, 1.0, 0.3])), "abc"), "may be"),
        (P.Symbols(("a", "b"), S.number), "may be 2"),
        (P.Symbols(("a", "b", "c"), P.relu(S.number - 3) - 1), "may be -1"),
    ],
)
def test_what_is_no_symbol_at_some_string_is_not_built(program, said):
    with pytest.raises(te.ThereExistsError) as refused:
        te.build(program)
    assert said in str(refused.value)


def test_a_symbol_beyond_the_numbers_of_a_dtype_is_not_claimed_there():
    """bfloat16 has the whole numbers up to 256: a string with symbol 257 could not even be given to it."""
    words = [f"w{k}" for k in range(300)]
    witness = te.build(P.symbols(words, n=1), dtypes=("float32", "bfloat16"))
    assert set(witness.certificate.bounds) == {"float64", "float32"}
    assert "300 symbols" in witness.certificate.reasons["bfloat16"]
    with pytest.raises(te.ThereExistsError, match="300 symbols"):
        witness.to("bfloat16")


def test_as_many_symbols_as_tokens_confuse_nobody():
    """Four features of four tokens: a factor for each token is not one for each feature."""
    s = P.symbols("abcd", n=4)
    most = P.argmax(P.cumsum(P.one_hot(s)), "abcd")  # up to here, the first of the alphabet if there are several
    assert P.interpret(most, ["bbaa", "dcba"]) == ["bbba", "dcba"]
