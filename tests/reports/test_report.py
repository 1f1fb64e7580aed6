"""Reports say what the files say, their pictures are measured rightly, and faults of a file are told."""

import dataclasses
import html
import itertools
import json
import re
import shlex
import shutil

import numpy as np
import pytest
import torch

import thereexists as te
from tests.command import thereexists
from tests.reports.pages import EVIL, OUTSIDE, balanced
from thereexists.certificates.certificate import load_certificate
from thereexists.constructions.faithful.selective_shift import SelectiveShift
from thereexists.core import storage
from thereexists.core.errors import BadWitnessFile
from thereexists.model.digest import weights_sha256
from thereexists.model.parts import parts_of
from thereexists.reports import report
from thereexists.reports.contexts import theorem_interval
from thereexists.reports.html import LONGEST_TEXT, Page, Section, code, facts, paragraph, table, text
from thereexists.reports.measure import context_ids, receptive_fields, slice_through
from thereexists.reports.sparse import path_edges
from thereexists.reports.witness.function import build_command

KINDS = ("faithful", "equivariant", "wide", "compact", "sparse")


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_whole_and_asks_nobody(folders, page_of, kind):
    page = page_of(folders[kind])
    document = str(page)
    assert balanced(document)
    assert not OUTSIDE.search(document)
    assert "Content-Security-Policy" in document
    keys = [section.key for section in page.sections]
    assert keys[:4] == ["built", "stages", "certificate", "curves"]
    assert ("contexts" in keys) == (kind != "compact")
    assert ("pattern" in keys) == (kind == "sparse")
    assert "surfaces" in keys
    assert ("memory" in keys) == (kind == "compact")
    assert document.count("<svg ") == document.count('role="img"') == document.count("<title>") - 1
    assert not [d for d in re.findall(r' d="([^"]*)"', document) if "nan" in d or "inf" in d]


def test_the_test_for_whole_pages_can_fail():
    with pytest.raises(AssertionError):
        balanced("<p><b>x</p>")
    assert not balanced("<p>")
    for bad in ("<img src=x>", "<a href='https://x'>", "<p onclick=x>", "<style>a{background:url(x)}</style>"):
        assert OUTSIDE.search(bad)


def test_a_report_is_the_same_twice(folders, page_of):
    assert str(report(folders["faithful"])) == str(page_of(folders["faithful"]))


def test_the_figures_are_those_of_the_files(folders, page_of):
    witness = te.load(folders["faithful"])
    bound = load_certificate(folders["faithful"]).bound
    document = str(page_of(folders["faithful"]))
    assert f"d_1(f, network) ≤ {bound:.6g}, an integral over the domain, as its author says:" in document
    for part in parts_of(witness.network):
        cells = f'<td class="number">{part.layers:,}</td><td class="number">{part.parameters:,}'
        assert f"{part.name}</span></td>{cells}" in document
    assert sum(part.parameters for part in parts_of(witness.network)) == sum(
        p.numel() for p in witness.network.parameters()
    )


def test_the_curve_is_the_network_and_the_target(folders):
    witness = te.load(folders["compact"])
    cut = slice_through(witness, witness.target)
    X = np.tile(cut.others, (len(cut.x), 1, 1))
    X[:, 0, 0] = cut.x
    assert (cut.network == witness(X)).all()
    assert (cut.target == np.sort(X, axis=1)).all()


@pytest.mark.parametrize("kind", ["faithful", "wide", "equivariant"])
def test_measured_ids_are_those_of_the_lemma(folders, kind):
    """The closed form of the construction's proof, which the measurement does not use."""
    witness = te.load(folders[kind])
    found, grid = context_ids(witness), witness.grid
    column = found.cells @ grid.N ** np.arange(grid.d) + grid.slot * grid.id_pitch
    order = np.argsort(column, axis=1)
    increasing = np.take_along_axis(column, order, axis=1)
    claimed = np.empty_like(increasing)
    np.put_along_axis(claimed, order, SelectiveShift(grid).ids(increasing), axis=1)
    assert found.complete
    assert found.verdict.holds
    assert found.off < 0.25
    assert (np.rint(found.stages["after the global shift"])[found.distinct] == claimed[found.distinct]).all()
    assert (np.rint(found.stages["after the quantiser"]) == column).all()


@pytest.mark.parametrize(("n", "N"), [(2, 3), (2, 4), (3, 4)])
def test_ids_lie_in_the_interval_of_the_theorem(n, N):
    witness = te.build(te.targets.builtin("deep-sets", n=n), delta=f"1/{N}")
    found, (low, high) = context_ids(witness), theorem_interval(witness)
    assert low <= round(found.interval[0]) <= round(found.interval[1]) <= high
    assert (found.stages["after the global shift"][~found.distinct] < low).all()


