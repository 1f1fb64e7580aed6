"""Automata on the command line: build, plan, run, show, trace, verify; and every mistake in one sentence."""

import json

import pytest
import torch
from typer.testing import CliRunner

import thereexists as te
from tests.command import thereexists
from thereexists.cli import app

MACHINE = """
alphabet = "01"
start = 0
accept = [0]


def step(q, a):
    return (2 * q + int(a)) % 3
"""
TRANSDUCER = 'alphabet = ["00", "01", "10", "11"]\nstart = 0\nwrites = True\n\n\ndef step(c, ab):\n    return divmod(int(ab[0]) + int(ab[1]) + c, 2)\n'  # noqa: E501
NAMED = 'import thereexists as te\n\nends = te.automata.regex(".*b", "ab")\n'


def command(*words):
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_regular_expression(here):
    said = command("build", "regex:(ab|ba)*", "--alphabet", "ab", "--n", 32, "--out", "w")
    assert "4 (6 before minimising), 2 symbols" in said
    assert "right on every string of at most 32 symbols" in said
    planned = json.loads(command("plan", "regex:(ab|ba)*", "--alphabet", "ab", "--n", 32, "--json"))
    assert planned["blocks"] == 5
    assert planned["parameters"] == te.load("w").network.parameter_count
    assert planned["dtypes"] == ["float64", "float32", "bfloat16", "float16"]
    assert command("plan", "regex:(ab|ba)*", "--alphabet", "ab", "--n", 32)
    assert command("run", "w", "--input", "abba") == "accepted\n"
    assert command("run", "w", "--input", "") == "accepted\n"
    (here / "strings.txt").write_text("abba\naa\n\nba\n")
    assert command("run", "w", "--input", "strings.txt").split() == ["accepted", "rejected", "accepted", "accepted"]
    found = json.loads(command("run", "w", "--input", "strings.txt", "--dtype", "bfloat16", "--json"))
    assert found["output"] == [True, False, True, True]
    assert found["states"][2] == [0]
    assert found["dtype"] == "bfloat16"
    assert "as its author says" in command("show", "w")
    assert json.loads(command("show", "w", "--json"))["table"] == te.load("w").automaton.table.tolist()
    assert "block 5" in command("trace", "w", "--input", "abbaab")
    assert "holds" in command("verify", "w")
    assert "right on every string" in command("certify", "w")
    assert (here / "w" / "certificate.json").is_file()


def test_a_commutative_group_is_counted(here):
    parity = ("regex:(b|ab*a)*", "--alphabet", "ab", "--n", 64)
    assert "a commutative group: one counter, two blocks at every length" in command("plan", *parity)
    planned = json.loads(command("plan", *parity, "--json"))
    assert (planned["construction"], planned["blocks"], planned["dtypes"]) == ("counting", 2, ["float64", "float32"])
    doubled = json.loads(command("plan", *parity, "--construction", "doubling", "--json"))
    assert (doubled["construction"], doubled["blocks"]) == ("automaton", 6)
    said = command("build", *parity, "--out", "w")
    assert "not in bfloat16" in said
    assert command("run", "w", "--input", "abba") == "accepted\n"
    traced = command("trace", "w", "--input", "abba")
    assert "block 2: count 1" in traced
    assert "holds" in command("verify", "w")
    assert "right on every string of at most 64 symbols" in command("certify", "w")
    assert "as its author says" in command("show", "w")
    for words in (["regex:(ab|ba)*", "--alphabet", "ab", "--n", 8], [*parity, "--dtype", "bfloat16"]):
        done = thereexists("build", *words, "--construction", "counting", "--out", "v", cwd=here, code=2)
        assert "Counting" in done.stderr


def test_a_step_function_of_a_file(here):
    (here / "machine.py").write_text(MACHINE)
    command("build", "machine.py:step", "--n", 16, "--dtype", "bfloat16", "--out", "w")
    assert te.load("w").network.dtype == torch.bfloat16
    assert command("run", "w", "--input", "110") == "accepted\n"
    assert command("run", "w", "--input", "111") == "rejected\n"
    assert command("build", "machine.py:step", "--alphabet", "1", "--n", 4, "--out", "v")
    assert te.load("v").automaton.alphabet == ("1",)
    in_one_line = MACHINE.replace('alphabet = "01"\nstart = 0\naccept = [0]', 'start, alphabet, accept = 0, "01", [0]')
    (here / "short.py").write_text(in_one_line)
    command("build", "short.py:step", "--n", 16, "--dtype", "bfloat16", "--out", "u")
    assert command("run", "u", "--input", "110") == "accepted\n"


