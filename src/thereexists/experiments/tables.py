"""The tables of an experiment, as plain rows of text: ours, with the paper's figures beside them if there are any."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from thereexists.core.rounded_figures import cut, rounded_up
from thereexists.experiments import paper
from thereexists.experiments.claims import COPIED, Claim, each_before, judge, judge_copying, order
from thereexists.experiments.names import in_markdown
from thereexists.experiments.results import Figure, Row, TableKey, by_table


def markdown_table(header: list[str], body: list[list[str]]) -> str:
    """Every cell as text: a record's name is never markup."""
    texts = [[in_markdown(cell) for cell in cells] for cells in (header, *body)]
    lines = [f"| {' | '.join(cells)} |" for cells in (texts[0], ["---"] * len(header), *texts[1:])]
    return "\n".join(lines)


@dataclass(frozen=True)
class Table:
    key: TableKey
    title: str
    header: list[str]
    body: list[list[str]]
    remarks: list[str]  # what the figures say, computed from them

    def markdown(self) -> str:
        return markdown_table(self.header, self.body)


def tables(rows: list[Row]) -> list[Table]:
    """One table for every experiment, size and budget met."""
    groups = by_table(rows)
    plural = {key for key in groups if sum(other[:2] == key[:2] for other in groups) > 1}
    return [
        Table(key, _title(group, key in plural), *_BUILDERS.get(key[0], _any)(group)) for key, group in groups.items()
    ]


Parts = tuple[list[str], list[list[str]], list[str]]  # header, body, remarks


def _table_a(rows: list[Row]) -> Parts:
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
        body.append([row.run, _millions(row.parameters), _percent(row, "mlm accuracy"), _percent(row, "nli accuracy"),
                     _speed(row, "mlm"), *beside])  # fmt: skip
    remarks = []
    for name, place in (("mlm accuracy", 1), ("nli accuracy", 2)):
        mine = [row.run for row in _best_first(rows, name) if row.run in paper.TABLE_A]
        theirs = sorted(paper.TABLE_A, key=lambda run: -paper.TABLE_A[run][place])
        if len(mine) > 1:
            claim = Claim(f"{' > '.join(theirs)} by {_words(name)}", name, order(theirs))
            remarks += [f"Means by {_words(name)}: {_ranking(rows, name, mine)}.", str(judge(claim, rows))]
    return header, body, remarks


def _copying(rows: list[Row]) -> Parts:
    layers = sorted({row.labels["layers"] for row in rows})
    names = list(dict.fromkeys(row.labels["run"] for row in rows))
    cells = {(row.labels["run"], row.labels["layers"]): row for row in rows}

    def cell(name: str, depth: int) -> str:
        row = cells.get((name, depth))
        if row is None:
            return "–"
        bound = row.figures.get("copy accuracy_bound")
        return _percent(row, "copy accuracy") + (
            f" (≤ {rounded_up(100 * bound.mean, 4)})" if bound and bound.mean < 1 else ""
        )

    body = [[name, *(cell(name, depth) for depth in layers)] for name in names]
    remarks = []
    deep = [cells[name, 4] for name in names if (name, 4) in cells]
    if deep:
        perfect = [row.labels["run"] for row in deep if row.figures["copy accuracy"].mean >= COPIED]
        rest = [row.labels["run"] for row in deep if row.labels["run"] not in perfect]
        remarks = [
            f"With 4 layers, at least 99.5 %: {', '.join(perfect) or 'none'}; below: {', '.join(rest) or 'none'}.",
            str(judge_copying(paper.COPYING, deep, lambda name: name not in ("star", "random"), paper.COPIERS)),
        ]
    return ["pattern", *(f"{depth} layer{'s' if depth > 1 else ''}" for depth in layers)], body, remarks


def _sparsity(rows: list[Row]) -> Parts:
    ordered = sorted(rows, key=lambda row: (row.sparsity or 0.0, row.run))
    body = [[row.run, _share(row), _percent(row, "mlm accuracy"), _percent(row, "nli accuracy")] for row in ordered]
    random = [row.run for row in ordered if row.run.startswith("random")]
    others = [row.run for row in ordered if row.run not in random and row.sparsity]
    remarks = [f"The paper: {paper.NLI}."]
    if random and others and {"strided", "fixed", "star"} <= {name.partition("-")[0] for name in others}:
        claim = Claim("RANDOM is the worst pattern by MNLI accuracy", "nli accuracy", each_before(others, random))
        remarks = [str(judge(claim, rows))]
    return ["pattern", "sparsity", "masked LM", "MNLI"], body, remarks