def test_a_broken_contextual_mapping_is_called_one(folders):
    witness = te.load(folders["faithful"])
    with torch.no_grad():
        witness.network.stages["context"].attention.W_O.zero_()
    assert not context_ids(witness).verdict.holds


def test_receptive_fields_end_where_the_verdict_says():
    for pattern in (te.patterns.window(n=9, window=1), te.patterns.strided(n=9, stride=3), te.patterns.star(n=6)):
        fields = receptive_fields(pattern.mask(), most=100)
        assert len(fields) == te.patterns.check(pattern).depth
        assert all((a <= b).all() for a, b in itertools.pairwise(fields))
    assert not receptive_fields(np.eye(3, dtype=bool)[None], most=5)[-1].all()


def test_a_path_that_is_none_is_refused():
    masks = te.patterns.window(n=4, window=1).mask()
    assert path_edges(masks, [0, 1, 2, 3]) == [(1, 0), (2, 1), (3, 2)]
    for bad in ([0, 2, 1, 3], [0, 1, 2], [0, 1, 2, 2], [0, 1, 2, True], "0123", {"a": 1}):
        with pytest.raises(BadWitnessFile, match="Hamiltonian"):
            path_edges(masks, bad)


def test_a_certificate_of_other_weights_proves_nothing(folders, tmp_path):
    shutil.copytree(folders["faithful"], tmp_path / "w")
    shutil.copy(folders["compact"] / "certificate.json", tmp_path / "w" / "certificate.json")
    document = str(report(tmp_path / "w"))
    assert "it proves nothing here" in document
    assert "proved for every input" not in document


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["faithful", "equivariant", "compact", "sparse", "modified", "domain"])
def test_the_command_of_the_report_builds_the_same_weights(folders, tmp_path, kind):
    if kind in folders:
        witness = te.load(folders[kind])
    else:
        target = te.targets.builtin("sort", n=2, domain=(-1.0, 2.0) if kind == "domain" else (0.0, 1.0))
        witness = te.build(target, delta=1 / 2, modified=kind == "modified")
    command, _ = build_command(witness)
    _, *words = shlex.split(command)
    words += ["--set", "window=1"] if kind == "sparse" else []
    thereexists(*words, "--no-certify", "--samples", 16, "--out", "again", "--json", cwd=tmp_path)
    assert weights_sha256(te.load(tmp_path / "again").network) == weights_sha256(witness.network)


def test_a_head_is_drawn_and_verified_again(head):
    made, folder = head
    page = report(folder)
    assert page.kind == "head"
    document = str(page)
    assert balanced(document)
    assert not OUTSIDE.search(document)
    assert "Every checked row keeps" in document
    (drawn,) = re.findall(r'aria-label="target".*?</svg>', document, flags=re.S)
    assert drawn.count("v") - drawn.count("var") >= made.target.nonzeros  # one closed cell for each


def test_a_head_that_does_not_show_its_target_is_told(head, tmp_path):
    made, _ = head
    lie = dataclasses.replace(made.verified)  # said anew, of other inputs
    dataclasses.replace(made, X=made.X.flip(0).contiguous(), verified=lie).save(tmp_path / "h")
    document = str(report(tmp_path / "h"))
    assert "Not every checked row keeps" in document
    assert ">Every checked row keeps" not in document


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["star", "--n", 9], "Universal: every condition"),
        (["strided", "--n", 1024, "--set", "stride=32"], "16.0 × 16.0"),
        (["apart.npz"], "the field stops growing"),
    ],
)
def test_a_pattern_is_judged_and_drawn(tmp_path, words, says):
    np.savez(tmp_path / "apart.npz", mask=np.kron(np.eye(2), np.ones((3, 3))).astype(bool))  # two halves, never one
    done = json.loads(thereexists("report", *words, "--out", "p.html", "--json", cwd=tmp_path).stdout)
    assert done["kind"] == "pattern"
    document = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert balanced(document)
    assert not OUTSIDE.search(document)
    assert says in document
    assert ("Universal: every" in document) == (words[0] != "apart.npz")


# --- hostile and broken files ----------------------------------------------------------------------------------------


def rewritten(folders, tmp_path, target=None, **plan):
    """A saved witness whose record somebody rewrote, with digests that fit."""
    record, weights = storage.read(folders["sparse"])
    record["target"] |= target or {}
    record["plan"] |= plan
    storage.write(tmp_path / "evil", record, weights)
    return tmp_path / "evil"


