"""What ``show`` takes and what ``verify`` takes is the same: no record holds for one and is none for the other."""

import shutil

import pytest

import thereexists as te
from tests.command import thereexists
from tests.hostile import forge_record
from thereexists import program as P

MEASURED = {"p": 1.0, "estimate": 0.1, "low": 0.0, "high": 0.2, "samples": 4096, "confidence": 0.95, "seed": 0}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    at = tmp_path_factory.mktemp("made")
    sort = te.targets.builtin("sort", n=2)
    for name, witness in (
        ("faithful", te.build(sort, delta=1 / 2)),
        ("compact", te.build(sort, delta=1 / 2, construction="compact")),
        ("sparse", te.build(sort, delta=1 / 2, pattern=te.patterns.star(n=2))),
        ("memorise", te.memorise([["a"], ["b"]], [["c"], ["d"]])),
        ("program", te.build(P.sort(P.tokens(2)))),
        ("table", te.build(te.Table([[0, 1], [1, 0]], [[1, 1], [0, 0]]))),
    ):
        witness.save(at / name)
        if name not in ("memorise", "program", "table"):
            te.certify(witness, opinions=1).save(at / name)
    return at


def distance(**fields):
    return lambda r: r.update(distance={**MEASURED, **fields})


def info(*left_out, **fields):
    return lambda r: r.update(info={k: v for k, v in {**r["info"], **fields}.items() if k not in left_out})


def plan(**fields):
    return lambda r: r["plan"].update(fields)


FORGED = {
    "p is 0": ("faithful", distance(p=0.0)),
    "samples are a fraction": ("compact", distance(samples=0.5)),
    "an estimate in words": ("faithful", distance(estimate="small")),
    "certainty": ("compact", distance(confidence=2.0)),
    "memory that is none": ("faithful", plan(memory_bytes=-1)),
    "ids without bits": ("faithful", plan(id_bits=-1.0)),
    "a negative budget": ("compact", plan(epsilon=-1.0)),
    "no connections": ("sparse", lambda r: r["plan"]["pattern"].update(connections=[])),
    "a path of words": ("sparse", lambda r: r["plan"]["pattern"].update(path=["a", "b"])),
    "no count of tokens": ("memorise", info("memorised_tokens")),
    "no lower bound": ("memorise", info("lower_bound_up_to_logs")),
    "a rate in words": ("memorise", info(parameters_per_token="few")),
    "conflicts are a number": ("memorise", info(conflicts=7)),
    "a name too long": ("program", lambda r: r.update(name=300 * "x")),
    "a name that is a number": ("program", lambda r: r.update(name=5)),
    "no contexts": ("table", info("contexts")),
    "units in words": ("table", info(units="many")),
    "the words of the other kind": ("table", info(memorised_tokens=1)),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_cannot_be_shown_is_not_verified(made, tmp_path, name):
    kind, change = FORGED[name]
    folder = shutil.copytree(made / kind, tmp_path / "w")
    forge_record(folder, change)
    refused = thereexists("show", "w", cwd=tmp_path, code=2).stderr
    assert "is not a complete witness" in refused
    thereexists("show", "w", "--json", cwd=tmp_path, code=2)
    assert te.verify(folder).holds is False
    with pytest.raises(te.ThereExistsError):
        te.load(folder)


@pytest.mark.parametrize("kind", ["faithful", "compact", "sparse", "memorise", "table"])
def test_honest_records_are_shown_and_hold(made, tmp_path, kind):
    folder = shutil.copytree(made / kind, tmp_path / "w")
    if kind not in ("memorise", "table"):
        forge_record(folder, distance())
    thereexists("show", "w", cwd=tmp_path)
    assert te.verify(folder).holds
