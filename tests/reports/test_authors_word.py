"""What a record or a certificate says and nobody counted again: never shown but as its author's word.

Every field is forged to a value that is easy to find, every digest redone; then ``show`` and ``report`` are searched.
"""

import ast
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import thereexists as te
from tests.command import thereexists
from tests.hostile import forge_certificate, forge_record
from tests.kinds import EXAMPLES
from thereexists import reports
from thereexists.cli import app
from thereexists.core.authors_word import as_its_author_says
from thereexists.core.errors import BadWitnessFile
from thereexists.core.plain_text import visible
from thereexists.functions.targets import builtin
from thereexists.reports import report
from thereexists.reports.explore.viewer import open_viewer

WORDS = "as its author says"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    at = tmp_path_factory.mktemp("made")
    own = te.Target(lambda X: X / 2, n=2, lipschitz=0.5, name="half", description="half of it")
    for name, target, options in (
        ("faithful", builtin("sort", n=2), {}),
        ("compact", builtin("sort", n=2), {"construction": "compact"}),
        ("own", own, {"construction": "compact"}),
        ("sparse", builtin("sort", n=2), {"pattern": te.patterns.star(n=2)}),
    ):
        witness = te.build(target, delta=1 / 2, **options)
        witness.save(at / name)
        te.certify(witness, opinions=1).save(at / name)
    te.memorise([["a"], ["b"]], [["c"], ["d"]]).save(at / "tokens")
    return at


@pytest.fixture
def copy(made, tmp_path):
    return lambda name: shutil.copytree(made / name, tmp_path / name)


def shown(folder):
    done = CliRunner().invoke(app, ["show", str(folder)], env={"COLUMNS": "600"}, catch_exceptions=False)
    return done.stdout


def as_text(page):
    """The rows and paragraphs of a page, without tags; a table whose caption is marked is one piece."""
    body = str(page)[str(page).index("<main") :]
    marked = re.compile(f"<table><caption>[^<]*{WORDS}.*?</table>", re.S)
    body = marked.sub(lambda table: re.sub(r"</(tr|p|div)>", " ", table[0]), body)
    pieces = re.split(r"</(?:tr|p|li|dd|h1|h2|pre|figcaption|div)>", body)
    return [re.sub(r"<[^>]+>", " ", piece) for piece in pieces]


def unmarked(pieces, marker):
    return [piece for piece in pieces if marker in piece and WORDS not in piece]


DISTANCE = {
    "p": 1.0,
    "estimate": 0.00771,
    "low": 0.00771,
    "high": 0.00771,
    "samples": 7713,
    "confidence": 0.77,
    "seed": 7717,
}
RECORD = {  # the change, and what would be seen of it
    "layers": (lambda r: r["plan"].update(layers=dict.fromkeys(r["plan"]["layers"], 7711)), "7,711"),
    "parameters": (lambda r: r["plan"].update(parameters=7711), "7,711"),
    "id bits": (lambda r: "id_bits" in r["plan"] and r["plan"].update(id_bits=7.7), "7.7"),
    "memory": (lambda r: r["plan"].update(memory_bytes=77 << 20), "77.0"),
    "predicted": (
        lambda r: r["plan"].update(
            error={"p": 1.0, "grid": 0.0771, "equal_columns": 0.0, "ramps": 0.0, "total": 0.0771}
        ),
        "0.0771",
    ),
    "measured": (lambda r: r.update(distance=DISTANCE), "0.00771"),
    "samples": (lambda r: r.update(distance=DISTANCE), "7,713"),
    "seed": (lambda r: r.update(distance=DISTANCE), "7717"),
    "class": (lambda r: r["class"].update(h=7711, m=7711, r=7711), "7,711"),
    "description": (lambda r: r["target"].update(description="proved by Gauss"), "Gauss"),
    "version": (lambda r: r.update(package_version="77.1"), "77.1"),
    "reference": (  # that of a built-in function is compared when the record is read
        lambda r: r["target"]["origin"].get("kind") != "builtin" and r["target"]["origin"].update(reference="gauss"),
        "gauss",
    ),
    "safe dtypes": (lambda r: r["plan"].get("sizes", {}).update(dtypes={"float8": "x"}), "float8"),
    "contexts": (lambda r: r["plan"].get("sizes", {}).update(contexts=7711, units=7711), "7,711"),
    "widths": (
        lambda r: r["plan"].get("sizes", {}).update(widths={"wide": 7711}, d_model=7711),
        "7,711",
    ),
}
ALLOWED = {"reference": "thereexists build"}  # the command that would build it again names it too


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "kind", ["faithful", "compact", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("own", "sparse"))]
)
def test_nothing_in_a_record_is_shown_as_if_it_had_been_counted(copy, kind):
    folder = copy(kind)
    original = (folder / "witness.json").read_text()
    for field, (change, marker) in RECORD.items():
        (folder / "witness.json").write_text(original)
        forge_record(folder, change)
        for text in (shown(folder).splitlines(), as_text(report(folder))):
            wrong = [piece for piece in unmarked(text, marker) if ALLOWED.get(field, "\0") not in piece]
            assert not wrong, (field, wrong)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["plan"].update(theorem=77),
        lambda r: r["plan"].update(theorem=[1]),
        lambda r: r["plan"].update(parameters="7711"),
        lambda r: r["plan"].update(id_bits=None),
    ],
)
def test_a_plan_of_other_types_is_refused(copy, change):
    folder = copy("faithful")
    forge_record(folder, change)
    with pytest.raises(BadWitnessFile, match="plan"):
        te.load(folder)


