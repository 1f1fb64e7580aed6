"""Small witnesses of every kind, saved with their certificates."""

import functools

import pytest

import thereexists as te
from tests.reports.pages import EVIL
from thereexists.core import storage


def saved(folder, *, certified=True, **request):
    target = te.targets.builtin(request.pop("name"), n=request.pop("n"), d=request.pop("d", 1))
    witness = te.build(target, **request)
    witness.save(folder)
    if certified:
        te.certify(witness).save(folder)
    return folder


@pytest.fixture(scope="session")
def head(tmp_path_factory):
    """A small head for a random target, and its folder."""
    folder = tmp_path_factory.mktemp("head") / "h"
    made = te.heads.fit(te.heads.random_matrix(12, 1, seed=0), method="corrected")
    made.save(folder)
    return made, folder


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    at = tmp_path_factory.mktemp("report")
    window = te.patterns.window(n=4, window=1)
    return {
        "faithful": saved(at / "faithful", name="sort", n=2, delta=1 / 4),
        "equivariant": saved(at / "equivariant", name="softmax-attention", n=2, delta=1 / 4, certified=False),
        "wide": saved(at / "wide", name="sort", n=2, d=2, delta=1 / 2, certified=False),
        "compact": saved(at / "compact", name="sort", n=2, delta=1 / 4, construction="compact"),
        "sparse": saved(at / "sparse", name="sort", n=4, delta=1 / 2, pattern=window, certified=False),
    }


@pytest.fixture(scope="session")
def page_of():
    """The page of an artefact that no test changes, made once."""
    from thereexists.reports import report

    return functools.cache(report)


@pytest.fixture(scope="session")
def tokens(tmp_path_factory):
    """A memorised data set and a table, saved."""
    at = tmp_path_factory.mktemp("tokens")
    pairs = [["a", "dog"], ["a", "cat"], ["birds"]], [["pes"], ["kočka"], ["ptáci", "zpívají"]]
    te.memorise(*pairs, seed=0).save(at / "memorise")
    table = te.Table(inputs=[[0, 0], [0, 1], [1, 0], [1, 1]], outputs=[[0, 0], [1, 0], [1, 0], [0, 1]])
    te.build(table, construction="compact").save(at / "table")
    return {"memorise": at / "memorise", "table": at / "table"}


@pytest.fixture(scope="session")
def machines(tmp_path_factory):
    """A pattern by doubling, and a group by counting, saved."""
    at = tmp_path_factory.mktemp("machines")
    te.build(te.automata.regex("(ab|ba)*", "ab"), n=40).save(at / "doubling")
    te.build(te.automata.from_function(lambda q, a: (q + int(a)) % 7, 0, "0123", accept=[0]), n=40).save(
        at / "counting"
    )
    return {"doubling": at / "doubling", "counting": at / "counting"}


@pytest.fixture(scope="session")
def hostile(folders, tmp_path_factory):
    """A witness whose record somebody filled with markup, with digests that fit."""
    record, weights = storage.read(folders["faithful"])
    origin = {"kind": EVIL, "reference": EVIL, "sha256": EVIL}
    record["target"] |= {"name": EVIL, "description": EVIL * 1000, "origin": origin}
    folder = tmp_path_factory.mktemp("hostile") / "w"
    storage.write(folder, record, weights)
    return folder
