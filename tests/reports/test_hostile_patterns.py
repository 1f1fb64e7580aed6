"""Records that name patterns of any size, or whose page fails in unusual ways: one sentence, and at once."""

import json
import time

import pytest

from thereexists.core.errors import BadWitnessFile
from thereexists.reports import report
from thereexists.reports.artefact import malformed


@pytest.mark.parametrize(
    ("name", "n", "sizes"),
    [
        ("random", 1 << 20, {"degree": 500_000, "seed": 0}),
        ("alternating", 64, {"period": 10**8, "window": 1}),
        ("dilated", 1 << 20, {"window": 10**6, "dilation": 1}),
        ("bigbird", 1 << 16, {"block": 1 << 15, "random_blocks": 1, "seed": 0}),
    ],
)
def test_a_verdict_about_a_huge_pattern_is_shown_without_building_it(tmp_path, name, n, sizes):
    route = {"status": "found", "method": "rule", "path": None}
    verdict = {
        "name": name, "n": n, "hamiltonian_path": route, "universal": True, "reasons": [], "self_loops": True,
        "receptive_depth": 2, "farthest_pair": None, "connections": [1], "sparsity": 0.5, "config": "sequential",
        "seconds": 0.1, "parameters": sizes,
    }  # fmt: skip
    (tmp_path / "check.json").write_text(json.dumps(verdict))
    began = time.process_time()
    page = str(report(tmp_path / "check.json"))
    assert time.process_time() - began < 20
    assert "pairs to list; from a record up to 16,777,216 are taken" in page


@pytest.mark.parametrize("error", [StopIteration(), MemoryError(), RecursionError("x\ny"), ZeroDivisionError("a")])
def test_whatever_a_record_breaks_is_one_sentence(tmp_path, error):
    with pytest.raises(BadWitnessFile, match="cannot be reported") as said, malformed(tmp_path):
        raise error
    assert "\n" not in str(said.value)


def test_a_run_without_stages_is_one_sentence(tmp_path):
    record = {"experiment": "lm", "size": "mini", "run": "x", "labels": {}, "seed": 0, "seconds": 1.0, "stages": {}}
    (tmp_path / "run.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"its 'stages' must be an object with at least one stage"):
        report(tmp_path / "run.json")
