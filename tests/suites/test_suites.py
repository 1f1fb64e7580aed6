"""The command: one line, one JSON object, exit codes. Both whole suites, made twice (slow)."""

import json
import resource
import time

import jsonschema
import pytest

from tests.cli.in_process import ran
from thereexists.suites.circuits.make import make_circuits
from thereexists.suites.verifier.make import make_verifier


def test_the_command_makes_checks_and_scores(tmp_path):
    made = ran("suite verifier --out vnn --count 1 --json", cwd=tmp_path)
    assert json.loads(made.stdout)["count"] == 1
    assert json.loads(ran("suite floor vnn --out f.csv --json", cwd=tmp_path).stdout)["answers"] == "f.csv"
    score = json.loads(ran("suite score vnn f.csv --json", cwd=tmp_path).stdout)
    assert score["total"]["instances"] == 1
    assert score.pop("as_its_author_says") == list(score)
    title, *_, total = ran("suite score vnn f.csv", cwd=tmp_path).stdout.splitlines()
    assert total.startswith("instances 1")
    assert [line.strip().endswith("(as its author says)") for line in (title, total)] == [True, True]
    assert json.loads(ran("suite check vnn --json", cwd=tmp_path).stdout)["holds"]
    (tmp_path / "vnn" / "README.md").write_text("another")
    assert ran("suite check vnn", cwd=tmp_path).code == 1
    assert ran("suite check .", cwd=tmp_path).code == 2


def contents(folder):
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def processor_seconds():
    """Of this process and of all that it has waited for."""
    some = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in some)


@pytest.mark.slow
def test_both_whole_suites_twice_in_the_same_bytes_and_in_time(tmp_path):
    """300 instances and 200 models, by two processes, in less than 15 minutes; and every JSON file fits its schema.

    Twice 15 minutes of processor time, that is: the cores of this machine may have other work.
    """
    start = time.monotonic(), processor_seconds()
    made = make_verifier(tmp_path / "vnn", count=300, workers=2)
    models = make_circuits(tmp_path / "bench", count=200, workers=2)
    used = processor_seconds() - start[1]
    print(f"{time.monotonic() - start[0]:.0f} s, {used:.0f} s of processor time", made, models)
    assert used < 2 * 15 * 60
    assert (made["count"], models["count"]) == (300, 200)
    assert min(made["sat"], made["unsat"]) >= 100
    schemas = 0
    for name in ("vnn", "bench"):
        for file in sorted((tmp_path / name).rglob("*.json")):
            schema = tmp_path / name / f"{file.stem}.schema.json"
            if schema.is_file():
                jsonschema.validate(json.loads(file.read_text()), json.loads(schema.read_text()))
                schemas += 1
    assert schemas == 2 + 1 + 200 + 33  # suite and truth; suite, circuits, superpositions
    make_verifier(tmp_path / "vnn again", count=300, workers=2)
    make_circuits(tmp_path / "bench again", count=200, workers=2)
    for name in ("vnn", "bench"):
        one, two = contents(tmp_path / name), contents(tmp_path / f"{name} again")
        assert one.keys() == two.keys()
        assert [file for file in one if one[file] != two[file]] == []
