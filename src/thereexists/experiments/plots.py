"""Plots of the experiments (matplotlib): drawn from records, one file for each that there are records of."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from thereexists.core.atomic_files import write_beside
from thereexists.core.drawing import drawing, new_figure
from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.core.regular_files import open_regular
from thereexists.core.rounded_figures import rounded_up
from thereexists.experiments import paper
from thereexists.experiments.names import file_in
from thereexists.experiments.results import Record, Row, by_table, slugs, table_of
from thereexists.experiments.scaling import curve_of, laws

MOST_ROWS = 200  # of a table that is drawn; a longer one is only printed
MOST_TESTS = 8
_MARK = b"tEXtSoftware\0thereexists"  # of a PNG file that this drew


@drawing()
def draw(rows: list[Row], records: list[Record], folder: Path, force: bool = False) -> list[Path]:
    """``FOLDER/experiment-NAME-SIZE.png`` for every experiment, size and budget; with 95 % intervals over seeds.

    A picture that this drew is drawn anew; any other file of that name is replaced only with ``force``.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"The folder {folder} cannot be made: {error.strerror or error}.") from error
    todo: list[tuple[Path, Callable[[], None]]] = []
    files = slugs(rows)
    for key, mine in by_table(rows).items():
        if key[0] not in _PLOTS or len(mine) > MOST_ROWS:
            continue
        path = file_in(folder, f"experiment-{files[key]}.png")
        own = [r for r in records if table_of(r) == key]
        todo.append((path, partial(_PLOTS[key[0]], mine, own, path)))
        if laws(own):
            losses = path.with_name(f"{path.stem}-loss.png")
            todo.append((losses, partial(_loss_against_tokens, own, losses)))
    for path, _ in todo:
        if not force and os.path.lexists(path) and not _drawn_by_us(path):
            raise InvalidInput(f"{path} exists, and was not drawn by this command; add --force to replace it.")
    for _, make in todo:
        make()
    return [path for path, _ in todo]


def _drawn_by_us(path: Path) -> bool:
    try:
        with open_regular(path) as stream:
            return _MARK in stream.read(1024)
    except (ThereExistsError, OSError):
        return False


def _table_a(rows: list[Row], records: list[Record], path: Path) -> None:
    """Left: accuracy, ours beside the poster's. Right: training curves of the first seed."""
    figure, (left, right) = _axes(2)
    rows = sorted(rows, key=lambda row: row.figures["mlm accuracy"].mean)
    for i, row in enumerate(rows):
        for j, name in enumerate(("mlm accuracy", "nli accuracy")):
            found = row.figures.get(name)
            if found is None:
                continue
            label = ("masked LM, ours", "MNLI, ours")[j] if i == 0 else None
            left.barh(
                i + 0.2 - 0.4 * j, 100 * found.mean, 0.36, xerr=100 * (found.half() or 0), color=f"C{j}", label=label
            )
            if row.run in paper.TABLE_A:
                theirs = 100 * paper.TABLE_A[row.run][1 + j]
                text = "the paper's, BERT-base budget" if i == len(rows) - 1 and j == 0 else None
                left.plot(theirs, i + 0.2 - 0.4 * j, "k|", markersize=12, label=text)
    left.set_yticks(range(len(rows)), [_words(row.run) for row in rows])
    left.set_xlabel("accuracy in %")
    left.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=3)
    first = [r for r in records if r["seed"] == 0 and r["stages"]["mlm"]["history"]]
    for record in sorted(first, key=lambda r: r["run"]):
        stage = record["stages"]["mlm"]
        steps, losses = zip(*stage["history"], strict=True)
        per_step = stage["tokens_seen"] / stage["steps"] / 1e6
        right.plot([step * per_step for step in steps], losses, label=_words(record["run"]))
    right.set_xlabel("million tokens seen")
    right.set_ylabel("training loss (masked LM)")
    right.legend(fontsize=8)
    _save(figure, path)


def _loss_against_tokens(records: list[Record], path: Path) -> None:
    """Held-out loss of every seed as points, the fitted power law of each model as a line."""
    figure, (axis,) = _axes(1)
    for i, law in enumerate(laws(records)):
        for curve in (curve_of(r) for r in records if r["run"] == law.run):
            x, y = zip(*curve, strict=True) if curve else ((), ())  # a record may be older than curves are
            axis.plot([tokens / 1e6 for tokens in x], y, "o", color=f"C{i}", markersize=3)
        ends = [law.low, law.high]
        half = "" if law.half is None else f" ± {law.half:.3f}"
        axis.plot([t / 1e6 for t in ends], [law.at(t) for t in ends], color=f"C{i}",
                  label=f"{_words(law.run)}: tokens^−({law.exponent:.3f}{half})")  # fmt: skip
    axis.set_xscale("log")
    axis.set_yscale("log")
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter("{x:g}")  # 4, not 4 × 10⁰
    axis.yaxis.set_minor_formatter("{x:g}")
    axis.set_xlabel("million tokens seen")
    axis.set_ylabel("held-out loss")
    axis.legend(fontsize=7)
    _save(figure, path)


