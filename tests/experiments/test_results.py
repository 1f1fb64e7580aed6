"""Tables and the page: only what records say, the papers' figures beside, disagreement said."""

import json
import math
import statistics

import pytest

from tests.cli.in_process import ran
from tests.experiments.records import record, stage, table_a
from thereexists.core.errors import InvalidInput
from thereexists.experiments import results
from thereexists.experiments.plots import draw
from thereexists.experiments.report import budget, write_report
from thereexists.experiments.results import Figure, collect, figures_of, find_references, read, rows
from thereexists.experiments.tables import tables


def test_seeds_become_a_mean_and_a_standard_deviation():
    first = rows(table_a())[0]
    values = [0.5, 0.51]
    assert first.figures["mlm accuracy"] == Figure(statistics.fmean(values), statistics.stdev(values), 2)
    assert first.seeds == 2
    assert rows(table_a(seeds=1))[0].figures["mlm accuracy"].sd is None


def test_the_papers_figures_stand_beside_ours_and_the_order_is_judged():
    (table,) = tables(rows(table_a()))
    half = 100 * 12.706 * statistics.stdev([0.5, 0.51]) / math.sqrt(2)  # 12.706: Student, one degree, from a table
    ours = ["attention", "5.1M", f"50.5 ± {half:.1f} %", "70.0 ± 0.0 %", "1k"]
    assert table.body[0] == [*ours, "110.0M", "63 %", "78.2 %"]
    assert table.remarks[0] == "Means by masked-LM accuracy: attention > sepconv > bproj > average."
    assert "masked-LM accuracy: **yes** (closest: attention ahead of sepconv by 10.00" in table.remarks[1]
    assert "MNLI accuracy: **yes**" in table.remarks[3]
    (table,) = tables(rows(table_a(("sepconv", "attention", "bproj", "average"))))
    assert "**no** (sepconv is ahead of attention by 10.00" in table.remarks[3]
    (table,) = tables(rows(table_a(seeds=1)))
    assert "**unclear** (too few seeds; of 3 comparisons of means 3 agree)" in table.remarks[1]


def test_runs_of_two_budgets_are_two_tables(tmp_path):
    short = table_a(seeds=1)
    for one in short:
        one["stages"]["mlm"]["settings"] = one["stages"]["mlm"]["settings"] | {"budget": {"tokens": 1_000_000}}
        one["stages"]["mlm"]["tokens_seen"] = 1_000_000
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [*short, *table_a()]))
    found = read([tmp_path])
    assert len(found) == 4 + 8
    titles = [table.title for table in tables(rows(found))]
    assert titles == ["table-a, size mini, 2M tokens, 2 seeds", "table-a, size mini, 1M tokens, 1 seed"]
    names = [path.name for path in draw(rows(found), found, tmp_path / "img")]
    assert names == ["experiment-table-a-mini.png", "experiment-table-a-mini-1M-tokens.png"]
    write_report(found, tmp_path / "page.md", "c", [tmp_path / "img" / name for name in names])
    page = (tmp_path / "page.md").read_text()
    assert page.index("2M tokens, 2 seeds") < page.index(names[0]) < page.index("1M tokens, 1 seed")
    assert page.index("1M tokens, 1 seed") < page.index(names[1])


def test_copying_names_who_copies_and_who_does_not():
    def cell(run, layers, accuracy):
        bound = 0.5 if layers == 1 else 1.0
        made = stage("copy", {"accuracy": accuracy, "accuracy_bound": bound}, {"mixer": "attention"})
        return record("copying", f"{run}-layers{layers}", 0, [made], {"run": run, "layers": layers})

    (table,) = tables(rows([cell("dense", 4, 1.0), cell("star", 4, 0.3), cell("star", 1, 0.2)]))
    assert table.header == ["pattern", "1 layer", "4 layers"]
    assert table.body == [["dense", "–", "100.0 %"], ["star", "20.0 % (≤ 50)", "30.0 %"]]
    assert "at least 99.5 %: dense; below: star" in table.remarks[0]


def test_sparsity_is_that_of_the_pattern_at_its_length():
    from thereexists import patterns

    model = {"mixer": "sparse", "pattern": "strided", "pattern_options": {"stride": 4}}
    made = record("lm", "x", 0, [stage("lm", {"perplexity": 3.0}, model)])
    assert results.sparsity(made) == patterns.strided(16, 4).union().sparsity
    model["pattern_config"] = "multihead"
    assert results.sparsity(made) == patterns.strided(16, 4).sparsity
    model["mixer"] = "sepconv"
    assert results.sparsity(made) is None


