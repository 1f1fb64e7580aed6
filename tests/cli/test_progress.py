"""A slow function does not look like a hang: what is asked of it is told, with the number of its sequences."""

import re
import time

import pytest

from tests.cli.in_process import ran
from thereexists.cli import _output

LINE = re.compile(r"(\w+): (.+): ([\d,]+)/([\d,]+) sequences")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my.py").write_text("def f(X):\n    return X[:, ::-1]\n")
    return tmp_path


def phases(stderr):
    """The last line of every phase: what is done, sequences answered, sequences in all."""
    found = [match.groups() for line in stderr.splitlines() if (match := LINE.fullmatch(line))]
    return {(label, what): (done, total) for label, what, done, total in found}


COMMANDS = (
    "build my.py:f --n 2 --delta 1/2 --lipschitz 1 --workers 1 --out w",
    "certify w --function my.py:f --workers 1",
    "verify w --function my.py:f --workers 1",
)


def test_every_question_is_counted_and_the_total_is_known_before(folder, monkeypatch):
    """In a log, as if half a minute had gone by at every answer."""
    monkeypatch.setattr(_output, "EVERY", 0.0, raising=False)
    for line in COMMANDS:
        done = ran(line, cwd=folder)
        assert done.code == 0, done.stderr
        seen = phases(done.stderr)
        checked = [what for _, what in seen if "a function of one sequence" in what]
        assert checked, line
        for (_, what), (last, total) in seen.items():
            assert last == total, what  # neither more questions than was said, nor fewer
        assert {what for _, what in seen} >= {"are the claims about f true"}


def test_nothing_is_told_of_what_is_quick_or_asked_for_as_json(folder, monkeypatch):
    assert ran(COMMANDS[0], cwd=folder).stderr == ""
    monkeypatch.setattr(_output, "EVERY", 0.0)
    assert ran(f"{COMMANDS[1]} --json", cwd=folder).stderr == ""


def test_a_terminal_gets_a_bar_with_the_total(folder, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("thereexists.functions.target.answered", _slowly)
    build, certify, verify = (ran(line, cwd=folder) for line in COMMANDS)
    for done in (build, certify, verify):
        assert done.code == 0
        assert re.search(r"a function of one sequence.*\d+/\d+", done.stderr.replace(",", ""))


def _slowly(sequences):
    """As an answer that takes as long as the bar takes to be drawn again."""
    from thereexists.functions.asking import answered

    answered(sequences)
    if sequences > 1000:
        time.sleep(0.12)


def test_only_the_questions_of_a_phase_are_told():
    from thereexists.functions.asking import answered, listening, phase

    told = []
    with listening(lambda *state: told.append(state)):
        answered(5)
        with phase("outer", 10):
            answered(4)
            with phase("inner", 2):
                answered(2)
            answered(6)
    answered(1)
    assert told == [("outer", 4, 10), ("inner", 2, 2), ("outer", 10, 10)]