def _copying(rows: list[Row], records: list[Record], path: Path) -> None:
    """A cell for every pattern and depth: what was copied, and below it what the pattern allows at most."""
    layers = sorted({row.labels["layers"] for row in rows})
    names = list(dict.fromkeys(row.labels["run"] for row in rows))
    figure, (axis,) = _axes(1)
    grid = [[float("nan")] * len(layers) for _ in names]
    for row in rows:
        i, j = names.index(row.labels["run"]), layers.index(row.labels["layers"])
        grid[i][j] = 100 * row.figures["copy accuracy"].mean
        bound = row.figures.get("copy accuracy_bound")
        text = f"{grid[i][j]:.1f}" + (f"\n≤ {rounded_up(100 * bound.mean, 3)}" if bound else "")
        axis.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if grid[i][j] < 60 else "black")
    axis.imshow(grid, vmin=0, vmax=100, aspect="auto")
    axis.set_xticks(range(len(layers)), [f"{depth} layer{'s' if depth > 1 else ''}" for depth in layers])
    axis.set_yticks(range(len(names)), list(map(_words, names)))
    axis.set_title("symbols copied in %; below, the most the pattern allows", fontsize=9)
    figure.set_size_inches(6.2, 0.6 + 0.45 * len(names))
    _save(figure, path)


def _against_sparsity(rows: list[Row], figure_name: str, label: str, path: Path) -> None:
    figure, (axis,) = _axes(1)
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row.run.split("-")[0], []).append(row)
    for i, (kind, members) in enumerate(kinds.items()):
        known = sorted((row for row in members if figure_name in row.figures), key=lambda row: row.sparsity or 0)
        scale = 100 if "accuracy" in figure_name else 1
        x, y = [row.sparsity or 0.0 for row in known], [scale * row.figures[figure_name].mean for row in known]
        errors = [scale * (row.figures[figure_name].half() or 0.0) for row in known]
        axis.errorbar(x, y, errors, fmt="o-" if len(known) > 1 else "o", color=f"C{i}", label=_words(kind), capsize=2)
        if kind == "dense" and y:
            axis.axhline(y[0], color=f"C{i}", linewidth=0.7, linestyle=":")
    axis.set_xlabel("sparsity: share of the pairs left out")
    axis.set_ylabel(label)
    axis.legend(fontsize=8)
    _save(figure, path)


def _sparsity(rows: list[Row], records: list[Record], path: Path) -> None:
    _against_sparsity(rows, "nli accuracy", "MNLI accuracy in %", path)


def _lm(rows: list[Row], records: list[Record], path: Path) -> None:
    _bars(rows, {"lm perplexity": "perplexity on held-out text (less is better)"}, path)


def _mt(rows: list[Row], records: list[Record], path: Path) -> None:
    tests = sorted({name for row in rows for name in row.figures if name.startswith("bleu ")})
    _bars(rows, {test: _words(f"BLEU, {test.removeprefix('bleu ')}") for test in tests[:MOST_TESTS]}, path)


def _bars(rows: list[Row], names: dict[str, str], path: Path) -> None:
    figure, axes = _axes(max(1, len(names)))
    for axis, (name, label) in zip(axes, names.items(), strict=False):
        known = sorted((row for row in rows if name in row.figures), key=lambda row: row.figures[name].mean)
        means, errors = [row.figures[name].mean for row in known], [row.figures[name].half() or 0.0 for row in known]
        axis.barh(range(len(known)), means, xerr=errors, color="C0")
        axis.set_yticks(range(len(known)), [_words(row.run) for row in known])
        axis.set_xlabel(label)
    _save(figure, path)


_PLOTS = {"table-a": _table_a, "copying": _copying, "sparsity-nli": _sparsity, "lm": _lm, "mt": _mt}


def _axes(count: int) -> tuple[Any, list[Any]]:
    figure = new_figure(figsize=(5.2 * count if count > 1 else 6.2, 3.8), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes)


def _words(text: str) -> str:
    """A name as it is: between dollars matplotlib would read mathematics."""
    return text.replace("$", r"\$")


def _save(figure: Any, path: Path) -> None:
    write_beside(
        path, lambda stream: figure.savefig(stream, format="png", dpi=110, metadata={"Software": "thereexists"})
    )
