"""--function is for witnesses of files: a record must not lend a file what is known of a built-in function."""

import hashlib

import pytest

import thereexists as te
from tests.command import thereexists
from tests.hostile import FUNCTION, forge_certificate, forge_record
from thereexists.functions.targets import builtin


@pytest.fixture
def borrowed(tmp_path):
    """A witness of the built-in sort whose record has the hash of my file, with a function of that name."""
    (tmp_path / "my.py").write_text(
        FUNCTION.replace("def f", "def sort").replace("sort(X, axis=1)", "sort(-X, axis=1)")
    )
    sha256 = hashlib.sha256((tmp_path / "my.py").read_bytes()).hexdigest()
    witness = te.build(builtin("sort", n=2), delta=1 / 4)
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1).save(tmp_path / "w")

    def both(r):
        r["target"].update(lipschitz=2.0**44, origin={**r["target"]["origin"], "sha256": sha256})

    forge_record(tmp_path / "w", both)
    forge_certificate(tmp_path / "w", both)
    return tmp_path


@pytest.mark.parametrize("command", ["verify", "certify", "report"])
def test_a_file_never_gets_the_extension_of_a_builtin(borrowed, command):
    more = ["--out", "r.html"] if command == "report" else []
    code = 1 if command == "verify" else 2
    done = thereexists(command, "w", "--function", "my.py:sort", *more, cwd=borrowed, code=code)
    assert "the origin of the built-in function sort is" in " ".join((done.stdout + done.stderr).split())
    assert not (borrowed / "r.html").exists()


def test_a_builtin_takes_no_function(tmp_path):
    witness = te.build(builtin("sort", n=2), delta=1 / 2)
    witness.save(tmp_path / "w")
    (tmp_path / "my.py").write_text(FUNCTION.replace("def f", "def sort"))
    done = thereexists("certify", "w", "--function", "my.py:sort", cwd=tmp_path, code=2)
    assert "it is of the built-in function sort, which comes with it; leave --function out" in done.stderr
