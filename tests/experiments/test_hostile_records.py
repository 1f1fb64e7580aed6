"""Records of strangers: nothing of the user's is overwritten, nothing runs, and damage is said in one sentence."""

import copy
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.experiments.records import record, stage, table_a
from thereexists.cli import app
from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.experiments.plots import draw
from thereexists.experiments.report import write_report
from thereexists.experiments.results import collect, read, rows
from thereexists.experiments.tables import tables

DATA = Path(__file__).parents[2] / "docs" / "data" / "experiments"
MINE = "my thesis\n"


@pytest.fixture
def downloaded(tmp_path, monkeypatch):
    """A folder of one run beside a folder of the user's; gives a function that writes the record."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim/.vscode").mkdir(parents=True)
    for name in ("precious.txt", "photo.png", ".vscode/settings.json"):
        (tmp_path / "victim" / name).write_text(MINE)
    (tmp_path / "dl/a-seed0").mkdir(parents=True)

    def write(**changes):
        (tmp_path / "dl/a-seed0/run.json").write_text(json.dumps(table_a(seeds=1)[0] | changes))

    return write


def results(*arguments):
    """The command as a shell runs it: a ThereExistsError is one line and code 2."""
    done = CliRunner().invoke(app, ["results", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit | ThereExistsError), done.exception
    return done


def unharmed(root):
    files = [file for file in (root / "victim").rglob("*") if not file.is_dir()]
    return len(files) == 3 and all(file.read_text() == MINE for file in files)


def test_a_link_in_the_folder_of_plots_is_replaced_and_not_followed(downloaded, tmp_path):
    downloaded()
    (tmp_path / "dl/plots").mkdir()
    plot = tmp_path / "dl/plots/experiment-table-a-mini.png"
    plot.symlink_to("../../victim/precious.txt")
    assert isinstance(results("dl").exception, InvalidInput)  # it is no picture of ours
    assert plot.is_symlink()
    assert results("dl", "--plots", "dl/plots", "--force").exit_code == 0
    assert unharmed(tmp_path)
    assert not plot.is_symlink()
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_pictures_of_ours_are_drawn_again_and_others_are_kept(downloaded, tmp_path):
    downloaded()
    assert results("dl").exit_code == 0
    assert results("dl").exit_code == 0
    plot = tmp_path / "dl/plots/experiment-table-a-mini.png"
    plot.write_bytes(b"\x89PNG of somebody")
    assert isinstance(results("dl").exception, InvalidInput)
    assert plot.read_bytes() == b"\x89PNG of somebody"


def test_a_folder_of_plots_that_is_a_link_is_refused_unless_the_user_names_it(downloaded, tmp_path):
    downloaded()
    (tmp_path / "dl/plots").symlink_to("../victim")
    done = results("dl")
    assert isinstance(done.exception, InvalidInput)
    assert "is a link" in str(done.exception)
    assert unharmed(tmp_path)
    assert results("dl", "--plots", "img").exit_code == 0


@pytest.mark.parametrize("field", ["size", "experiment"])
@pytest.mark.parametrize(
    "name", ["/../../../victim/photo", "../../victim/.vscode/settings", "..", ".", "", "a/b", "a\\b", "a\0b", "x" * 65,
             "a\nb", "C:x", "mini ", "-rf", ".vscode"]
)  # fmt: skip
def test_names_that_leave_the_folder_are_refused_before_anything_is_written(downloaded, tmp_path, field, name):
    (tmp_path / "dl/plots/experiment-table-a-").mkdir(parents=True)
    downloaded(**{field: name})
    for more in ([], ["--collect", "out/x", "--plots", "img", "--report", "page.md"]):
        done = results("dl", *more)
        assert isinstance(done.exception, InvalidInput)
        assert f"its '{field}' must be a plain name" in str(done.exception)
    assert unharmed(tmp_path)
    assert not any((tmp_path / name).exists() for name in ("out", "img", "page.md"))


def test_one_bad_record_among_good_ones_writes_nothing(downloaded, tmp_path):
    downloaded()
    bad = record("lm", "x", 0, [stage("lm", {}, {"mixer": "sparse", "pattern": "no such"})])
    (tmp_path / "dl/more.jsonl").write_text(json.dumps(bad) + "\n")
    done = results("dl", "--collect", "out", "--plots", "img", "--report", "page.md")
    assert isinstance(done.exception, InvalidInput)
    assert sorted(os.listdir(tmp_path)) == ["dl", "victim"]


def test_two_experiments_never_share_a_file(tmp_path):
    made = [record(name, "r", 0, [stage("lm", {})], size=size) for name, size in (("a-b", "c"), ("a", "b-c"))]
    with pytest.raises(InvalidInput, match="Two experiments"):
        collect(made, tmp_path / "out", "c", {})
    assert not (tmp_path / "out").exists()


def test_the_names_of_files_are_checked_once_more():
    from thereexists.experiments.names import file_in, is_name, is_slug

    assert file_in(Path("f"), f"experiment-{'a' * 64}-{'b' * 64}-1,000-steps-loss.png").parent == Path("f")
    for name in ("../x", "a/../x", "a" * 70 + "/x", "", "/x", ".x", "a" * 64 + "/../x"):
        with pytest.raises(InvalidInput, match="cannot be the name"):
            file_in(Path("f"), name)
    assert is_slug("table-a")
    assert is_name("deep/b")
    assert not any(is_name(name) for name in ("../b", "a/../b", "/a", "a//b", "<b>", "a|b", "a`b", "$x$", "a\nb"))


def everything(made):
    """All that is computed of records, but for pictures."""
    found = rows(made)
    tables(found)
    [row.record() for row in found]
    write_report(made, Path("page.md"), "c", [])


HONEST = sorted(DATA.glob("*.json"))
WRONG = [None, True, "", "x", -1, 0, 0.5, 10**40, [], {}, [[]], [[1, 2, 3]], {"a": {}}, "\u202e", 1e-300, 10**18]


def refusals(file, tmp_path, choose):
    """What is said of a record with one field damaged, for each field and each damage chosen."""
    good = json.loads(file.read_text())["records"][-1]
    for own in good["stages"].values():
        own["history"] = own["history"][:2]
        own.pop("versions", None)
        if "curve" in own:
            own["curve"] = own["curve"][-3:]
    for number, path in enumerate(paths(good)):
        for wrong in choose(number):
            (tmp_path / "r.jsonl").write_text(json.dumps(damaged(good, path, wrong)))
            try:
                everything(read([tmp_path / "r.jsonl"]))
            except ThereExistsError as error:
                yield str(error)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["table-a-mini", "copying-mini", "mt-mini"])
def test_every_field_may_be_missing_or_damaged(name, tmp_path, monkeypatch):
    """Planted faults: each field in turn is taken out or replaced; it is accepted, or refused in one sentence."""
    monkeypatch.chdir(tmp_path)
    said = list(refusals(DATA / f"{name}.json", tmp_path, lambda number: (..., WRONG[number % len(WRONG)])))
    assert len(said) > 30
    assert not [text for text in said if "\n" in text]


@pytest.mark.slow
@pytest.mark.parametrize("file", HONEST, ids=lambda file: file.stem)
def test_every_field_may_be_damaged_in_every_way(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = list(refusals(file, tmp_path, lambda number: WRONG))
    assert len(said) > 200
    assert not [text for text in said if "\n" in text]


def paths(value, at=()):
    """The place of every field."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield (*at, key)
        yield from paths(below, (*at, key))


