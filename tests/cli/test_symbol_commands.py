"""Programs over symbols on the command line: every command that they have, and mistakes in one sentence."""

import json

import pytest
from typer.testing import CliRunner

import thereexists as te
from tests.command import thereexists
from thereexists.cli import app

PROGRAM = """
from thereexists import program as P

alphabet = "abc"
s = P.symbols(alphabet, n=4)
ordered = s.sort()
induction = P.previous(s, default="?")
colours = P.recode(P.symbols(["red", "green"], n=3, shorter=True), {"red": "stop", "green": "go"})
halves = P.as_symbols(s.number / 2, "ab")
"""


def command(*words):
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text(PROGRAM)
    return tmp_path


def test_a_program_over_symbols(here):
    said = command("build", "prog.py:ordered", "--out", "w")
    assert "right on every string of 4 symbols, in float64, float32, bfloat16, float16" in said
    assert "3 symbols: abc" in said
    planned = json.loads(command("plan", "prog.py:ordered", "--json"))
    assert planned["parameters"] == te.load("w").network.parameter_count
    assert planned["lengths"] == [4, 4]
    assert "3 symbols: abc" in command("plan", "prog.py:ordered")
    assert command("run", "w", "--input", "cbaa") == "aabc\n"
    (here / "strings.txt").write_text("cbaa\nbbab\n")
    assert command("run", "w", "--input", "strings.txt") == "aabc\nabbb\n"
    found = json.loads(command("run", "w", "--input", "strings.txt", "--dtype", "bfloat16", "--json"))
    assert (found["output"], found["dtype"]) == (["aabc", "abbb"], "bfloat16")
    assert found["as_its_author_says"] == ["certified"]
    assert "as its author says" in command("show", "w")
    shown = json.loads(command("show", "w", "--json"))
    assert (shown["alphabet"], shown["output_alphabet"]) == (list("abc"), list("abc"))
    assert "certified" in shown["as_its_author_says"]
    assert command("trace", "w", "--input", "cbaa").splitlines()[-1] == "aabc"
    assert json.loads(command("trace", "w", "--input", "cbaa", "--json"))["output"] == "aabc"
    assert "holds" in command("verify", "w")
    assert "right on every string" in command("certify", "w")
    command("report", "w", "--out", "r.html")
    assert "the number of the right symbol" in (here / "r.html").read_text()
    assert json.loads(command("export", "w", "--to", "torch", "--out", "t", "--json"))["compared"] > 0


def test_words_of_any_number_and_a_causal_program(here):
    command("build", "prog.py:colours", "--out", "c")
    assert command("run", "c", "--input", "green red") == "go stop\n"
    assert "1 to 3 symbols" in command("show", "c")
    command("build", "prog.py:induction", "--dtype", "float32", "--out", "i")
    assert command("run", "i", "--input", "abab") == "??ba\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("build", "prog.py:halves"), "may be 0.5"),
        (("build", "prog.py:induction", "--dtype", "bfloat16"), "not proved in bfloat16: its bound is"),
        (("build", "prog.py:ordered", "--epsilon", "0.1"), "'epsilon' is not an option"),
        (("build", "prog.py:alphabet"), "a program is a value"),
        (("run", "w", "--input", "abx1"), "'x' (symbol 2 of string 0) is not in the alphabet"),
        (("run", "w", "--input", "ab"), "must have 4 symbols"),
        (("run", "w", "--input", "abca", "--out", "y.npy"), "prints its strings"),
        (("trace", "w", "--input", "two.txt"), "trace takes one string; two.txt holds 2"),
    ],
)
def test_mistakes_are_one_sentence(here, words, said):
    if words[1] == "w":
        command("build", "prog.py:ordered", "--out", "w")
    (here / "two.txt").write_text("abca\nabca\n")
    done = thereexists(*words, cwd=here, code=1 if "halves" in words[1] else 2)
    assert done.stdout == ""
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