def test_a_transducer_a_named_automaton_and_a_file_of_transitions(here):
    (here / "adder.py").write_text(TRANSDUCER)
    command("build", "adder.py:step", "--n", 8, "--out", "w")
    assert command("run", "w", "--input", "11 10 00") == "001\n"
    (here / "named.py").write_text(NAMED)
    command("build", "named.py:ends", "--n", 8, "--out", "v")
    assert command("run", "v", "--input", "aab") == "accepted\n"
    (here / "m.fst").write_text("0 1 a\n1 0 b\n0\n")
    command("build", "m.fst", "--n", 8, "--out", "u")
    assert command("run", "u", "--input", "abab") == "accepted\n"
    assert command("trace", "w", "--input", "11 10")


def test_symbols_that_are_written_alike(here):
    """The number 1 and the text "1" are two symbols; a command is told neither of them, and prints neither."""
    te.build(te.automata.mealy(lambda q, a: (0, a), [0], [1, "1", "x"]), n=3).save("w")
    for verb in ("run", "trace"):
        said = thereexists(verb, "w", "--input", "1 x", cwd=here, code=2).stderr
        assert "a number and a text that are both written '1'" in said
        assert len(said.splitlines()) == 1
    assert command("run", "w", "--input", "x x") == "xx\n"
    written = {"a": 1, "b": "1", "c": "x"}
    te.build(te.automata.mealy(lambda q, a: (0, written[a]), [0], "abc"), n=3).save("v")
    said = thereexists("run", "v", "--input", "ab", cwd=here, code=2)
    assert (said.stdout, "both written '1'" in said.stderr) == ("", True)
    assert json.loads(command("run", "v", "--input", "ab", "--json"))["output"] == [[1, "1"]]
    assert command("run", "v", "--input", "cc") == "xx\n"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["build", "regex:c", "--alphabet", "ab", "--n", 4], "language is empty"),
        (["build", r"regex:(a)\1", "--alphabet", "ab", "--n", 4], "back-reference"),
        (["build", "regex:a(?=b)", "--alphabet", "ab", "--n", 4], "look-around"),
        (["build", "regex:a", "--alphabet", "ab"], "--n"),
        (["build", "regex:a", "--alphabet", "ab", "--n", 4, "--delta", "1/2"], "--delta is for functions"),
        (["build", "sort", "--n", 2, "--alphabet", "ab", "--delta", "1/2"], "--alphabet is for automata"),
        (["build", "none.fst", "--n", 4], "none.fst"),
        (["build", "m.fst", "--n", 4, "--alphabet", "ab"], "leave --alphabet out"),
        (["build", "no_start.py:step", "--n", 4], "start = "),
        (["build", "no_start.py:other", "--n", 4], "no automaton and no step function"),
        (["build", "random_step.py:step", "--n", 4], "not deterministic"),
        (["plan", "regex:[ab]*a[ab]{9}", "--alphabet", "ab", "--n", 4], "Fewer states"),
        (["run", "w", "--input", "abx"], "'x'"),
        (["run", "w", "--input", "ababa"], "at most 4 symbols"),
        (["run", "w", "--input", "none.txt"], "none.txt"),
        (["run", "w", "--input", "ab", "--out", "y.npy"], "prints its answers"),
        (["trace", "w", "--input", "many.txt"], "one string"),
    ],
)
def test_mistakes_are_told_in_one_sentence(here, words, named):
    (here / "m.fst").write_text("0 1 a\n1 0 b\n0\n")
    (here / "no_start.py").write_text('alphabet = "ab"\n\n\ndef step(q, a):\n    return 0\n')
    (here / "random_step.py").write_text(
        'import random\n\nalphabet, start = "ab", 0\n\n\ndef step(q, a):\n    return random.random()\nalphabet = "ab"\n'
    )
    (here / "many.txt").write_text("ab\nba\n")
    if words[0] in ("run", "trace"):
        te.build(te.automata.regex("(ab)*", "ab"), n=4).save("w")
    said = thereexists(*words, cwd=here, code=2).stderr
    assert named in said
    assert len(said.splitlines()) == 1
    assert "Traceback" not in said