def damaged(value, path, wrong):
    out = copy.deepcopy(value)
    place = out
    for key in path[:-1]:
        place = place[key]
    if wrong is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = wrong
    return out


def test_records_of_one_cell_may_have_different_stages(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = table_a()
    del made[0]["stages"]["nli"]
    everything(made)
    assert (tmp_path / "page.md").read_text().startswith("#")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"run": NaN}', '{"run": 1, "run": 2}', '{"run": 1e999}', "1", '{"records": 3}', "\ud800"]
)
def test_strange_json_is_one_sentence(tmp_path, text):
    for name in ("run.json", "r.jsonl"):
        (tmp_path / name).write_bytes(text.encode(errors="surrogatepass"))
        with pytest.raises(ThereExistsError) as refused:
            read([tmp_path / name])
        assert "\n" not in str(refused.value)


EVIL = '<img src=x onerror="alert(1)">`|[x](javascript:y)*<script>$\\frac{$ - <b> https://evil.example'


def test_texts_of_records_are_no_markup_in_the_page(tmp_path):
    (made,) = table_a(seeds=1)[:1]
    made["stages"]["mlm"]["data"]["corpus"] = {"name": EVIL, "tokens": 1}
    made["stages"]["mlm"]["device"] = EVIL
    made["stages"]["nli"]["precision"] = EVIL
    made["stages"]["nli"]["data"]["train"]["name"] = EVIL
    (tmp_path / "r.jsonl").write_text(json.dumps(made))
    write_report(read([tmp_path / "r.jsonl"]), tmp_path / "page.md", "c", [])
    page = (tmp_path / "page.md").read_text()
    page = page.replace("<!-- test: never: trains for hours, on corpora that are not part of this repository -->", "")
    assert not set("<>[]") & set(page.replace("`0 s 0`", ""))
    assert page.count("`") == (tmp_path / "page.md").read_text().count("`")
    assert "https://evil" not in page
    assert "onerror" in page  # shown, as text
    from thereexists.experiments.names import in_markdown

    assert in_markdown("multi30k_en_cs/test, 1.5 % (≤ 2)") == "multi30k_en_cs/test, 1.5 % (≤ 2)"


