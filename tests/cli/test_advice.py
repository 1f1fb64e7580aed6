"""A build that cannot be what was hoped for says what can: the compact construction, or a statistical certificate."""

import json

import pytest

from tests.cli.in_process import ran

FAR = "deep-sets --n 3 --delta 1/4"  # equal columns on 62 % of the inputs


def one_line(text):
    return " ".join(text.split())


@pytest.mark.parametrize("command", ["plan", "build --no-certify --out w"])
def test_equal_columns_point_to_the_compact_construction(command, tmp_path):
    said = one_line(ran(f"{command} {FAR}", cwd=tmp_path).stdout)
    assert "On 63% of the inputs two tokens lie in one cell" in said
    assert "--construction compact" in said
    (sentence,) = json.loads(ran(f"{command} {FAR} --json", cwd=tmp_path).stdout)["advice"]
    assert "--construction compact" in sentence


@pytest.mark.parametrize("other", ["--construction compact", "--no-equivariant"])
def test_what_it_points_to_has_nothing_to_say(other, tmp_path):
    assert json.loads(ran(f"plan deep-sets --n 2 --delta 1/4 {other} --json", cwd=tmp_path).stdout)["advice"] == []


def test_a_black_box_points_to_a_statistical_certificate(tmp_path):
    (tmp_path / "my.py").write_text("def f(X):\n    return X\n")
    said = json.loads(ran("build my.py:f --n 1 --delta 1/2 --out 'a b' --json", cwd=tmp_path).stdout)
    assert said["certificate"] is None
    command = said["not_certified"].partition("confidence: thereexists ")[2]
    assert command == f"certify 'a b' --function {tmp_path.resolve()}/my.py:f --bound …"
    done = ran(command.replace("…", "1") + " --json", cwd=tmp_path)  # and it works as it stands
    assert (done.code, json.loads(done.stdout)["kind"]) == (0, "statistical")
    words = one_line(ran("build my.py:f --n 1 --delta 1/2 --out w", cwd=tmp_path).stdout)
    assert "Not certified: that takes a Lipschitz constant" in words
    assert "--bound" in words


@pytest.mark.slow
def test_an_epsilon_that_equal_columns_forbid_points_there_too(tmp_path):
    done = ran("build deep-sets --n 3 --epsilon 0.05", cwd=tmp_path)
    assert done.code == 2
    assert "--construction compact" in done.stderr