@pytest.mark.parametrize("kind", ["faithful", "own"])
def test_explore_marks_the_grid_of_a_record(copy, kind):
    """The network is larger than a coarser grid needs: it is loaded."""
    folder = copy(kind)
    about = open_viewer(folder).about()
    assert about["facts"]["grid"] == f"δ = 1/2 ({WORDS})"
    for chapter in about["chapters"]:
        assert not unmarked([chapter["says"]], "4 cubes")
    built = te.build(builtin("sort", n=2), delta=1 / 2)
    assert open_viewer(built).about()["facts"]["grid"] == "δ = 1/2"


def test_explore_marks_what_it_reads(copy):
    folder = copy("faithful")
    assert WORDS in open_viewer(folder).about()["certified"]
    forge_record(folder, RECORD["description"][0])
    assert open_viewer(folder).about()["about"] == f"{builtin('sort', n=2).description} ({WORDS})"


def test_a_long_text_does_not_lose_its_mark(copy):
    """Three thousand spaces that a page shows as one; and more digits than a line of ``repr`` holds."""
    folder, gap = copy("own"), " " * 3000

    def change(r):
        r["target"].update(description=f"proved by Gauss{gap}", name=f"Gauss{gap}")
        r["target"]["origin"]["reference"] = f"Gauss{gap}"
        r.update(package_version=f"Gauss{gap}")
        r["plan"].update(memory_bytes=7711 * 10**86, epsilon=0.0771, error=r["plan"]["error"] | {"total": 0.0771})

    forge_record(folder, change)
    shown = [piece for piece in as_text(report(folder)) if ALLOWED["reference"] not in piece]
    assert not unmarked(shown, "Gauss")
    about = open_viewer(folder).about()
    assert not unmarked([about["about"], about["title"]], "Gauss")
    assert not unmarked(repr(te.load(folder).plan).splitlines(), "771")


GAUSS = "(ab|ba)*bb"


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machine") / "w"
    te.build(te.automata.regex("(ab|ba)*", "ab"), n=8).save(folder)
    return folder


@pytest.mark.parametrize(
    "origin",
    [
        {"kind": "regex", "pattern": GAUSS, "flags": 0},
        {"kind": "regexx", "pattern": GAUSS, "flags": 0},
        {"pattern": GAUSS, "flags": 0},
        {"kind": "table", "pattern": GAUSS},
    ],
)
def test_a_pattern_that_no_automaton_was_compared_with_is_no_title(machine, tmp_path, origin):
    folder = shutil.copytree(machine, tmp_path / "w")
    forge_record(folder, lambda r: r["automaton"].update(origin=origin))
    assert not unmarked([open_viewer(folder).about()["title"]], GAUSS)
    for text in (shown(folder).splitlines(), as_text(report(folder))):
        assert not unmarked(text, GAUSS)
    if origin.get("kind") == "regex":  # the card of a checkpoint would say it
        with pytest.raises(te.ThereExistsError, match=re.escape(GAUSS)):
            te.export(folder, "llama", tmp_path / "stock")
    else:
        te.export(folder, "llama", tmp_path / "stock")
        assert GAUSS not in (tmp_path / "stock/README.md").read_text()


def test_names_of_states_stay_names_on_the_card_of_a_checkpoint(machine, tmp_path):
    folder = shutil.copytree(machine, tmp_path / "w")
    names = ["x\n\n# What is proved\n\nEverything.", "`", "", "a``b"]
    forge_record(folder, lambda r: r["automaton"].update(names=names[: len(r["automaton"]["names"])]))
    te.export(folder, "llama", tmp_path / "stock")
    card = (tmp_path / "stock/README.md").read_text()
    assert card.count("# What is proved\n") == 1
    assert r"0 is `x\n\n# What is proved\n\nEverything.`" in card
    assert te.verify(tmp_path / "stock").holds


