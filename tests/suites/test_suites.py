"""The command: one line, one JSON object, exit codes."""

import json

from tests.cli.in_process import ran


def test_the_command_makes_checks_and_scores(tmp_path):
    made = ran("suite verifier --out vnn --count 1 --json", cwd=tmp_path)
    assert json.loads(made.stdout)["count"] == 1
    assert json.loads(ran("suite floor vnn --out f.csv --json", cwd=tmp_path).stdout)["answers"] == "f.csv"
    assert json.loads(ran("suite score vnn f.csv --json", cwd=tmp_path).stdout)["total"]["instances"] == 1
    assert "instances 1" in ran("suite score vnn f.csv", cwd=tmp_path).stdout
    assert json.loads(ran("suite check vnn --json", cwd=tmp_path).stdout)["holds"]
    (tmp_path / "vnn" / "README.md").write_text("another")
    assert ran("suite check vnn", cwd=tmp_path).code == 1
    assert ran("suite check .", cwd=tmp_path).code == 2