@pytest.mark.parametrize("name", [EVIL, "<img src=x onerror=alert(1)>", "$\\frac{$", "a|b", "a\x1b[2J"])
def test_names_that_are_markup_are_refused(tmp_path, name):
    (made,) = table_a(seeds=1)[:1]
    (tmp_path / "r.jsonl").write_text(json.dumps(made | {"run": name}))
    with pytest.raises(InvalidInput, match="its 'run' must be a name") as refused:
        read([tmp_path / "r.jsonl"])
    assert "\x1b" not in str(refused.value)
    bleu = record("mt", "x", 0, [stage("mt", {"bleu": {name: {"score": 1.0}}})])
    (tmp_path / "r.jsonl").write_text(json.dumps(bleu))
    with pytest.raises(InvalidInput, match="test set"):
        read([tmp_path / "r.jsonl"])


def test_a_plot_writes_names_as_they_are(tmp_path):
    """Records that never went through the reader: dollars are no mathematics."""
    made = table_a(order=("$\\frac{$", "attention"), seeds=1)
    (plot,) = draw(rows(made), made, tmp_path / "img")
    assert plot.stat().st_size > 5000


LARGE = [
    ("random", 1 << 20, {"degree": 500_000}),
    ("random", 1 << 16, {"sparsity": 0.1}),
    ("alternating", 64, {"period": 10**8}),
    ("dilated", 1 << 20, {"window": 10**6, "dilation": 1}),
    ("dilated", 1 << 12, {"window": 4000, "dilation": [1] * 10_000}),
    ("bigbird", 1 << 20, {"block": 1 << 18, "random_blocks": 3}),
    ("strided", 1 << 40, {"stride": 3}),
    ("dilated", 16, {"window": "x"}),
    ("dilated", 16, {"window": 1e400}),
    ("random", 16, {"seed": -1}),
    ("random", 16, {"degree": [1]}),
    ("longformer", 16, {"globals": [[1]]}),
]


@pytest.mark.parametrize(("name", "n", "sizes"), LARGE)
def test_a_pattern_of_a_record_is_little_work(name, n, sizes):
    from thereexists.patterns.stated import build_stated

    for union in (False, True):
        with pytest.raises(InvalidInput):
            build_stated(name, n, sizes, union)
    if name == "random" and "degree" in sizes:
        model = {"mixer": "sparse", "pattern": name, "pattern_options": sizes}
        made = stage("lm", {"perplexity": 1.0}, model)
        made["settings"]["length"] = n
        with pytest.raises(InvalidInput):
            rows([record("lm", "x", 0, [made])])


def test_every_pattern_of_the_library_can_be_stated():
    from thereexists.patterns import REGISTRY, build
    from thereexists.patterns.stated import build_stated

    for name in REGISTRY:
        assert build_stated(name, 64, {}).connections == build(name, 64).connections
        assert build_stated(name, 1 << 12, {}, union=True).cycle == 1
    assert build_stated("random", 256, {"sparsity": 0.5}).n == 256


def test_an_experiment_of_a_stranger_names_no_folder_outside(tmp_path):
    from thereexists.experiments.grid import load, unfold

    for name in ("../../victim", "a/b", "a b"):
        config = load("copying") | {"runs": [{"name": name, "model": {}}]}
        with pytest.raises(InvalidInput, match="cannot name"):
            unfold(config, "mini", 1, None)
