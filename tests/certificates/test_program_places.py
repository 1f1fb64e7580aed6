"""What a saved program says of its places must at least be places that there are."""

import pytest

import thereexists as te
from tests.hostile import forge_certificate, forge_record
from thereexists import program as P
from thereexists.certificates.program_places import check_places
from thereexists.constructions.program.building import places
from thereexists.constructions.program.saving import to_record


@pytest.fixture
def folder(tmp_path):
    te.build(P.sort(P.tokens(n=2))).save(tmp_path / "w")
    return tmp_path / "w"


FALSE = {
    "garbage": lambda r: r.update(places="proved"),
    "a block that is not there": lambda r: r["places"][-1].update(block=99),
    "a half that is not there": lambda r: r["places"][-1].update(half="proved"),
    "an embedding inside": lambda r: r["places"][-1].update(half="embedding"),
    "a row that is not there": lambda r: r["places"][-1]["made"][0].__setitem__(1, 10**6),
    "a row below 0": lambda r: r["places"][-1]["made"][0].__setitem__(1, -1),
    "a row that is true": lambda r: r["places"][-1]["made"][0].__setitem__(1, True),
    "an operation that is not there": lambda r: r["places"][-1]["made"][0].__setitem__(0, "proved by all"),
    "a place twice": lambda r: r["places"].append(r["places"][-1]),
    "a word more": lambda r: r["places"][-1].update(proved=True),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FALSE)
def test_places_that_cannot_be_are_refused(folder, fault):
    forge_record(folder, FALSE[fault])
    assert any(reason.startswith("places: ") for reason in te.verify(folder).reasons)
    with pytest.raises(te.ThereExistsError):
        te.load(folder)


def test_reasons_and_bounds_hold_nothing_else(folder):
    assert te.verify(folder).holds
    forge_certificate(folder, lambda c: c["reasons"].update(int4="proved"))
    assert any("reasons" in reason or "int4" in reason for reason in te.verify(folder).reasons)
    forge_certificate(folder, lambda c: (c["reasons"].clear(), c["bounds"]["float64"].update(proved=0.0)))
    assert any("bound" in reason for reason in te.verify(folder).reasons)


@pytest.mark.parametrize("name", ["argsort", "prefix_mean", "mean", "sum", "median", "cumsum", "rank"])
@pytest.mark.parametrize("shorter", [False, True])
def test_operations_that_are_made_of_others_keep_their_places(name, shorter):
    make = {"argsort": lambda x: P.argsort(x, margin=0.1), "rank": lambda x: P.rank(x, margin=0.1)}
    try:
        program = make.get(name, getattr(P, name))(P.tokens(3, shorter=shorter))
        compiled = P.compile(program)
    except te.ThereExistsError:
        return  # not for shorter sequences
    check_places(list(places(compiled)), to_record(program), compiled.network)
