"""No request, however wrong, ends in a traceback, and none leaves something half-written."""

import random

import pytest

from tests.cli import fuzz

QUICK = tuple(name for name in sorted(fuzz.COMMANDS) if not name.startswith(fuzz.LONG))


def complaints(artefacts, drawn):
    return [said for words in drawn if (said := fuzz.complaint(words, artefacts))]


def test_every_command_is_fuzzed():
    assert set(fuzz.SENSIBLE) == set(fuzz.COMMANDS)


def test_the_fuzz_notices_a_traceback(artefacts, monkeypatch):
    monkeypatch.setattr("thereexists.witness.load.load", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in fuzz.complaint(["show", "w"], artefacts)


def test_forty_wrong_requests(artefacts):
    assert complaints(artefacts, fuzz.requests(random.Random(0), 40, QUICK)) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Ctrl-C inside a compiler
@pytest.mark.parametrize("seed", range(1, 16))
def test_a_hundred_wrong_requests(artefacts, seed):
    assert complaints(artefacts, fuzz.requests(random.Random(seed), 100)) == []
