"""The report of experiments: records of runs brought together, ours beside the papers', bars and tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.core.regular_files import files_below, open_regular
from thereexists.core.rounded_figures import rounded_up
from thereexists.experiments import paper
from thereexists.experiments.files import RESULT
from thereexists.experiments.results import Figure, Row, by_table, read, rows, slugs, table_of
from thereexists.experiments.tables import Table, tables
from thereexists.reports import svg
from thereexists.reports.artefact import Found, Kind, check_size
from thereexists.reports.first_screen import PAPERS, Number, first_screen
from thereexists.reports.heat_map import heat_map
from thereexists.reports.html import Markup, Page, Section, figure, join, key, keys, panels, paragraph, table

RUN = "run.json"  # what the runner writes into the folder of a run
MOST_FILES = 2000
PAPER = {"mlm accuracy": 1, "nli accuracy": 2}  # which entry of the paper's table A stands beside which figure
LOW_IS_GOOD = ("perplexity",)
TASKS = {"mlm": "Masked-LM", "nli": "MNLI", "lm": "LM", "bleu": "BLEU on", "copy": "Copying"}  # in captions
_MINUS = re.compile(r"(?<![\w-])-(?=\d)")  # of a number; a hyphen within a name stays


def _page(found: Found) -> Page:
    made, records = _rows(found)
    if not made:
        raise ValueError("it holds no record of a run")
    sections, told = [], tables(made)
    groups, files = by_table(made), slugs(made)
    drawn = {own.key: _pictures(groups[own.key]) for own in told}
    first = next((own for own in told if _crossed(groups[own.key])), told[0])  # a map says the most at a glance
    for own in told:
        parts = [paragraph(_MINUS.sub("−", remark.replace("**", ""))) for remark in own.remarks]
        parts += [paragraph("The picture is at the top of the page.", "soft") if own is first else drawn[own.key]]
        parts += [table(own.header, [list(map(str, line)) for line in own.body])]
        if records:
            parts.append(paragraph(_budget([r for r in records if table_of(r) == own.key]), "soft"))
        sections.append(Section(files[own.key], own.title, join(parts)))
    lead = (
        f"{len(made)} models, {sum(row.seeds for row in made)} runs. Our budgets are small, the papers' are large: "
        "compare orders and gaps, not levels."
    )
    papers = [
        name for name, its in (("A", True), ("B", False)) if any((row.experiment == "table-a") is its for row in made)
    ]
    source = f"The papers: {'; '.join(PAPERS[name] for name in papers)}."
    picture = join([paragraph(first.title), drawn[first.key]])
    screen = first_screen(_largest(made, told), source, picture)
    return Page("results", "Experiments: ours beside the papers'", lead, tuple(sections), screen)


def _largest(made: list[Row], told: list[Table]) -> list[Number]:
    """How many runs, what became of the papers' findings, and what such figures are worth."""
    remarks = [remark for own in told for remark in own.remarks if remark.startswith("The paper: ")]
    judged = {word: sum(f"**{word}**" in remark for remark in remarks) for word in ("yes", "no", "unclear")}
    runs = (sum(row.seeds for row in made), f"runs of {len(made):,} models, small beside the papers'")
    found = (
        f"{judged['yes']} of {sum(judged.values())}",
        f"findings of the papers seen again; {judged['no']} contradicted, {judged['unclear']} unclear",
    )
    return [runs, found, ("measured", "not proved: means over seeds, read from records, not run for this page")]


def _rows(found: Found) -> tuple[list[Row], list[dict[str, Any]]]:
    if found.has("rows"):
        return [_row(one) for one in found.record["rows"]], []
    if found.path.is_dir():
        files = [*_runs(found.path), *found.path.glob("*.jsonl"), *found.path.glob("*.json")]
        if len(files) > MOST_FILES:
            raise ValueError(f"it holds {len(files):,} files of records; a report reads up to {MOST_FILES:,}")
        for file in files:
            check_size(file)
    else:
        check_size(found.path)
    records = read([found.path])
    return rows(records), records


def _row(one: dict[str, Any]) -> Row:
    figures = {str(name): Figure(float(f["mean"]), f["sd"], f["seeds"]) for name, f in one["figures"].items()}
    return Row(**{**one, "figures": figures})


def _pictures(group: list[Row]) -> Markup:
    """Bars; where every model was trained at several depths, a map of models and depths for every share."""
    return _maps(group) if _crossed(group) else _bars(group)


def _crossed(group: list[Row]) -> bool:
    depths = {row.labels.get("layers") for row in group}
    return len(depths) > 1 and all("run" in row.labels and type(row.labels.get("layers")) is int for row in group)


