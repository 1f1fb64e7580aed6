"""Manners of the whole command: help with examples, --json everywhere, quiet pipes, bars on terminals, completion."""

import io
import os
import shlex
import subprocess
import sys
from unittest.mock import patch

import pytest
from rich.console import Console

from tests.docs import shell
from tests.docs.asked import CHEAP
from tests.docs.listed import COMMANDS, examples
from thereexists.cli import _output

every_command = pytest.mark.parametrize("name", COMMANDS)


@every_command
def test_help_has_an_example_that_could_be_run(name):
    found = examples(name)
    assert any(line.startswith(f"thereexists {name} ") or line == f"thereexists {name}" for line in found)
    for line in found:
        shell.parse(shlex.split(line))


@every_command
def test_every_command_takes_json(name):
    assert any("--json" in parameter.opts for parameter in COMMANDS[name].params)


@every_command
def test_every_option_is_explained(name):
    for parameter in COMMANDS[name].params:
        assert getattr(parameter, "help", None), f"{name} {parameter.name}"


TRAINING = {"train mlm", "train nli", "train lm", "train mt", "experiment", "results"}  # tests/cli/test_experiment.py
SUITES = {
    f"suite {name}" for name in ("verifier", "circuits", "check", "floor", "score")
}  # tests/suites/test_suites.py
ELSEWHERE = TRAINING | SUITES | {"explore"}  # tests/reports/explore/test_explore.py


def test_every_command_is_asked_for_json_somewhere():
    assert set(COMMANDS) == set(CHEAP) | ELSEWHERE


@pytest.mark.parametrize("check", [pytest.param("ask_all_for_json", marks=pytest.mark.slow), "compare_names"])
def test_in_the_worker(check, worker, tmp_path):
    """``ask_all_for_json``: one object on stdout, nothing on stderr. ``compare_names``: completion is up to date."""
    code = f"from tests.docs.asked import {check}\n\n{check}()"
    (tmp_path / "page.md").write_text(f"```python\n{code}\n```\n")
    (tmp_path / "here").mkdir()
    worker(tmp_path / "page.md", tmp_path / "here")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on(stream, quiet=False):
    """What a job of three steps shows on ``stream`` as stderr."""
    replaced = patch.object(_output, "console", lambda stderr: Console(file=stream, width=100))
    with replaced, _output.progress_bar("work", quiet) as progress:
        for done in range(4):
            progress(done, 3)
    return stream.getvalue()


def test_a_bar_is_for_terminals_only():
    shown = on(Terminal())
    assert "work" in shown
    assert "3/3" in shown
    assert on(io.StringIO()) == ""
    assert on(Terminal(), quiet=True) == ""


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("thereexists pat", {"pattern"}),
        ("thereexists build so", {"sort", "softmax-attention", "soft-rank"}),
        ("thereexists pattern check st", {"strided", "star"}),
        ("thereexists train mlm --mixer s", {"sepconv", "sparse"}),
    ],
)
def test_the_shell_completes_names(words, wanted):
    environment = os.environ | {
        "_THEREEXISTS_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    code = "import sys; sys.argv[0] = 'thereexists'; from thereexists.cli import app; app(prog_name='thereexists')"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert set(done.stdout.split()) == wanted, done.stderr


def test_help_imports_nothing_heavy():
    heavy = ("torch", "numpy", "scipy", "numba", "matplotlib", "transformers", "flint", "tqdm", "pysat")
    code = (
        "import sys\nfrom thereexists.cli import app\n"
        "try:\n    app(['--help'], prog_name='thereexists')\nexcept SystemExit:\n    pass\n"
        f"sys.exit(any(name in sys.modules for name in {heavy}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 0
