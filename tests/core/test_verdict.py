"""A verdict comes with evidence; "witness" is a network and nothing else."""

import ast
import dataclasses
import json
import re
from pathlib import Path

import pytest

import thereexists as te
from thereexists import heads
from thereexists.core.verdict import Verdict

SOURCE = Path(te.__file__).parent
NAMED = re.compile(r"""\.[\s\\]*witness\b|["']witness["']""")  # a file without it has no such node


def test_the_fields_of_a_verdict():
    assert [field.name for field in dataclasses.fields(Verdict)] == ["holds", "reasons", "evidence"]
    with pytest.raises(ValueError, match="undecided"):
        bool(Verdict(None))


def test_evidence_of_checks_that_go_either_way():
    assert te.patterns.check(te.patterns.dense(4).as_causal()).causal.evidence.depth == 1
    verdict = te.patterns.PROBABILITY_MAPS["sparsemax"].assumption2()
    assert verdict.evidence(0.5, 0.1, 4) == 2.0


def test_a_saved_head_calls_it_evidence(tmp_path):
    heads.fit(heads.random_matrix(8, 2), eps1=0.1, eps2=0.1).save(tmp_path / "h")
    stated = json.loads((tmp_path / "h" / "head.json").read_text())["verification"]["verdict"]
    assert stated.keys() == {"holds", "reasons", "evidence"}
    assert heads.load(tmp_path / "h").verification.verdict.evidence == stated["evidence"]


def called_witness(tree):
    """A verdict's field by its old name: ``verdict.witness``, or an entry ``["witness"]`` of something's verdict."""
    for node in ast.walk(tree):
        attribute = isinstance(node, ast.Attribute) and node.attr == "witness"
        entry = (
            isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == "witness"
        )
        owner = ast.unparse(node.value).rpartition(".")[2] if attribute or entry else "self"
        if owner not in ("self", "thereexists", "summary", "asked"):
            yield ast.unparse(node)


def test_no_verdict_is_asked_for_a_witness():
    texts = [text for text in (file.read_text() for file in SOURCE.rglob("*.py")) if NAMED.search(text)]
    assert {what for text in texts for what in called_witness(ast.parse(text))} == set()
    assert all(NAMED.search(text) for text in ("x.witness", "x[ 'witness' ]", 'x["witness"]', "x.\\\n witness"))
    assert list(called_witness(ast.parse("x = found.verdict.witness")))  # planted
    assert list(called_witness(ast.parse("x = verdict['witness']")))