def _lm(rows: list[Row]) -> Parts:
    ordered = _best_first(rows, "lm perplexity", low=True)
    body = [[row.run, _share(row), _plain(row.figures.get("lm perplexity"), "{:.1f}")] for row in ordered]
    best = ("strided-union", "star")
    others = _others(best, [row.run for row in ordered if row.sparsity])
    remarks = [f"Means, best first: {', '.join(row.run for row in ordered)}."]
    if any(row.sparsity for row in ordered):
        remarks.append(str(judge(Claim(paper.LM, "lm perplexity", each_before(best, others), low=True), rows)))
    return ["pattern", "sparsity of the pattern", "perplexity"], body, remarks


def _others(named: Iterable[str], found: Iterable[str]) -> list[str]:
    """The sparse patterns that a claim compares those it names with: the paper's, whether there is a record or not."""
    return [name for name in dict.fromkeys((*paper.SPARSE, *found)) if name not in named]


def _mt(rows: list[Row]) -> Parts:
    tests = sorted({name for row in rows for name in row.figures if name.startswith("bleu ")})
    ordered = _best_first(rows, tests[0]) if tests else rows
    body = [[row.run, _share(row), *(_plain(row.figures.get(t), "{:.1f}") for t in tests)] for row in ordered]
    sparse = [row.run for row in ordered if row.sparsity]
    best = ("strided-union", "fixed-union")
    others = _others(best, sparse)
    remarks = []
    for test in tests:
        where = f"on {test.removeprefix('bleu ')}"
        remarks.append(f"Means {where}, best first: {', '.join(row.run for row in _best_first(rows, test))}.")
        if sparse:
            remarks.append(str(judge(Claim(f"{paper.MT_BEST} {where}", test, each_before(best, others)), rows)))
        worse = each_before(_others(["random"], sparse), ["random"])
        if sparse:
            remarks.append(str(judge(Claim(f"{paper.MT_WORST} {where}", test, worse), rows)))
    return ["pattern", "sparsity", *(f"BLEU {test.removeprefix('bleu ')}" for test in tests)], body, remarks


def _any(rows: list[Row]) -> Parts:
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    body = [
        [row.run, _millions(row.parameters), *(_plain(row.figures.get(n), "{:.4g}") for n in names)] for row in rows
    ]
    return ["run", "parameters", *names], body, []


_BUILDERS: dict[str, Callable[[list[Row]], Parts]] = {
    "table-a": _table_a,
    "copying": _copying,
    "sparsity-nli": _sparsity,
    "lm": _lm,
    "mt": _mt,
}


def _title(rows: list[Row], with_budget: bool) -> str:
    seeds = sorted({row.seeds for row in rows})
    many = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    budget = f", {rows[0].budget}" if with_budget else ""
    return f"{rows[0].experiment}, size {rows[0].size}{budget}, {many} seed{'s' if seeds[-1] > 1 else ''}"


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
    """A mean with half its interval; the mean alone where there is one seed."""
    figure = row.figures.get(name)
    if figure is None:
        return "–"
    half = figure.half()
    return f"{100 * figure.mean:.1f}" + (f" ± {100 * half:.1f} %" if half is not None else " %")


def _plain(figure: Figure | None, form: str) -> str:
    if figure is None:
        return "–"
    half = figure.half()
    return form.format(figure.mean) + (f" ± {form.format(half)}" if half is not None else "")


def _speed(row: Row, task: str) -> str:
    """A dagger where runs shared the device: the speed is that of several runs, and no measure of the model."""
    return f"{row.tokens_per_second[task] / 1e3:,.0f}k" + ("" if row.alone else " †")


def _share(row: Row) -> str:
    return "–" if row.sparsity is None else cut(row.sparsity, 3)


def _millions(count: int) -> str:
    return f"{count / 1e6:.1f}M"


def _words(name: str) -> str:
    return {"mlm accuracy": "masked-LM accuracy", "nli accuracy": "MNLI accuracy"}[name]
