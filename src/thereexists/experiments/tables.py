"""The tables of an experiment, as plain rows of text: ours, with the paper's figures beside them if there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from thereexists.experiments import paper
from thereexists.experiments.results import Figure, Row


@dataclass(frozen=True)
class Table:
    title: str
    header: list[str]
    body: list[list[str]]
    remarks: list[str]  # what the figures say, computed from them

    def markdown(self) -> str:
        lines = [f"| {' | '.join(cells)} |" for cells in (self.header, ["---"] * len(self.header), *self.body)]
        return "\n".join(lines)


def tables(rows: list[Row]) -> list[Table]:
    """One table for every experiment and size met."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.experiment, row.size), []).append(row)
    return [_BUILDERS.get(key[0], _any)(group) for key, group in sorted(groups.items(), key=lambda item: item[0])]


def _table_a(rows: list[Row]) -> Table:
    header = [
        "mixer",
        "parameters",
        "masked LM",
        "MNLI",
        "tokens/s",
        "paper: parameters",
        "paper: masked LM",
        "paper: MNLI",
    ]
    body = []
    for row in _best_first(rows, "mlm accuracy"):
        known = paper.TABLE_A.get(row.run)
        beside = [f"{known[0] / 1e6:.1f}M", f"{100 * known[1]:g} %", f"{100 * known[2]:g} %"] if known else ["–"] * 3
        speed = f"{row.tokens_per_second['mlm'] / 1e3:,.0f}k"
        body.append([row.run, _millions(row.parameters), _percent(row, "mlm accuracy"), _percent(row, "nli accuracy"),
                     speed, *beside])  # fmt: skip
    remarks = []
    for name, place in (("mlm accuracy", 1), ("nli accuracy", 2)):
        mine = [row.run for row in _best_first(rows, name) if row.run in paper.TABLE_A]
        theirs = sorted(mine, key=lambda run: -paper.TABLE_A[run][place])
        verdict = "the paper's order" if mine == theirs else f"the paper's order is {' > '.join(theirs)}"
        if len(mine) > 1:
            remarks.append(f"By {_words(name)}: {_ranking(rows, name, mine)}; {verdict}.")
    return Table(_title(rows), header, body, remarks)


def _copying(rows: list[Row]) -> Table:
    layers = sorted({row.labels["layers"] for row in rows})
    names = list(dict.fromkeys(row.labels["run"] for row in rows))
    cells = {(row.labels["run"], row.labels["layers"]): row for row in rows}

    def cell(name: str, depth: int) -> str:
        row = cells.get((name, depth))
        if row is None:
            return "–"
        bound = row.figures.get("copy accuracy_bound")
        return _percent(row, "copy accuracy") + (f" (≤ {100 * bound.mean:.4g})" if bound else "")

    body = [[name, *(cell(name, depth) for depth in layers)] for name in names]
    remarks = []
    if 4 in layers:
        perfect = [n for n in names if (n, 4) in cells and cells[n, 4].figures["copy accuracy"].mean >= 0.995]
        rest = [name for name in names if name not in perfect]
        remarks.append(
            f"With 4 layers, at least 99.5 %: {', '.join(perfect) or 'none'}; below: {', '.join(rest) or 'none'}. "
            f"The paper: {paper.COPYING}."
        )
    return Table(
        _title(rows), ["pattern", *(f"{depth} layer{'s' if depth > 1 else ''}" for depth in layers)], body, remarks
    )


def _sparsity(rows: list[Row]) -> Table:
    ordered = sorted(rows, key=lambda row: (row.sparsity or 0.0, row.run))
    body = [
        [row.run, f"{row.sparsity:.3f}", _percent(row, "mlm accuracy"), _percent(row, "nli accuracy")]
        for row in ordered
    ]
    return Table(_title(rows), ["pattern", "sparsity", "masked LM", "MNLI"], body, [f"The paper: {paper.NLI}."])


def _lm(rows: list[Row]) -> Table:
    ordered = _best_first(rows, "lm perplexity", low=True)
    body = [[row.run, f"{row.sparsity:.3f}", _plain(row.figures.get("lm perplexity"), "{:.1f}")] for row in ordered]
    order = ", ".join(row.run for row in ordered)
    return Table(_title(rows), ["pattern", "sparsity of the pattern", "perplexity"], body,
                 [f"Best first: {order}. The paper: {paper.LM}."])  # fmt: skip


def _mt(rows: list[Row]) -> Table:
    tests = sorted({name for row in rows for name in row.figures if name.startswith("bleu ")})
    ordered = _best_first(rows, tests[0]) if tests else rows
    body = [[row.run, f"{row.sparsity:.3f}", *(_plain(row.figures.get(t), "{:.1f}") for t in tests)] for row in ordered]
    remarks = [
        f"On {test.removeprefix('bleu ')}, best first: {', '.join(row.run for row in _best_first(rows, test))}."
        for test in tests
    ]
    header = ["pattern", "sparsity", *(f"BLEU {test.removeprefix('bleu ')}" for test in tests)]
    return Table(_title(rows), header, body, [*remarks, f"The paper: {paper.MT}."])


def _any(rows: list[Row]) -> Table:
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    body = [
        [row.run, _millions(row.parameters), *(_plain(row.figures.get(n), "{:.4g}") for n in names)] for row in rows
    ]
    return Table(_title(rows), ["run", "parameters", *names], body, [])


_BUILDERS: dict[str, Callable[[list[Row]], Table]] = {
    "table-a": _table_a,
    "copying": _copying,
    "sparsity-nli": _sparsity,
    "lm": _lm,
    "mt": _mt,
}


def _title(rows: list[Row]) -> str:
    seeds = sorted({row.seeds for row in rows})
    many = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return f"{rows[0].experiment}, size {rows[0].size}, {many} seed{'s' if seeds[-1] > 1 else ''}"


def _best_first(rows: list[Row], figure: str, low: bool = False) -> list[Row]:
    known = [row for row in rows if figure in row.figures]
    return sorted(known, key=lambda row: row.figures[figure].mean * (1 if low else -1))


def _ranking(rows: list[Row], figure: str, names: list[str]) -> str:
    """``a > b = c``: best first, equals as equals."""
    means = {row.run: row.figures[figure].mean for row in rows if row.run in names}
    out = names[0]
    for before, name in pairwise(names):
        out += f" {'=' if means[before] == means[name] else '>'} {name}"
    return out


def _percent(row: Row, name: str) -> str:
    figure = row.figures.get(name)
    if figure is None:
        return "–"
    return f"{100 * figure.mean:.1f}" + (f" ± {100 * figure.sd:.1f} %" if figure.sd is not None else " %")


def _plain(figure: Figure | None, form: str) -> str:
    if figure is None:
        return "–"
    return form.format(figure.mean) + (f" ± {form.format(figure.sd)}" if figure.sd is not None else "")


def _millions(count: int) -> str:
    return f"{count / 1e6:.1f}M"


def _words(name: str) -> str:
    return {"mlm accuracy": "masked-LM accuracy", "nli accuracy": "MNLI accuracy"}[name]
