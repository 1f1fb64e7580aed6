"""Numbers of a page against the same numbers found in another way."""

import io
import json
import math
import re
import shutil
from contextlib import redirect_stdout
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import thereexists as te
from tests.hostile import forge_certificate, forge_record
from thereexists import program as P
from thereexists.cli.kinds.functions import FUNCTION
from thereexists.functions.targets import builtin
from thereexists.reports.measure import plane_through, slice_through

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Witnesses and their reports."""
    folder = tmp_path_factory.mktemp("true")
    te.build(builtin("sort", n=2), delta=1 / 8).save(folder / "faithful")
    te.build(builtin("sort", n=2), delta=1 / 4, construction="compact").save(folder / "compact")
    x = P.tokens(n=4)
    te.build(0.5 * x + 0.5 * P.mean(x), epsilon=1e-3).save(folder / "program")
    (folder / "prog.py").write_text(
        "from thereexists import program as P\n\nx = P.tokens(n=4)\nsmooth = 0.5 * x + 0.5 * P.mean(x)\n"
    )
    return folder


def test_the_average_error_of_a_plane_is_that_of_random_points(pages):
    """60,000 random points have a standard error of 0.24 % here; 1 % is four of them."""
    witness = te.load(pages / "faithful")
    X = np.random.default_rng(0).random((60_000, 2, 1))
    true = np.abs(witness(X) - np.sort(X, axis=1)).mean(axis=0).ravel()
    document = re.sub(r"<[^>]+>", " ", str(te.report(pages / "faithful")))
    said = re.findall(r"([\d.e-]+) on average over this plane|on the average ([\d.e-]+\d)", document)
    assert len(said) == 2
    for (new, old), wanted in zip(said, true, strict=True):
        assert abs(float(new or old) - wanted) <= 0.01 * wanted


@pytest.mark.parametrize(("n", "N"), [(2, 3), (2, 8), (4, 4)])
def test_no_input_of_a_picture_is_on_an_edge(n, N, monkeypatch):
    """All inputs that a report runs, looked at on their way into the network."""
    witness, seen = te.build(builtin("distance-to-mean", n=n), delta=f"1/{N}", construction="compact"), []
    monkeypatch.setattr(type(witness), "run", lambda self, X, *more: seen.append(X) or np.zeros_like(X))
    slice_through(witness, witness.target)
    plane_through(witness, witness.target)
    assert len(seen) >= 2
    for X in seen:
        part = X * N % 1.0
        assert ((part > 1e-6) & (part < 1 - 1e-6)).all()


@pytest.mark.parametrize("kind", ["faithful", "compact"])
def test_the_parameters_of_the_parts_add_up(pages, kind, capsys):
    witness = te.load(pages / kind)
    document = str(te.report(pages / kind))
    section = document[document.index('id="stages"') :]
    rows = re.findall(r'</span></td><td class="number">([\d,]+)</td><td class="number">([\d,]+)', section)
    assert sum(int(number.replace(",", "")) for _, number in rows) == witness.network.parameter_count


def test_a_program_is_called_by_its_name_and_drawn(pages):
    from tests.command import thereexists

    thereexists("build", "prog.py:smooth", "--out", "p", cwd=pages)
    document = str(te.report(pages / "p"))
    assert "<title>There exists a Transformer: smooth (as its author says)</title>" in document
    assert "(0.5·x + 0.5·mean(x))" in document
    assert document.count("<svg") >= 1
    assert "1 standard block." in document
    unnamed = str(te.report(pages / "program"))
    assert "<title>There exists a Transformer: (0.5·x + 0.5·mean(x)) (as its author says)</title>" in unnamed
    assert te.verify(pages / "p").holds


def test_a_name_that_is_no_text_is_refused(pages, tmp_path):
    """Planted fault, with its digest redone."""
    shutil.copytree(pages / "program", tmp_path / "p")
    forge_record(tmp_path / "p", lambda record: record.update(name=["x"] * 3))
    with pytest.raises(te.ThereExistsError, match="name"):
        te.load(tmp_path / "p")


def test_copying_is_a_map_of_patterns_and_layers():
    document = str(te.report(ROOT / "docs/data/experiments/copying-mini.json"))
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", document)
    assert {"strided-multihead", "fixed-sequential", "1 layer", "4 layers"} <= set(shown)
    assert not any(label.endswith("…") for label in shown)
    assert any(re.fullmatch(r"[\d.]+ \(≤ 15\.8\)", label) for label in shown)


def test_a_long_name_beside_a_bar_is_whole():
    from thereexists.reports import svg

    drawn = svg.bars([("strided-multihead-layers4", 99.0, None, None)], "t", 100.0)
    assert ">strided-multihead-layers4<" in drawn


def test_the_comparison_of_patterns_begins_with_the_verdict_and_has_pictures(tmp_path):
    from tests.command import thereexists

    printed = thereexists("pattern", "compare", "--n", "16", "--seconds", "1", "--json", cwd=tmp_path).stdout
    (tmp_path / "compare.json").write_text(printed)
    document = str(te.report(tmp_path / "compare.json"))
    heads = re.findall(r"<th[^>]*>([^<]*)</th>", document)
    assert heads[:3] == ["pattern", "universal", "depth"]
    first = document[: document.index("<nav")]
    assert first.count('class="square"') == len(json.loads(printed)["patterns"])  # a gallery, before anything else


def test_the_first_screen_has_the_three_numbers_and_the_paper(pages):
    document = str(te.report(pages / "faithful"))
    first = document[: document.index("<nav")]
    witness = te.load(pages / "faithful")
    assert f'<span class="figure">{witness.network.depth:,}</span>' in first
    assert '<span class="figure">not certified</span>' in first
    assert "arXiv:1912.10077" in first
    assert first.count('class="surface"') == 2
    te.certify(witness).save(pages / "faithful")
    first = str(te.report(pages / "faithful"))
    assert f"≤ {te.certify(witness).bound:.4g}</span>" in first[: first.index("<nav")]
    (pages / "faithful" / "certificate.json").unlink()


def test_one_colour_means_one_thing(pages):
    """Blue is the target and orange the network; parts of bars are grey, and every curve shares a scale."""
    document = str(te.report(pages / "faithful"))
    bars = re.findall(r'class="bar".*?</svg>', document, flags=re.S)
    assert bars
    assert not any(re.search(r'class="f\d', bar) for bar in bars)
    curves = document[document.index('id="curves"') : document.index('id="surfaces"')]
    ticks = [tuple(re.findall(r'text-anchor="end">([^<]*)<', svg)) for svg in curves.split("<svg")[1:]]
    assert len(set(ticks[0::2])) == 1  # the outputs
    assert len(set(ticks[1::2])) == 1  # the errors
    assert not re.search(
        r"\de[-+]\d", re.sub(r"<pre>.*?</pre>|<[^>]+>|[0-9a-f]{64}", "", document[document.index("<main") :])
    )


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("at most 2.9e-06 of it", "at most 2.9·10⁻⁶ of it"),
        ("off by 3e-17", "off by 3·10⁻¹⁷"),
        ("SHA-256 77e-05ab", "SHA-256 77e-05ab"),
        ("<b>1e+30", "&lt;b&gt;1·10³⁰"),
    ],
)
def test_numbers_within_a_sentence_are_written_so_too(words, shown):
    from thereexists.reports.html import in_figures

    assert in_figures(words) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (1e-20, "&lt; 10⁻¹⁵"),
        (2.419e-5, "2.419·10⁻⁵"),
        (0.1114, "0.1114"),
        (0.11131, "0.1113"),
        (1585, "1,585"),
        (3e7, "3·10⁷"),
    ],
)
def test_numbers_are_written_as_in_a_paper(value, shown):
    from thereexists.reports.html import measured

    assert measured(value) == shown


def test_bounds_are_rounded_up_and_nobody_rounds_what_is_not_said_to_be_measured():
    from thereexists.reports import html

    assert html.at_most(0.10287221) == "≤ 0.1029"
    assert html.at_most(0.11131) == "≤ 0.1114"
    assert html.at_most(1e-20) == "&lt; 10⁻¹⁵"
    assert html.upper(0.0) == "0"
    assert html.number(0.14583361148847734) == "0.14583361148847734"
    assert html.number(-1.00331572e-05) == "−1.00331572·10⁻⁵"
    page = html.table(["part", "size"], [["grid", 0.14583361148847734]])
    assert '<td class="number">0.14583361148847734</td>' in page


@pytest.mark.parametrize(
    "words",
    [
        "≤ 1.23412e-05, at most 1.23412e-05, 1.23412e-05",
        "they put it between 1.21996e-05 and 1.23443e-05",
        "logits lead by 1.23456e+06",
        "within 1e-20, ≤ 1e-20, ≤ 1e+99999999999999999999",
        "asked for: 1.23449e-05, kept",
    ],
)
def test_a_figure_in_a_sentence_keeps_its_digits(words):
    """Somebody has rounded it already, to the side that keeps the sentence true."""
    from thereexists.reports import html

    raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    dressed = html.in_figures(words)
    assert "e-" not in dressed
    assert re.sub(r"·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda at: f"e{int(at[1].translate(raised)):+03d}", dressed) == words


BOUND = {"grid": 0.14583361148847734, "equal_columns": 0.0, "ramps": 1.00331572e-05, "network": 7.0000000001e-09}


def smaller(text, sizes):
    """Where the name of a part is followed by a number below its size."""
    plain = re.sub(r"<[^>]+>", " ", text).translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")).replace("·10", "e")
    for name, size in sizes.items():
        for found in re.finditer(rf"\b{name.replace('_', ' ')}:?\s+(?:≤ )?(\d+(?:\.\d+)?(?:e-?\d+)?)", plain):
            if Fraction(found[1]) < Fraction(size):
                yield found[0]


def test_no_part_of_a_bound_is_printed_below_itself(tmp_path):
    """On the page, in its pictures, in their words for those who do not see them, and by the command."""
    te.build(te.targets.builtin("sort", n=2), delta=1 / 2).save(tmp_path / "w")
    te.certify(te.load(tmp_path / "w"), opinions=1).save(tmp_path / "w")
    forge_certificate(tmp_path / "w", lambda c: c.update(parts=BOUND, bound=math.fsum(BOUND.values()) * (1 + 2**-40)))
    certificate = te.load(tmp_path / "w").certificate
    with redirect_stdout(io.StringIO()) as printed:
        FUNCTION.certified(certificate, as_json=False)
    assert re.search(r"grid 0\.1459", printed.getvalue())
    assert list(smaller("grid 0.1458", BOUND))
    page = str(te.report(tmp_path / "w"))
    assert "0.1459" in page
    labels = " ".join(re.findall(r'aria-label="([^"]*)"', page))
    assert "grid 0.1459" in labels
    for text in (printed.getvalue(), page, labels, str(te.report(tmp_path / "w/certificate.json"))):
        assert list(smaller(text, BOUND)) == []
