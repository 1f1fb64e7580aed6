"""report on every kind of artefact: exactly one kind claims it, its page is whole, and a forged one is refused."""

import html
import json
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

import thereexists as te
from tests.command import thereexists
from tests.reports.pages import EVIL, OUTSIDE, balanced
from thereexists import program as P
from thereexists.core.errors import ThereExistsError
from thereexists.reports import Found, every_kind, report
from thereexists.reports.measure import SIDE, WITHIN, between_edges, plane_through
from thereexists.reports.memory import recall_of
from thereexists.reports.surface import LEVELS, field, surface

DATA = Path(__file__).parents[3] / "docs" / "data"
PLACES = (
    "faithful", "memorise", "table", "head", "certificate.json", "certify.json", "verify.json",
    "check.json", "apart.json", "compare.json", "fit.json", "head-verify.json", "target.npz", "mask.npz",
    "config.json", "study.json", "records", "runs", "records.json", "run.jsonl", "results.json",
)  # fmt: skip

WORDS_ON_PROOF = {
    "certified", "not certified", "verified", "partly verified", "not verified", "recalled", "measured", "no head yet",
    "universal", "not universal", "undecided",
}  # fmt: skip


@pytest.fixture(scope="module")
def artefacts(folders, tokens, head, tmp_path_factory):
    """One artefact of every kind, each as its command writes it."""
    at = tmp_path_factory.mktemp("artefacts")

    def printed(name, *words, code=0):
        (at / name).write_text(thereexists(*words, "--json", cwd=at, code=code).stdout)

    printed("certify.json", "certify", folders["compact"])
    printed("verify.json", "verify", folders["compact"])
    printed("check.json", "pattern", "check", "strided", "--n", 12, "--stride", 4)
    np.savez(at / "mask.npz", mask=np.kron(np.eye(2), np.ones((3, 3))).astype(bool))
    printed("apart.json", "pattern", "check", "mask.npz")
    printed("compare.json", "pattern", "compare", "--n", 16)
    te.heads.save_matrix(te.heads.random_matrix(12, 1, seed=0), at / "target.npz")
    printed("fit.json", "heads", "fit", "target.npz", "--method", "corrected")
    printed("head-verify.json", "heads", "verify", head[1])
    config = {"model_type": "mistral", "max_position_embeddings": 64, "num_hidden_layers": 2, "sliding_window": 8}
    (at / "config.json").write_text(json.dumps(config))
    (at / "study.json").write_bytes((DATA / "heads-study.json").read_bytes())
    records = (DATA / "experiments" / "table-a-mini.json").read_bytes()
    (at / "records").mkdir()
    (at / "records" / "table-a-mini.json").write_bytes(records)
    (at / "records.json").write_bytes(records)
    (at / "runs" / "mini" / "a").mkdir(parents=True)
    (at / "runs" / "mini" / "a" / "run.json").write_text(json.dumps(json.loads(records)["records"][0]))
    (at / "run.jsonl").write_text(json.dumps(json.loads(records)["records"][0]) + "\n")
    printed("results.json", "results", "records")
    places = {name: at / name for name in PLACES}
    return places | folders | tokens | {"head": head[1], "certificate.json": folders["compact"] / "certificate.json"}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", PLACES)
def test_every_artefact_has_one_kind_and_a_whole_page(artefacts, page_of, name):
    found = Found(artefacts[name])
    assert len([kind.name for kind in every_kind() if kind.recognises(found)]) == 1
    document = str(page_of(artefacts[name]))
    assert balanced(document)
    assert not OUTSIDE.search(document)
    assert document.count("<svg ") == document.count('role="img"')
    assert not [d for d in re.findall(r' d="([^"]*)"', document) if "nan" in d or "inf" in d]


@pytest.mark.parametrize("name", PLACES)
def test_the_first_screen_has_three_numbers_a_paper_and_a_word_on_proof(artefacts, page_of, name):
    document = str(page_of(artefacts[name]))
    first = document[: document.index("<nav")]
    assert first.count('<span class="figure">') == 3
    assert re.search(r"arXiv:\d{4}\.\d{5}", first)
    figures = re.findall(r'<span class="figure">([^<]*)<', first)
    assert set(figures) & WORDS_ON_PROOF or name == "compare.json", figures
    assert "<svg" in first


def test_a_verdict_is_drawn_check_by_check(artefacts, page_of, tmp_path):
    """A mark for every check, in the colour of its result; numbers and tables in words."""
    document = str(page_of(artefacts["verify.json"]))
    record = json.loads(artefacts["verify.json"].read_text())
    assert document.count('class="mark good"') == 2 * len(record["checks"])  # the picture, and the list
    assert not re.search(r"\{&#x27;|\de-\d", document)
    record["holds"], record["checks"][1]["passed"], record["checks"][2]["passed"] = False, False, "yes"
    record["checks"][3]["passed"] = None
    forged = tmp_path / "verify.json"
    forged.write_text(json.dumps(record))
    document = str(report(forged))
    assert document.count('class="mark bad"') == 2 * 2  # what is no truth value is no pass
    assert document.count('class="mark soft"') == 2
    first = document[: document.index("<nav")]
    assert f"{len(record['checks']) - 3} of {len(record['checks'])}" in first


