"""Records of runs, read from wherever they are, and brought together over seeds: one row for one cell of a table."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import fmean, mean, stdev
from typing import Any

from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.core.json_files import parse_json
from thereexists.core.plain_text import lines_of
from thereexists.core.regular_files import files_below, read_regular
from thereexists.experiments.files import MOST_BYTES, RESULT, read_json, write_json
from thereexists.experiments.names import file_in
from thereexists.experiments.record import Field, Record, checked
from thereexists.experiments.runner import RECORD
from thereexists.experiments.scoring import score_result

TableKey = tuple[str, str, str]  # experiment, size, budget: what one table is about


@dataclass(frozen=True)
class Figure:
    """A mean over seeds and, with more than one, its standard deviation."""

    mean: float
    sd: float | None
    seeds: int

    @classmethod
    def of(cls, values: list[float]) -> Figure:
        return cls(float(mean(map(Fraction, values))), stdev(values) if len(values) > 1 else None, len(values))

    def half(self, comparisons: int = 1) -> float | None:
        """Half the 95 % interval of the mean (Student); of several together each is wider. None: one seed."""
        if self.sd is None:
            return None
        return t_quantile(1 - 0.05 / (2 * comparisons), self.seeds - 1) * self.sd / math.sqrt(self.seeds)


def t_quantile(level: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, level))


@dataclass(frozen=True)
class Row:
    """One model of an experiment at a size, all its seeds."""

    experiment: str
    size: str
    run: str
    labels: Mapping[str, Any]
    figures: Mapping[str, Figure]  # "mlm accuracy", "nli accuracy", "bleu TEST" ...
    parameters: int
    sparsity: float | None
    seconds: float  # of training, mean over seeds
    tokens: Mapping[str, int]  # by stage
    tokens_per_second: Mapping[str, float]
    seeds: int
    alone: bool = True  # whether the runs had the device to themselves: their speeds are their own
    budget: str = ""  # of the first stage; runs of two budgets are not one cell

    @property
    def table(self) -> TableKey:
        return self.experiment, self.size, self.budget

    def record(self) -> dict[str, Any]:
        figures = {name: {"mean": f.mean, "sd": f.sd, "seeds": f.seeds} for name, f in self.figures.items()}
        return {**vars(self), "labels": dict(self.labels), "figures": figures, "tokens": dict(self.tokens),
                "tokens_per_second": dict(self.tokens_per_second)}  # fmt: skip


def read(places: Iterable[Path]) -> list[Record]:
    """All records in folders of runs, ``.jsonl`` files of the runner, and ``.json`` files of ``collect``.

    The same cell found twice counts once: the later place wins. Another budget is another cell.
    """
    found: dict[tuple[str, str, str, int, str], Record] = {}
    for place in places:
        if not (records := _records(place)):
            raise InvalidInput(f"There is no record of a run in {place}.")
        for record in records:
            cell = record["experiment"], record["size"], record["run"], record["seed"], budget_of(record)
            found[cell] = record
    return list(found.values())


def _records(place: Path) -> list[Record]:
    if place.is_dir():
        below = list(files_below(place))
        listed = [*place.glob("*.jsonl"), *(file for file in place.glob("*.json") if file.name != RECORD)]
        files = sorted([*(file for file in below if file.name == RECORD), *listed])
        records = [record for file in files if file.name != RESULT for record in _records(file)]
        records += [
            _of_one_training(file, place) for file in sorted(below) if file.name == RESULT and not _is_a_stage(file)
        ]
        if not records:
            raise InvalidInput(
                f"There is no finished run in {place} (no {RECORD}, {RESULT}, .jsonl or .json with records)."
            )
        return records
    if not place.is_file():
        raise InvalidInput(f"There is no {place}; give a folder of runs or a file of records.")
    if place.suffix == ".jsonl":
        return [checked(line, where) for where, line in _lines(place)]
    content = read_json(place)
    if "records" in content:
        return [checked(one.value, f"{place}, {one.path},") for one in Field(content, str(place))["records"].list()]
    return [checked(content, str(place))] if place.name == RECORD else []


def _is_a_stage(result: Path) -> bool:
    """Whether it belongs to a run of an experiment, NAME-seedN/TASK/result.json, which has a record of its own."""
    return re.search(r"-seed\d+$", result.parent.parent.name) is not None


def _of_one_training(file: Path, place: Path) -> Record:
    """What ``thereexists train`` left, as a record: the folder's name is the run's."""
    result = read_json(file)
    if not {"task", "settings", "metrics", "seed", "seconds"} <= result.keys():
        raise InvalidInput(f"{file} is not the result of a training: it was cut off or changed.")
    name = file.parent.relative_to(place).as_posix() if file.parent != place else place.resolve().name
    given = Field(result, str(file))
    model = given["settings"]["model"].object().value
    about = {"experiment": f"train-{given['task'].slug()}", "size": model.get("size", "given"), "run": name,
             "labels": {"run": name}}  # fmt: skip
    stages = {result["task"]: result}
    return checked({**about, "seed": result["seed"], "seconds": result["seconds"], "stages": stages}, str(file))


def _lines(place: Path) -> list[tuple[str, Any]]:
    """Every line of a file with the words for where it stands."""
    try:
        text = read_regular(place, MOST_BYTES, InvalidInput).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{place} is not text in UTF-8: {error}.") from error
    named = [(f"{place}, line {number},", line) for number, line in enumerate(lines_of(text), 1)]
    return [(where, parse_json(line, where, InvalidInput, "JSON")) for where, line in named]


def rows(records: Iterable[Record]) -> list[Row]:
    """Cells in the order in which they were first met, seeds brought together."""
    cells: dict[tuple[str, str, str, str], list[Record]] = {}
    for record in records:
        cells.setdefault((record["experiment"], record["size"], record["run"], budget_of(record)), []).append(record)
    return [_row(group) for group in cells.values()]


def _row(group: list[Record]) -> Row:
    first = group[0]
    names = dict.fromkeys(name for record in group for name in figures_of(record))
    figures = {name: Figure.of([f[name] for f in map(figures_of, group) if name in f]) for name in names}
    tasks = dict.fromkeys(task for record in group for task in record["stages"])
    stages = {task: [record["stages"][task] for record in group if task in record["stages"]] for task in tasks}
    return Row(
        first["experiment"],
        first["size"],
        first["run"],
        first["labels"],
        figures,
        next(iter(first["stages"].values()))["parameters"],
        sparsity(first),
        fmean(record["seconds"] for record in group),
        {task: own[0]["tokens_seen"] for task, own in stages.items()},
        {task: fmean(stage["tokens_per_second"] for stage in own) for task, own in stages.items()},
        len({record["seed"] for record in group}),
        all(record.get("parallel", 1) == 1 for record in group),
        budget_of(first),
    )


def budget_of(record: Record) -> str:
    """The budget of the first stage in words: ``110M tokens``."""
    given = next(iter(record["stages"].values()))["settings"]["budget"]
    return ", ".join(f"{_short(value)} {name}" for name, value in given.items())


def table_of(record: Record) -> TableKey:
    return record["experiment"], record["size"], budget_of(record)


def by_table(rows: Iterable[Row]) -> dict[TableKey, list[Row]]:
    """Experiments and sizes in alphabetical order; of several budgets the largest first."""
    groups: dict[TableKey, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.table, []).append(row)
    largest = {key: max(next(iter(row.tokens.values()), 0) for row in group) for key, group in groups.items()}
    return {key: groups[key] for key in sorted(groups, key=lambda key: (key[0], key[1], -largest[key]))}


def slugs(rows: Iterable[Row]) -> dict[TableKey, str]:
    """``table-a-base`` for the largest budget, ``table-a-base-40M-tokens`` for another: names of files."""
    out: dict[TableKey, str] = {}
    for experiment, size, budget in by_table(rows):
        name = f"{experiment}-{size}"
        if name in out.values():
            name += f"-{budget.replace(' ', '-')}"
        while name in out.values():  # a-b at size c, and a at size b-c
            name += "_"
        out[experiment, size, budget] = name
    return out


def _short(value: float) -> str:
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value:,g}"


def figures_of(record: Record) -> dict[str, float]:
    """The figures of merit of a run, by name."""
    out: dict[str, float] = {}
    for task, stage in record["stages"].items():
        metrics = stage["metrics"]
        for name in ("accuracy", "perplexity", "accuracy_bound"):
            if metrics.get(name) is not None:
                out[f"{task} {name}"] = metrics[name]
        for test, score in metrics.get("bleu", {}).items():
            out[f"bleu {test}"] = score["score"]
    return out


def sparsity(record: Record) -> float | None:
    """The share of pairs that attention leaves out, averaged over the steps of the pattern as it was used."""
    from thereexists.patterns.stated import build_stated

    settings = next(iter(record["stages"].values()))["settings"]
    model = settings["model"]
    if model.get("mixer", "attention") == "attention":
        return 0.0
    if model["mixer"] != "sparse":
        return None
    options = {name: value for name, value in model.get("pattern_options", {}).items() if name != "mirror"}
    union = model.get("pattern_config", "union") == "union"
    return build_stated(model["pattern"], settings["length"], options, union).sparsity


def collect(
    records: list[Record], out: Path, command: str, references: Mapping[str, Path], force: bool = False
) -> list[Path]:
    """One small JSON file per experiment and size, hypotheses scored and dropped; the documentation's source.

    A file with other records is replaced only with ``force``: what it had may be nowhere else.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record["experiment"], record["size"]), []).append(scored(record, references))
    files: dict[Path, dict[str, Any]] = {}
    for (experiment, size), group in sorted(groups.items()):
        path = file_in(out, f"{experiment}-{size}.json")
        if path in files:
            raise InvalidInput(f"Two experiments would both be written to {path}; collect them into two folders.")
        files[path] = {"made_by": command, "experiment": experiment, "size": size, "records": group}
    other = [path for path, content in files.items() if not _holds(path, content["records"])]
    for path in other:
        if not force and os.path.lexists(path):
            raise InvalidInput(f"{path} exists, with other content; add --force to replace it.")
    for path in other:
        write_json(path, files[path])
    return list(files)


