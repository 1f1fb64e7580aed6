"""``verify``: it holds (0), it does not hold (1), or it could not be checked (2); and the same in the library."""

import io
import json
import os
import shutil
import sys
from unittest.mock import patch

import numpy as np
import pytest

import thereexists as te
from tests.cli.in_process import ran
from tests.hostile import FUNCTION, forge_certificate, forge_record, forge_weights
from thereexists.certificates import certificate as certificates
from thereexists.certificates.certificate import BLOCKS
from thereexists.cli import main


@pytest.fixture(scope="module")
def witnesses(tmp_path_factory):
    """``own`` is of a function in my.py, ``sort`` of a built-in one."""
    folder = tmp_path_factory.mktemp("outcomes")
    (folder / "my.py").write_text(FUNCTION)
    (folder / "other.py").write_text(FUNCTION + "\n# changed\n")
    for name, target in (("own", "my.py:f --lipschitz 1"), ("sort", "sort")):
        assert ran(f"build {target} --n 2 --delta 1/2 --out {name}", cwd=folder).code == 0
    return folder


@pytest.fixture
def folder(witnesses, tmp_path):
    return shutil.copytree(witnesses, tmp_path / "here")


def unreadable(name):
    """As if this process had no right to read the file."""
    opened = os.open

    def refuse(file, *arguments, **options):
        if str(file).endswith(name):
            raise PermissionError(13, "Permission denied", str(file))
        return opened(file, *arguments, **options)

    return patch.object(os, "open", refuse)


HOLDS = ["verify own --function my.py:f", "verify sort --job mine"]


@pytest.mark.parametrize("line", HOLDS)
def test_it_holds(line, folder):
    done = ran(line, cwd=folder)
    assert (done.code, done.stderr) == (0, "")
    assert "holds" in done.stdout


NOT_CHECKED = {
    "verify own": "--function",
    "verify own --function other.py:f": "is not the file",
    "verify own --function nowhere.py:f": "nowhere.py",
    "verify sort --job sort/inside": "must not lie in the witness",
    "verify sort --job my.py": "my.py",
    "verify sort --job .": "not a job's",
    "verify nowhere": "no saved witness",
    "verify sort --sample 2": "'sample'",
    "verify sort --pool ray --address nowhere:1": "--job",
    "verify sort --pool nets": "'pool'",
}


@pytest.mark.parametrize("line", NOT_CHECKED)
def test_a_mistake_of_the_caller_is_no_verdict(line, folder):
    done = ran(f"{line} --json", cwd=folder)
    assert (done.code, done.stdout) == (2, "")
    assert NOT_CHECKED[line] in done.stderr
    assert "does not hold" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["witness.json", "model.safetensors", certificates.FILE, BLOCKS])
def test_a_file_that_cannot_be_read_is_no_verdict(name, folder):
    with unreadable(name):
        done = ran("verify sort", cwd=folder)
        assert te.verify(folder / "sort", opinions=1).holds is None
    assert (done.code, done.stdout) == (2, "")
    assert "Permission denied" in done.stderr


def test_a_machine_that_fails_is_no_verdict(folder):
    for error in (MemoryError("no more"), OSError(28, "No space left on device")):
        with patch("thereexists.certificates.verify_bound.sums_over_cubes", side_effect=error):
            verdict = te.verify(folder / "sort", opinions=1)
        assert verdict.holds is None
        assert verdict.evidence[-1].passed is None


def test_no_certificate_is_nothing_to_check(folder):
    (folder / "sort" / certificates.FILE).unlink()
    assert ran("verify sort", cwd=folder).code == 2


def test_a_symmetry_cannot_be_checked_without_the_function(tmp_path):
    target = te.Target(lambda X: X / 2, n=2, lipschitz=0.5, equivariant=True)
    witness = te.build(target, delta=1 / 2)
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1).save(tmp_path / "w")
    verdict = te.verify(tmp_path / "w")
    assert verdict.holds is None
    assert "not stored in a witness" in verdict.reasons[0]
    with pytest.raises(ValueError, match="no truth value"):
        bool(verdict)


def truncated(w):
    (w / "witness.json").write_text((w / "witness.json").read_text()[:-40])


def another_weight(w):
    forge_weights(w, lambda weights: weights["stages.value.feed_forward.W_2"].mul_(2))


def edited(w):
    (w / "witness.json").write_text((w / "witness.json").read_text().replace('"theorem": 2', '"theorem": 1'))


FALSE = {
    "a record changed by hand": edited,
    "a truncated record": truncated,
    "no JSON": lambda w: (w / "witness.json").write_text("{"),
    "another kind of record": lambda w: forge_record(w, lambda r: r.update(construction="magic")),
    "a malformed target": lambda w: forge_record(w, lambda r: r["target"].update(n="two")),
    "truncated weights": lambda w: os.truncate(w / "model.safetensors", 100),
    "other weights": another_weight,
    "a smaller bound": lambda w: forge_certificate(w, lambda r: r.update(bound=r["bound"] / 2)),
    "a changed certificate": lambda w: (w / certificates.FILE).write_text("{}"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FALSE)
def test_what_was_tampered_with_does_not_hold(fault, folder):
    FALSE[fault](folder / "own")
    done = ran("verify own --function my.py:f --json", cwd=folder)
    assert (done.code, done.stderr) == (1, "")
    assert json.loads(done.stdout)["holds"] is False


def test_a_fault_counts_also_where_the_rest_could_not_be_checked(folder):
    edited(folder / "own")
    assert ran("verify own", cwd=folder).code == 1


class Closed(io.StringIO):
    """A pipe that nobody reads."""

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("line", ["verify sort", "verify sort --json"])
def test_a_closed_pipe_is_no_verdict(line, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["thereexists", *line.split()])
    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2


def test_the_help_names_the_codes(tmp_path):
    said = " ".join(ran("verify --help", cwd=tmp_path).stdout.split())
    for words in ("0 if everything holds", "1 if it does not", "2 if it could not be checked"):
        assert words in said


def test_a_function_that_is_not_what_it_claims_does_not_hold(folder):
    """The file is the right one, and f is false: that is no mistake of the caller."""
    target = te.Target(lambda X: np.sort(X, axis=1), n=2, lipschitz=1.0)
    witness = te.build(target, delta=1 / 2)
    witness.save(folder / "w")
    te.certify(witness, opinions=1).save(folder / "w")
    other = te.Target(lambda X: np.full_like(X, np.nan), n=2, lipschitz=1.0)
    assert te.verify(folder / "w", other, opinions=1).holds is False