def test_a_bound_is_drawn_against_what_was_asked_for(folders, tmp_path):
    from thereexists.reports.verdict_pictures import Size, bound_picture, decades

    made = te.build(P.sort(P.tokens(2)), epsilon=1e-3).certificate
    drawn = bound_picture(made, says="")
    assert "The dashed line is what was asked for: 0.001." in drawn
    (line,) = re.findall(r'curve dash k0" d="M([\d.]+),', drawn)
    dots = [float(x) for x in re.findall(r'class="f3" cx="([\d.]+)"', drawn)]
    assert dots
    assert max(dots) < float(line)
    assert drawn.count('class="mark good"') == len(made.bounds)
    assert "dash" not in bound_picture(te.certificates.load_certificate(folders["compact"]))  # by delta: none was asked
    first, second = (float(x) for x in re.findall(r'cx="([\d.]+)"', decades([Size("a", 1e-3), Size("b", 1e-300)], "t")))
    assert second < first  # and on the page, at its left edge


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("memorise", "3 of 3 stored pairs come back exactly"),
        ("table", "4 of 4 stored pairs come back exactly"),
        ("certify.json", "an integral over the domain, as its author says"),
        ("certificate.json", "Its digest matches"),
        ("verify.json", "Everything holds"),
        ("check.json", "every edge is in the pattern: checked"),
        ("apart.json", "cannot be drawn from its name"),
        ("compare.json", "longformer"),
        ("head-verify.json", "every row meets both tolerances"),
        ("mask.npz", "the field stops growing"),
        ("results.json", "ours"),
        ("study.json", "moments"),
    ],
)
def test_pages_say_what_the_files_say(artefacts, page_of, name, says):
    assert says in str(page_of(artefacts[name]))


def test_bars_are_the_figures_of_the_records(artefacts, page_of):
    from thereexists.experiments.results import read, rows

    document = str(page_of(artefacts["records"]))
    for row in rows(read([artefacts["records"]])):
        assert f"{row.run} {100 * row.figures['mlm accuracy'].mean:.3g}" in document  # in the picture's own words
    assert "(paper 63)" in document


def test_a_kind_that_forgets_its_pairs_is_told(tokens, tmp_path):
    """Planted fault: a memory unit writes something else, with digests that fit."""
    witness = te.load(tokens["memorise"])
    with torch.no_grad():
        witness.network.stages["recall"].feed_forward.W_2[0, :, 0] = 0.0
    witness.save(tmp_path / "m")
    document = str(report(tmp_path / "m"))
    assert "2 of 3 stored pairs come back exactly" in document
    assert 'class="bad"' in document


# --- what the new pictures show --------------------------------------------------------------------------------------


def test_the_plane_is_the_network_and_the_target(folders):
    for kind in ("compact", "wide"):
        witness = te.load(folders[kind])
        plane = plane_through(witness, witness.target)
        at = between_edges(witness.grid.N, SIDE, WITHIN)
        X = np.tile(plane.others, (len(at), len(at), 1, 1))
        (t0, f0), (t1, f1) = plane.free
        X[:, :, t0, f0], X[:, :, t1, f1] = at[:, None], at[None, :]
        assert not witness.grid.on_ramp(X.reshape(-1, *X.shape[2:])).any()
        network, points = witness(X.reshape(-1, *X.shape[2:])).reshape(X.shape), len(plane.network)
        for shown, single in ((plane.network, network), (plane.target, np.sort(X, axis=2))):
            squares = single.reshape(points, WITHIN, points, WITHIN, *X.shape[2:])
            assert np.array_equal(shown, squares.mean(axis=(1, 3)))
    alone = te.targets.builtin("sort", n=1)
    assert plane_through(te.build(alone, delta=1 / 4), alone) is None


def test_every_quad_and_every_cell_is_drawn_once():
    values = np.add.outer(np.arange(5.0), np.arange(5.0))
    drawn = surface(values, 0.0, 8.0, "s", ("x", "y"))
    assert drawn.count("M") == 16 + 1  # 4 × 4 quads, and the floor below them
    assert drawn.index('class="axis"') < drawn.index('class="mesh')
    (map_,) = re.findall(r'(<svg.*?<rect class="axis")', field(values, 0.0, 8.0, "f", ("x", "y")))
    wide = sum(float(w) for w in re.findall(r"h(\d+\.\d)v", map_))
    assert wide == pytest.approx(5 * 300, abs=5 * 5 * 0.05)  # five full rows; widths are written with one decimal
    assert f'class="r{LEVELS - 1}"' in map_
    flat = surface(np.full((3, 3), np.nan), 0.0, np.nan, "s", ("x", "y"))
    assert "nan" not in flat


