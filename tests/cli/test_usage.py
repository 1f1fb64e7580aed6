"""A command line that cannot be read gets one plain sentence, without a box, and the nearest name."""

import pytest
import typer

from tests.cli import fuzz
from tests.cli.in_process import ran

BOX = set("╭╮╰╯│─")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("buid sort", "Did you mean 'build'?"),
        ("pattern chek", "Did you mean 'check'?"),
        ("nonsense", "No such command 'nonsense'"),
        ("build sort --delt 1/8", "There is no option --delt; did you mean --delta?"),
        ("build sort --no-certfy", "did you mean --no-certify?"),
        ("build sort --zzz", "There is no option --zzz of thereexists build."),
        ("build", "Missing argument 'target'"),
        ("run w", "Missing option '--input'"),
        ("build sort --n x", "'--n'"),
        ("build sort --n", "'--n' requires an argument"),
        ("build sort --samples 3", "'--samples'"),
        ("build sort more words", "more words"),
        ("attention explain star --device cuds", "'cuds' is not one of 'cpu', 'cuda'"),
        ("build sort --json=3", "'--json'"),
    ],
)
def test_a_usage_error_is_one_sentence(line, words, tmp_path):
    done = ran(line, cwd=tmp_path)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not BOX & set(done.stderr)


def test_flags_take_nothing_in_any_help(tmp_path):
    for name in (*fuzz.COMMANDS, "", "heads", "train"):
        shown = ran(f"{name} --help", cwd=tmp_path)
        assert shown.code == 0
        assert "<bool>" not in shown.stdout, name
        assert "--help" in shown.stdout


def test_exits_of_commands_are_kept(tmp_path):
    assert ran("--version", cwd=tmp_path).code == 0
    assert ran("targets", cwd=tmp_path).code == 0
    done = ran("pattern", cwd=tmp_path)
    assert (done.code, "Usage" in done.stdout + done.stderr) == (2, True)
    assert issubclass(typer.BadParameter, __import__("thereexists.cli", fromlist=["x"]).UsageError)
