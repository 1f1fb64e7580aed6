"""What a record says of its network beside the weights is compared with them, field by field."""

import shutil

import pytest

import thereexists as te
from tests.hostile import forge_record
from thereexists import program as P
from thereexists.core.errors import BadWitnessFile


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("described")
    te.build(P.tokens(n=2) * [0.5, 2.0]).save(folder / "program")
    te.memorise([["a", "b"]], [["x"]]).save(folder / "tokens")
    for name, target in (("compact", te.targets.builtin("sort", n=2)), ("faithful", te.targets.builtin("sort", n=2))):
        witness = te.build(target, delta=1 / 2, construction=name)
        witness.save(folder / name)
        te.certify(witness, opinions=1).save(folder / name)
    for name in KINDS:
        assert te.verify(folder / name).holds
    return folder


KINDS = ("program", "tokens", "compact", "faithful")
FALSE = {
    "positions": lambda structure: structure.update(E=[7, 9]),
    "input": lambda structure: structure.update(input="pictures"),
    "needs": lambda structure: structure.update(needs="float64" if structure["needs"] is None else None),
    "something more": lambda structure: structure.update(seen="nothing"),
    "a number": lambda structure: structure["stages"][min(structure["stages"])].update(depth=1.0),
}


@pytest.mark.parametrize("what", FALSE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_false_word_about_the_network_is_refused(kind, what, honest, tmp_path):
    folder = shutil.copytree(honest / kind, tmp_path / "w")
    forge_record(folder, lambda record: FALSE[what](record["structure"]))
    verdict = te.verify(folder)
    assert verdict.holds is False, what
    if what == "needs" and kind == "faithful":
        return  # that is no description, but part of what the certificate is about
    with pytest.raises(BadWitnessFile, match=r"is described as|hold arrays|lack the array"):
        te.load(folder)