def test_the_memory_answers_every_token_once(folders):
    witness = te.load(folders["compact"])
    cells = witness.grid.cube(np.arange(witness.grid.cells))
    X = torch.from_numpy(witness.grid.centre(cells))
    found = recall_of(witness.network, X)
    assert (found.most, found.lowest, found.highest) == (1, 1.0, 1.0)
    assert found.rest <= 0
    assert found.rows == 2 * witness.grid.cells
    with torch.no_grad():
        witness.network.stages["recall"].feed_forward.b_1 += 1.0  # planted fault: a unit forgives one wrong bit
    assert recall_of(witness.network, X).most > 1


# --- hostile and broken files ----------------------------------------------------------------------------------------

FORGED = {
    "certify.json": {"package_version": EVIL, "assumptions": [EVIL]},
    "verify.json": {"checks": [{"name": EVIL, "passed": 1, "detail": EVIL}]},
    "fit.json": {"method": EVIL, "reasons": [EVIL], "settings": {EVIL: EVIL}},
    "check.json": {"reasons": [EVIL], "config": EVIL},
    "compare.json": {"refused": {EVIL: EVIL}},
    "study.json": {"command": EVIL, "settings": {EVIL: EVIL}},
}


@pytest.mark.parametrize("name", FORGED)
def test_hostile_texts_are_escaped(artefacts, tmp_path, name):
    record = json.loads(artefacts[name].read_text())
    (tmp_path / name).write_text(json.dumps(record | FORGED[name]))
    document = str(report(tmp_path / name))
    assert balanced(document)
    assert "<script" not in document
    assert "<img" not in document
    assert html.escape(EVIL, quote=True)[:40] in document


BROKEN = [
    ("certify.json", {"parts": {"luck": 1.0}}),
    ("certify.json", {"parts": 3}),
    ("certify.json", {"bound": "small"}),
    ("certify.json", {"kind": "oracular"}),
    ("certify.json", {"confidence": 0.9}),
    ("verify.json", {"holds": "maybe"}),
    ("verify.json", {"checks": [1]}),
    ("check.json", {"n": "many"}),
    (
        "check.json",
        {"hamiltonian_path": {"status": "found", "method": "x", "path": [1, 0, 2, 3]}},
    ),
    ("check.json", {"universal": 3}),
    ("compare.json", {"patterns": [{}]}),
    ("study.json", {"table": [{"method": "x", "k": 1, "length": -1, "hidden_size": 2, "trivial": False}]}),
    ("results.json", {"rows": [{"figures": {}}]}),
    ("records.json", {"records": [{}]}),
    ("records.json", {"records": []}),
]


@pytest.mark.parametrize(("name", "change"), BROKEN)
def test_broken_records_are_refused_in_one_sentence(artefacts, tmp_path, name, change):
    record = json.loads(artefacts[name].read_text())
    (tmp_path / name).write_text(json.dumps(record | change))
    done = thereexists("report", name, "--out", "r.html", cwd=tmp_path, code=2)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "3", '{"a": 1}', "[" * 100_000])
def test_other_files_are_no_artefacts(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ThereExistsError, match=r"not an artefact|not JSON"):
        report(tmp_path / "x.json")
    (tmp_path / "x.txt").write_text(content)
    with pytest.raises(ThereExistsError, match=r"It reads: .*certificate.*pattern.*folder of runs.*build --out"):
        report(tmp_path / "x.txt")


def test_a_changed_certificate_is_refused(folders, tmp_path):
    record = json.loads((folders["compact"] / "certificate.json").read_text())
    (tmp_path / "certificate.json").write_text(json.dumps(record | {"bound": 1e-9}))
    with pytest.raises(ThereExistsError, match="digest"):
        report(tmp_path / "certificate.json")


def test_a_new_kind_is_one_file(monkeypatch, tmp_path):
    """A module of kinds/ that ends in a KIND is found by being there."""
    import thereexists.reports.kinds as package

    (tmp_path / "poem.py").write_text(
        "from thereexists.reports import Found, Kind, Page\n"
        "KIND = Kind('poem', 'a poem', lambda f: f.path.suffix == '.poem', lambda f: Page('poem', 'A poem', '', ()))\n"
    )
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    (tmp_path / "ode.poem").write_text("O")
    assert report(tmp_path / "ode.poem").kind == "poem"


def test_kinds_have_names_of_their_own():
    every = [asdict(kind) for kind in every_kind()]
    assert len({kind["name"] for kind in every}) == len(every) >= 9
