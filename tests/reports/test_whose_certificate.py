"""A certificate is shown of the witness beside it if, and only if, it is about its weights and what they should do."""

import shutil

import pytest

import thereexists as te
from tests.command import thereexists
from tests.hostile import forge_certificate, forge_record
from thereexists import program as pr
from thereexists.functions.described import differing
from thereexists.reports import report
from thereexists.reports.explore.viewer import open_viewer

RING = """
import numpy as np
import thereexists as te

ring = te.domains.Implicit(
    lambda x: np.abs(np.linalg.norm(x - 0.5, axis=1) - 0.3) - 0.1, 0, 1, lipschitz=2.0, whole=True
)
other = ring
"""
NOTHING = "it proves nothing here"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    at = tmp_path_factory.mktemp("made")
    for name, target, options in (
        ("function", te.targets.builtin("sort", n=2), {"delta": 1 / 2, "construction": "compact"}),
        ("program", pr.tokens(2) + 1.0, {}),
        ("symbols", pr.symbols("ab", n=2).sort(), {}),
        ("automaton", te.automata.regex("(ab|ba)*", "ab"), {"n": 8}),
    ):
        witness = te.build(target, **options)
        witness.save(at / name)
        if name == "function":
            te.certify(witness, opinions=1).save(at / name)
    return at


@pytest.fixture
def copy(made, tmp_path):
    return lambda name: shutil.copytree(made / name, tmp_path / name)


@pytest.mark.parametrize("name", ["function", "program", "symbols", "automaton"])
def test_its_own(made, name):
    assert te.load(made / name).certificate is not None
    assert open_viewer(made / name).about()["certified"]


def test_a_function_on_another_box(copy):
    folder = copy("function")

    def wider(r):
        r["grid"].update(origin=[0.0], step=[2.0], high=[4.0])
        r["target"]["high"] = [4.0]

    forge_record(folder, wider)
    foreign(folder)
    assert NOTHING in str(report(folder))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("function", lambda r: r["target"].update(lipschitz=3.0)),
        ("program", lambda r: r.update(program_sha256="0" * 64)),
        ("automaton", lambda r: r.update(automaton_sha256="0" * 64)),
        *((name, lambda r: r.update(weights_sha256="0" * 64)) for name in ("function", "program", "automaton")),
    ],
)
def test_what_the_certificate_says_it_is_about(copy, name, change):
    folder = copy(name)
    forge_certificate(folder, change)
    foreign(folder)


def foreign(folder):
    """It is neither the witness's certificate, nor shown as one; and ``verify`` refuses it, too."""
    assert te.load(folder).certificate is None
    assert open_viewer(folder).about()["certified"] is None
    assert "nothing is proved about this folder" in str(report(folder))
    assert te.verify(folder).holds is False


def test_a_file_that_was_moved_is_the_same_file(tmp_path):
    """Built from one place, certified again from another: ``verify`` and ``report`` say the same of it."""
    for place in "ab":
        (tmp_path / place).mkdir()
        (tmp_path / place / "ring.py").write_text(RING)
    old, new = (("--domain", f"{place}/ring.py:ring") for place in "ab")
    build = ("build", "sort", "--n", 2, "--delta", "1/4", "--construction", "compact", "--no-certify", "--out", "w")
    thereexists(*build, *old, cwd=tmp_path)
    thereexists("certify", "w", *new, cwd=tmp_path)
    assert "holds" in thereexists("verify", "w", *new, cwd=tmp_path).stdout
    for again in (old, new):
        thereexists("report", "w", *again, "--out", "r.html", "--force", cwd=tmp_path)
        page = (tmp_path / "r.html").read_text()
        assert NOTHING not in page
        assert "not certified" not in page


def test_only_where_a_file_lies_makes_no_difference():
    origin = {"kind": "file", "reference": "/a/ring.py:ring", "sha256": "0"}
    one = {
        "name": "f",
        "origin": origin,
        "domain": {"kind": "union", "parts": [{"kind": "implicit", "origin": origin}]},
    }
    moved, other = ({**origin, "reference": f"/b/ring.py:{name}"} for name in ("ring", "other"))
    assert not differing(one, {**one, "origin": moved, "domain": {"kind": "union", "parts": [{"kind": "implicit", "origin": moved}]}})  # noqa: E501  # fmt: skip
    assert differing(one, {**one, "domain": {"kind": "union", "parts": [{"kind": "implicit", "origin": other}]}}) == ["domain"]  # noqa: E501  # fmt: skip
    assert differing(one, {**one, "origin": {**origin, "sha256": "1"}}) == ["origin"]
    assert differing(one, {**one, "lipschitz": None}) == ["lipschitz"]