def _maps(group: list[Row]) -> Markup:
    """The share that each model reaches at each depth, and behind ≤ the most that is possible there, where known."""
    names = list(dict.fromkeys(str(row.labels["run"]) for row in group))
    depths = sorted({int(row.labels["layers"]) for row in group})
    columns = {depth: f"{depth} layer{'s' if depth > 1 else ''}" for depth in depths}
    merits = dict.fromkeys(name for row in group for name in row.figures if name.endswith("accuracy"))
    figures = []
    for merit in merits:
        cells = {}
        for row in group:
            if merit in row.figures:
                share, bound = 100.0 * row.figures[merit].mean, row.figures.get(f"{merit}_bound")
                most = "" if bound is None or bound.mean >= 1 else f" (≤ {rounded_up(100 * bound.mean, 3)})"
                cells[str(row.labels["run"]), columns[int(row.labels["layers"])]] = (share, f"{share:.1f}{most}")
        picture = heat_map(names, list(columns.values()), cells, f"{merit} in %")
        figures.append(
            figure(picture, f"{_in_words(merit)} in %; in brackets the most that the pattern allows, if not 100.")
        )
    return join(figures)


def _bars(group: list[Row]) -> Markup:
    """One picture for each figure of merit: a bar for every model, a mark where the paper's figure is."""
    names = list(dict.fromkeys(name for row in group for name in row.figures if not name.endswith("_bound")))
    figures, marked, spread = [], False, False
    for name in names:
        low = any(word in name for word in LOW_IS_GOOD)
        known = sorted((r for r in group if name in r.figures), key=lambda r: r.figures[name].mean * (1 if low else -1))
        share = name.endswith("accuracy")
        factor = 100.0 if share else 1.0
        bars = []
        for row in known[:24]:
            of_paper = paper.TABLE_A.get(row.run) if row.experiment == "table-a" and name in PAPER else None
            beside = None if of_paper is None else 100.0 * of_paper[PAPER[name]]
            half = row.figures[name].half()
            bars.append((row.run, factor * row.figures[name].mean, None if half is None else factor * half, beside))
        marked |= any(mark is not None for *_, mark in bars)
        spread |= any(half is not None for _, _, half, _ in bars)
        unit = " in %" if share else ", lower is better" if low else ""
        picture = svg.bars(bars, f"{name}{unit}", 100.0 if share else None)
        left = "" if len(known) <= 24 else f" The best 24 of {len(known)}."
        figures.append(figure(picture, f"{_in_words(name)}{unit}, best first.{left}"))
    legend = [key(0, "ours")]
    legend += [key(1, "the paper, in brackets")] if marked else []
    legend += [Markup('<span class="label">— 95 % interval of the mean</span>')] if spread else []
    return join([keys(legend), panels(figures, pairs=True)])


def _in_words(name: str) -> str:
    """A figure of merit as the tables call it."""
    task, space, rest = name.partition(" ")
    return f"{TASKS[task]} {rest}" if space and task in TASKS else name


def _budget(records: list[dict[str, Any]]) -> str:
    from thereexists.experiments.report import budget

    return budget(records).replace("*Ours.* ", "Ours: ").replace("`", "").replace("\n", " ")


def _recognises(found: Found) -> bool:
    if found.path.is_dir():
        if any((found.path / name).is_file() for name in ("witness.json", "head.json")):
            return False
        if (found.path / "config.json").is_file():  # a model; of a training of ours, with its result
            return (found.path / RESULT).is_file()
        return any(_runs(found.path)) or any(
            map(_has_records, [*found.path.glob("*.jsonl"), *found.path.glob("*.json")])
        )
    if found.path.suffix == ".jsonl":
        return _has_records(found.path)
    return found.has("records", "experiment") or found.has("experiment", "run", "stages") or _printed(found)


def _runs(folder: Path) -> Iterator[Path]:
    """The records of runs below a folder; gives up after so many entries, whatever they are."""
    with suppress(InvalidInput):
        yield from (file for file in files_below(folder) if file.name in (RUN, RESULT))


def _printed(found: Found) -> bool:
    """Whether this is what ``results --json`` printed."""
    listed = found.record.get("rows") if found.has("rows") else None
    return isinstance(listed, list) and bool(listed) and isinstance(listed[0], dict) and "figures" in listed[0]


def _has_records(file: Any) -> bool:
    """Whether a file begins like records of runs; a folder of other files is not one of results."""
    try:
        with open_regular(file) as stream:
            if file.suffix == ".jsonl":
                first = json.loads(stream.readline(1 << 24).decode("utf-8") or "{}")
                return isinstance(first, dict) and {"experiment", "stages"} <= set(first)
            return b'"records"' in stream.read(4096)
    except (OSError, ValueError, RecursionError):
        return False


KIND = Kind(
    "results",
    "a folder of runs, a file of their records (.jsonl, .json), or the JSON of results",
    _recognises,
    _page,
)