def test_records_are_read_from_folders_lines_and_collections(tmp_path):
    records = table_a()
    lines = tmp_path / "results.jsonl"
    lines.write_text("".join(json.dumps(r) + "\n" for r in records))
    assert read([lines]) == records
    assert read([tmp_path, lines]) == records  # the same cell twice counts once
    (written,) = collect(records, tmp_path / "docs", "a command", {})
    assert json.loads(written.read_text())["made_by"] == "a command"
    before = written.read_bytes()
    assert collect(records, tmp_path / "docs", "another", {}) == [written]
    assert written.read_bytes() == before  # the same records: not a byte
    with pytest.raises(InvalidInput, match="add --force"):  # the last record may be nowhere else
        collect(records[:-1], tmp_path / "docs", "another", {})
    assert written.read_bytes() == before
    collect(records[:-1], tmp_path / "docs", "another", {}, force=True)
    assert json.loads(written.read_text())["made_by"] == "another"
    collect(records, tmp_path / "docs", "a command", {}, force=True)
    assert written.read_bytes() == before
    assert read([tmp_path / "docs"]) == records
    lines.write_text(lines.read_text()[:-30])
    with pytest.raises(InvalidInput, match=r"line 8, .* is not JSON"):
        read([lines])
    lines.write_text('{"experiment": "x"}\n')
    with pytest.raises(InvalidInput, match="it has no 'run'"):
        read([lines])
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "nothing", tmp_path / "empty"):
        with pytest.raises(InvalidInput, match="There is no"):
            read([nothing])


def test_single_trainings_are_read_too_and_stages_of_experiments_only_once(tmp_path):
    alone = stage("copy", {"accuracy": 0.5}, {"size": "tiny", "mixer": "attention"}, seed=3)
    of_a_run = stage("mlm", {"accuracy": 0.9}, seed=0)
    other = stage("mlm", {"accuracy": 0.4}, {"size": "tiny", "mixer": "sepconv"}, seed=0)
    folders = {"a": alone, "deep/b": alone, "c": other, "x/attention-seed0/mlm": of_a_run}
    for folder, content in folders.items():
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "result.json").write_text(json.dumps(content))
    found = read([tmp_path])
    assert [(r["experiment"], r["size"], r["run"], r["seed"]) for r in found] == [
        ("train-copy", "tiny", "a", 3),
        ("train-mlm", "tiny", "c", 0),
        ("train-copy", "tiny", "deep/b", 3),
    ]
    bodies = [table.body for table in tables(rows(found))]  # one table for every task
    assert bodies == [[["a", "5.1M", "0.5"], ["deep/b", "5.1M", "0.5"]], [["c", "5.1M", "0.4"]]]
    for name in ("train-copy", "train-mlm"):
        assert budget([r for r in found if r["experiment"] == name]).startswith("*Ours.*")
    assert read([tmp_path / "a"])[0]["run"] == "a"
    (tmp_path / "a" / "result.json").write_text("{}")
    with pytest.raises(InvalidInput, match="not the result of a training"):
        read([tmp_path])


def test_translations_are_scored_when_they_are_collected(tmp_path):
    (tmp_path / "wmt").mkdir()
    (tmp_path / "wmt/test.cs").write_text("jedna dva tři čtyři pět\nšest\n")
    hypotheses = {"wmt/test": ["jedna dva tři čtyři pět", "šest"]}
    made = record("mt", "dense", 0, [stage("mt", {"bleu": {}}, {"mixer": "attention"}, hypotheses=hypotheses)])
    with pytest.raises(InvalidInput, match="references of 'wmt/test'"):
        collect([made], tmp_path / "docs", "c", {})
    collect([made], tmp_path / "docs", "c", find_references(tmp_path, [made]))
    (stored,) = read([tmp_path / "docs"])
    assert figures_of(stored)["bleu wmt/test"] == pytest.approx(100, abs=100 * 8 * 2**-52)
    assert "hypotheses" not in stored["stages"]["mt"]