@pytest.mark.parametrize(("kind", "word"), [("reals", "0.1 0.2"), ("symbols", "ab")])
def test_a_trace_says_whose_names_its_rows_have(tmp_path, kind, word):
    from thereexists import program as pr

    te.build(pr.tokens(2) + 1.0 if kind == "reals" else pr.symbols("ab", n=2).sort()).save(tmp_path / "p")
    told = json.loads(thereexists("trace", "p", "--input", word, "--json", cwd=tmp_path).stdout)
    assert told["as_its_author_says"] == ["steps.operation"]
    assert all(step["operation"] for step in told["steps"])
    text = thereexists("trace", "p", "--input", word, cwd=tmp_path).stdout
    assert f"operation ({WORDS})" in " ".join(text.split())


@pytest.mark.parametrize("kind", ["reals", "symbols"])
def test_the_name_of_a_program_is_its_authors_word(tmp_path, kind):
    from thereexists import program as pr

    program = pr.tokens(2) + 1.0 if kind == "reals" else pr.isin(pr.symbols("ab", n=2), "a")
    te.build(program).save(tmp_path / "p")
    forge_record(tmp_path / "p", lambda r: r.update(name="Gauss"))
    assert not unmarked(shown(tmp_path / "p").splitlines(), "Gauss")
    assert not unmarked(as_text(report(tmp_path / "p")), "Gauss")
    assert open_viewer(tmp_path / "p").about()["title"] == f"Gauss ({WORDS})"


CERTIFICATE = {
    "bound": (lambda r: r.update(bound=0.0771), "0.0771"),
    "second opinions": (lambda r: r.update(second_opinion={"cubes": 7711, "seed": 0, "disagreeing": []}), "7,711"),
    "float run": (lambda r: r["float_error"].update(max=0.0771), "0.0771"),
    "cubes": (lambda r: r.update(cells=7711), "7,711"),
    "assumptions": (lambda r: r.update(assumptions=["Gauss said so"]), "Gauss"),
    "parts": (lambda r: r.update(parts=dict.fromkeys(r["parts"], 0.0771)), "0.0771"),
    "asked for": (lambda r: r.update(epsilon=0.0771), "0.0771"),
    "version": (lambda r: r.update(package_version="77.1"), "77.1"),
    "seed": (lambda r: r.update(seed=7711), "7711"),
}


@pytest.mark.parametrize("kind", ["automaton", "parity", "program", "symbols"])
def test_the_texts_of_any_certificate_are_its_authors_words(tmp_path, kind):
    """Assumptions, and why a format is not certified; the least lead of an automaton."""
    folder = EXAMPLES[kind].saved(tmp_path / "w")

    def change(r):
        r.update(
            assumptions=["Gauss said so"], reasons=dict.fromkeys(r["reasons"] or {"bfloat16": ""}, "Gauss did not")
        )
        r.update({"gap": 7.711} if "gap" in r else {})

    forge_certificate(folder, change)
    page = as_text(report(folder))
    assert any("Gauss said so" in piece for piece in page)
    for text in (shown(folder).splitlines(), page):
        assert not unmarked(text, "Gauss")
        assert not unmarked(text, "7.711")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("field", CERTIFICATE)
def test_nothing_in_a_certificate_is_shown_as_if_it_had_been_checked(copy, field):
    folder, (change, marker) = copy("compact"), CERTIFICATE[field]
    forge_certificate(folder, change)
    for page in (report(folder), report(folder / "certificate.json")):
        assert not unmarked(as_text(page), marker)
        assert not unmarked(as_text(page), "proved for every input")


def test_verdict_files_are_their_authors_word(tmp_path):
    checks = [{"name": "weights", "passed": True, "detail": "Gauss looked"}]
    (tmp_path / "v.json").write_text(json.dumps({"holds": True, "checks": checks, "reasons": ["Gauss proved it"]}))
    page = report(tmp_path / "v.json")
    assert not unmarked(as_text(page), "Everything holds")
    assert not unmarked(as_text(page), "Gauss")


def test_a_printed_verdict_on_a_pattern_is_its_authors_word(tmp_path):
    record = json.loads(thereexists("pattern", "check", "star", "--n", 8, "--json", cwd=tmp_path).stdout)
    forged = {"name": "Gauss", "reasons": ["proved by Gauss"], "seconds": 0.0771, "connections": [7711]}
    (tmp_path / "p.json").write_text(json.dumps(record | forged))
    pieces = as_text(report(tmp_path / "p.json"))
    for marker in ("Universal:", "Gauss", "0.0771", "7,711"):
        assert any(marker in piece for piece in pieces)
        assert not unmarked(pieces, marker), marker
    (tmp_path / "p.json").write_text(json.dumps(record | {"self_loops": False}))
    with pytest.raises(te.ThereExistsError, match="a condition of that does not hold"):
        report(tmp_path / "p.json")


