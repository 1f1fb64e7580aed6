"""``--domain``: one pair of ends, a pair for each feature, and the older form in two words."""

import json

import pytest

from tests.cli.in_process import ran


def planned(tmp_path, more):
    (tmp_path / "my.py").write_text("def f(X):\n    return X\n")
    return ran(f"plan my.py:f --n 2 --delta 1/4 --json {more}", cwd=tmp_path)


@pytest.mark.parametrize("text", ["-2,5", "-2 5", "'-2 5'", "'-2, 5'"])
def test_one_box_for_all_features(tmp_path, text):
    done = planned(tmp_path, f"--d 2 --domain {text}")
    assert done.code == 0, done
    assert json.loads(done.stdout) == json.loads(planned(tmp_path, "--d 2 --domain=-2,5").stdout)


def test_a_box_for_each_feature(tmp_path):
    done = ran("build reverse --n 2 --d 2 --delta 1/2 --domain '0,1;-2,5' --out w --json", cwd=tmp_path)
    assert done.code == 0, done
    record = json.loads((tmp_path / "w/witness.json").read_text())
    assert (record["target"]["low"], record["target"]["high"]) == ([0.0, -2.0], [1.0, 5.0])


@pytest.mark.parametrize("text", ["5", "0,1,2", "a,b", "'0,1;2,3;4,5'", "'0,1;'", "''", "1,0", "nan,1", "0,inf"])
def test_a_domain_that_is_none(tmp_path, text):
    done = planned(tmp_path, f"--d 2 --domain {text}")
    assert done.code == 2
    assert done.stderr.count("\n") == 1


def test_a_program_has_its_own(tmp_path):
    (tmp_path / "p.py").write_text("from thereexists import program as P\np = P.sort(P.tokens(2))\n")
    done = ran("build p.py:p --domain -2 5 --out w", cwd=tmp_path)
    assert done.code == 2
    assert "A program is built with --epsilon and --dtype" in done.stderr