def test_hostile_text_stays_text(folders, tmp_path):
    origin = {"kind": EVIL, "reference": EVIL, "sha256": EVIL}
    pattern = te.load(folders["sparse"]).plan.pattern | {"name": EVIL}
    changes = {"name": EVIL, "description": EVIL * 1000, "origin": origin}
    folder = rewritten(folders, tmp_path, target=changes, pattern=pattern)
    document = str(report(folder))
    assert balanced(document)
    assert html.escape(EVIL, quote=True)[:40] in document
    for tag in ("<script", "<img", "onerror=window.pwned=2>", "' onload"):
        assert tag not in document
    assert len(document) < 400_000


@pytest.mark.parametrize(
    "pattern",
    [
        {"name": "x", "path": [0, 2, 1, 3], "depth": 3},
        {"name": "x", "path": [0, 1, 2, 3], "depth": "deep"},
        {"name": "x", "path": [0, 1, 2, 3], "depth": 2},
        {"name": "x"},
        None,
    ],
)
def test_a_malformed_record_is_refused_in_one_sentence(folders, tmp_path, pattern):
    folder = rewritten(folders, tmp_path, pattern=pattern)
    done = thereexists("report", folder, "--out", "r.html", cwd=tmp_path, code=2)
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("field", ["construction", "theorem"])
def test_words_that_no_plan_holds_are_refused(folders, tmp_path, field):
    with pytest.raises(BadWitnessFile, match="its plan does not hold"):
        report(rewritten(folders, tmp_path, **{field: EVIL}))


def test_an_enormous_record_is_refused(folders, tmp_path):
    shutil.copytree(folders["faithful"], tmp_path / "w")
    (tmp_path / "w" / "witness.json").write_bytes(b" " * ((16 << 20) + 1))
    with pytest.raises(BadWitnessFile, match="16,777,217 bytes"):
        report(tmp_path / "w")


def test_every_builder_escapes():
    evil, safe = "<b>&\"'", "&lt;b&gt;&amp;&quot;&#x27;"
    page = Page("x", evil, evil, (Section("k", evil, paragraph(evil, evil)),))
    for made in (text(evil), code(evil), facts({evil: evil}), table([evil], [[evil]], evil), str(page)):
        assert safe in made
        assert "<b>" not in made
    assert len(text("x" * 10_000)) < LONGEST_TEXT + 20


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_one_page(folders, tmp_path):
    done = json.loads(thereexists("report", folders["compact"], "--out", "r.html", "--json", cwd=tmp_path).stdout)
    assert done["kind"] == "witness"
    assert done["bytes"] == (tmp_path / "r.html").stat().st_size
    assert [file.name for file in tmp_path.iterdir()] == ["r.html"]
    assert (
        "r.html: There exists"
        in thereexists("report", folders["compact"], "--out", "r.html", "--force", cwd=tmp_path).stdout
    )


def test_a_function_of_ones_own_is_drawn_when_given_again(tmp_path):
    (tmp_path / "my.py").write_text('def half(X):\n    """half of <it>"""\n    return X / 2\n')
    build = ("build", "my.py:half", "--n", 1, "--delta", "1/4", "--lipschitz", 0.5, "--no-certify", "--out", "w")
    thereexists(*build, cwd=tmp_path)
    thereexists("report", "w", "--out", "r.html", cwd=tmp_path)
    alone = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "give it with --function" in alone
    assert "half of &lt;it&gt;" in alone
    assert "has no certificate" in alone
    thereexists("report", "w", "--out", "r.html", "--force", "--function", "my.py:half", cwd=tmp_path)
    assert "largest difference is 0.06" in (tmp_path / "r.html").read_text(encoding="utf-8")  # half a cell, halved


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "There is no nowhere"),
        (["."], "not an artefact that a report can read"),
        (["W", "--out", "r.pdf"], "must end in .html"),
        (["W", "--out", "/proc/r.html"], "Cannot write /proc"),
        (["W", "--out", "folder.html"], "is a folder"),
        (["W", "--function", "none.py:f"], "There is no file"),
        (["zigzag", "--n", "8"], "zigzag"),
        (["none.npz"], "There is no file"),
        (["strided"], "needs a number of tokens"),
    ],
)
def test_bad_input_gets_one_sentence(folders, tmp_path, arguments, says):
    (tmp_path / "folder.html").mkdir()
    words = [str(folders["compact"]) if word == "W" else word for word in arguments]
    done = thereexists("report", *words, cwd=tmp_path, code=2)
    assert says in done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