def _holds(path: Path, records: list[Record]) -> bool:
    """Whether the file has just these records: then it stays as it is, with the command that made it."""
    try:
        return read_json(path).get("records") == records
    except (ThereExistsError, OSError):  # there is none, or it is another's
        return False


def scored(record: Record, references: Mapping[str, Path]) -> Record:
    stages = {}
    for task, stage in record["stages"].items():
        hypotheses = stage.get("hypotheses", {})
        if hypotheses:
            missing = [name for name in hypotheses if name not in {**references, **stage["metrics"].get("bleu", {})}]
            if missing:
                raise InvalidInput(f"The references of {missing[0]!r} are wanted; --data must hold {missing[0]}.*.")
            stage = score_result(stage, references)
            stage["examples"] = {name: lines[:2] for name, lines in hypotheses.items()}
            del stage["hypotheses"]
        stages[task] = stage
    return record | {"stages": stages}


def find_references(data: Path | None, records: Iterable[Record]) -> dict[str, Path]:
    """The target sides of the test sets that records carry hypotheses for, below the data folder."""
    from thereexists.experiments.corpus import find

    out: dict[str, Path] = {}
    for record in records:
        for stage in record["stages"].values():
            for name in stage.get("hypotheses", {}):
                if data is not None and name not in out:
                    folder, stem = name.split("/")
                    out[name] = find(
                        data / folder, stem, f".{stage['settings'].get('options', {}).get('target', 'cs')}"
                    )
    return out