def test_the_page_has_every_figure_and_the_budget(tmp_path):
    records = table_a()
    plots = draw(rows(records), records, tmp_path / "img")
    write_report(records, tmp_path / "experiments.md", "the command", plots)
    page = (tmp_path / "experiments.md").read_text()
    assert "| attention | 5.1M | 50.5 ± 6.4 % | 70.0 ± 0.0 % |" in page
    for said in ("the command", "9.0M tokens", "2M tokens in 10 steps", "Seeds 0, 1; 8 runs, 8.0 minutes", "392,702"):
        assert said in page.replace("\n", " ")
    assert "(img/experiment-table-a-mini.png)" in page
    assert (tmp_path / "img/experiment-table-a-mini.png").stat().st_size > 5000
    assert "Copying" not in page  # no section without a run


def test_the_page_and_the_json_say_that_they_repeat_records(tmp_path):
    """Wherever these lie; and which records have no section on the page."""
    (tmp_path / "forged.jsonl").write_text("".join(json.dumps(one) + "\n" for one in table_a()))
    done = ran("results forged.jsonl --report page.md", cwd=tmp_path)
    assert (done.code, done.stderr) == (0, "")
    page = (tmp_path / "page.md").read_text()
    assert "Nothing was run again" in page
    assert "is what a record\nholds, as its author says" in page
    assert "docs/data" not in page
    assert "comes from a run" not in page
    assert json.loads(ran("results forged.jsonl --json", cwd=tmp_path).stdout)["as_its_author_says"] == ["rows"]
    (tmp_path / "r1").mkdir()
    (tmp_path / "r1" / "result.json").write_text(json.dumps(stage("copy", {"accuracy": 0.5}, {"size": "tiny"}, seed=3)))
    done = ran("results forged.jsonl r1 --report page.md --force", cwd=tmp_path)
    assert "Runs of train-copy were read too." in done.stderr
    assert "Runs of `train-copy` were read too." in (tmp_path / "page.md").read_text()


@pytest.mark.parametrize(
    ("metrics", "wanted"),
    [
        ({"accuracy": 1.001}, "a number from 0 to 1"),
        ({"accuracy": -0.5}, "a number from 0 to 1"),
        ({"accuracy": 0.1, "accuracy_bound": 1.5}, "a number from 0 to 1"),
        ({"accuracy": 1.0, "accuracy_bound": 0.25, "predictions": 31744}, "at most its accuracy_bound, 0.25, but"),
        ({"accuracy": 0.3, "accuracy_bound": 0.25, "predictions": 10**9}, "the luck of guesses, 0.00047"),
        ({"accuracy": 0.3, "accuracy_bound": 0.25}, "no 'stages.copy.metrics.predictions'"),
    ],
)
def test_an_accuracy_that_cannot_be_is_refused(tmp_path, metrics, wanted):
    made = record("copying", "star", 0, [stage("copy", metrics)], {"run": "star", "layers": 1})
    (tmp_path / "r.jsonl").write_text(json.dumps(made) + "\n")
    with pytest.raises(InvalidInput, match=wanted):
        read([tmp_path / "r.jsonl"])


def test_a_little_luck_is_no_lie(tmp_path):
    """As in a record of ours: guesses are right a little more often than expected."""
    metrics = {"accuracy": 0.0339, "accuracy_bound": 1 / 31, "predictions": 31744}
    made = record("copying", "star", 0, [stage("copy", metrics)], {"run": "star", "layers": 1})
    (tmp_path / "r.jsonl").write_text(json.dumps(made) + "\n")
    assert read([tmp_path / "r.jsonl"]) == [made]


def test_half_a_surrogate_pair_is_kept_as_it_was_written(tmp_path):
    records = [dict(each, note="\ud800 é") for each in table_a()]
    collect(records, tmp_path, "a command", {})
    assert read([tmp_path]) == records


def test_equal_figures_have_their_own_mean():
    for value in (3277 / 9815, 3272 / 9815, 0.1):
        for count in (2, 3, 5, 7):
            assert Figure.of([value] * count).mean == value


def test_what_differs_among_runs_is_said():
    runs = table_a()
    other = json.loads(json.dumps(runs[0] | {"seed": 99}))
    for one in other["stages"].values():
        one["settings"] |= {"batch": 7, "lr": 0.5}
        one["device"] = "another device"
    said = budget([runs[0], other])
    assert "another device" in said
    assert "0.5" in said
    assert "7–" in said or "–7" in said