def test_a_study_is_its_authors_word(tmp_path):
    study = json.loads((Path(__file__).parents[2] / "docs/data/heads-study.json").read_text())
    for row in study["table"]:
        row["hidden_size"] = 7711
    study["lines"][0]["slope"], study["settings"]["seeds"] = 0.0771, "Gauss"
    study["command"] = "curl Gauss | sh  # checked"
    (tmp_path / "s.json").write_text(json.dumps(study))
    pieces = as_text(report(tmp_path / "s.json"))
    for marker in ("7,711", "0.0771", "Gauss"):
        assert any(marker in piece for piece in pieces)
        assert not unmarked(pieces, marker), marker


REPEATING = ("certificate.py", "kinds/certificate.py", "kinds/checks.py", "kinds/pattern_check.py", "kinds/study.py")


@pytest.mark.parametrize("name", REPEATING)
def test_pages_that_repeat_a_file_have_no_unmarked_facts_and_tables(name):
    source = ast.parse((Path(reports.__file__).parent / name).read_text())
    imported = {alias.name for node in ast.walk(source) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert "stated" in imported
    assert not imported & {"facts", "table"}


@pytest.mark.parametrize("key", ["pairs", "parameters", "safe"])
def test_a_file_of_tokens_says_nothing_unknown_of_itself(copy, key):
    folder = copy("tokens")
    forge_record(folder, lambda r: r["info"].update({key: 7711}))
    with pytest.raises(BadWitnessFile, match=f"'{key}'"):
        te.load(folder)


def test_what_a_file_of_tokens_says_of_itself_replaces_nothing(copy):
    folder = copy("tokens")
    forge_record(folder, lambda r: r["info"].update(conflicts=[1, 2]))
    text = shown(folder)
    assert not unmarked(text.splitlines(), "2 inputs")
    assert not unmarked(as_text(report(folder)), "2 inputs")


def test_places_and_reasons_of_a_program_are_marked(tmp_path):
    from thereexists import program as pr

    witness = te.build(pr.tokens(2) + 1.0, epsilon=1e-3)
    witness.save(tmp_path / "p")
    forge_record(tmp_path / "p", lambda r: r["places"][0]["made"][0].__setitem__(0, "constant"))
    forge_certificate(tmp_path / "p", lambda r: r["reasons"].update(float16="Gauss"))
    text = shown(tmp_path / "p")
    assert "operation → row (as its author says)" in text
    assert not unmarked(text.splitlines(), "Gauss")
    assert not unmarked(text.splitlines(), "certified")
    assert any(WORDS in piece for piece in as_text(report(tmp_path / "p")))


def test_sizes_are_counted_on_the_network(made):
    for kind in ("faithful", "compact", "sparse"):
        done = CliRunner().invoke(app, ["show", str(made / kind), "--json"], catch_exceptions=False)
        said, witness = json.loads(done.stdout), te.load(made / kind)
        assert said["layers"]["total"] == witness.network.depth
        assert said["parameters"] == witness.network.parameter_count == witness.plan.parameters
        assert said["theorem"] == witness.plan.theorem
        assert set(said["as_its_author_says"]) >= {"distance", "error"}
        if kind == "compact":
            assert said["sizes"]["widths"] == witness.plan.sizes["widths"]
            assert said["sizes"]["safe"] == witness.plan.sizes["safe"]
    assert np.isfinite(witness.plan.id_bits)


def test_a_mark_is_not_pushed_away_by_empty_places():
    """Blanks that Python does not call white space are written out, so the text is long, cut, and still marked."""
    for blank in "\u2800\u3164\u115f\uffa0":
        told = visible(as_its_author_says("Checked." + 850 * blank))
        assert blank not in told
        assert told.endswith("(as its author says)")


def test_a_printed_comparison_of_patterns_is_its_authors_word(tmp_path):
    record = json.loads(thereexists("pattern", "compare", "--n", 8, "--json", cwd=tmp_path).stdout)
    false = next(one for one in record["patterns"] if one["universal"] is False)
    record["patterns"] = [false | {"receptive_depth": 7711}]
    (tmp_path / "p.json").write_text(json.dumps(record))
    page = as_text(report(tmp_path / "p.json"))
    assert not unmarked(page, "of the library")
    assert not unmarked(page, "depth 7711")
    record["patterns"] = [false | {"universal": True}]
    (tmp_path / "p.json").write_text(json.dumps(record))
    with pytest.raises(te.ThereExistsError, match="a condition of that does not hold"):
        report(tmp_path / "p.json")


def test_the_title_of_a_certificates_page_is_its_authors_word(copy):
    folder = copy("compact")
    forge_certificate(folder, lambda c: c["target"].update(name=GAUSS))
    page = report(folder / "certificate.json")
    assert not unmarked([page.title], GAUSS)
    assert not unmarked(as_text(page), GAUSS)
