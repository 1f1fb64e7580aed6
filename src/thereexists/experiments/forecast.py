"""Device hours before they are spent: the tokens of every stage over the speed that earlier runs of it had.

A speed counts for the same model, task, length and device, and for nothing else: where there is none, none is guessed.
Of runs that had the device to themselves it is what they recorded. Where there are only runs of which k shared the
device, each is taken to have had a k-th of it. Evaluation is included; starting processes and reading data is not.

Known speeds are those of the records in ``--out``, and those of ``docs/data/experiments``, which travel with the
package in ``speeds.json``:

    python -m thereexists.experiments speeds docs/data/experiments --out src/thereexists/experiments/speeds.json
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.experiments.files import write_atomically
from thereexists.experiments.grid import Run
from thereexists.experiments.settings import Settings

_FILE = "speeds.json"


@dataclass(frozen=True)
class Speed:
    """How fast one stage of one model was seen to be, as the mean of its runs."""

    model: Mapping[str, Any]  # the fields of the first stage's settings
    task: str
    length: int
    device: str
    tokens_per_second: float  # of the whole device
    shared: int  # how many runs had the device together; 1: it was alone
    tokens_per_sequence: float  # that a step computes on: both sides of a translation, not all of a short sentence
    tokens_per_epoch: float | None  # where that was the budget
    evaluation_seconds: float
    runs: int

    @property
    def key(self) -> tuple[str, str, int, str]:
        return json.dumps(self.model, sort_keys=True), self.task, self.length, self.device


@dataclass(frozen=True)
class Forecast:
    """What one run will take of one device."""

    key: str
    name: str
    tokens: int | None  # of the first stage
    seconds: float | None  # None: for some stage no figure is known
    tokens_per_second: float | None  # of the first stage
    shared: int  # the most runs that shared the device in what this rests on
    done: bool


def forecast(runs: Iterable[Run], known: Iterable[Speed], device: str, done: Iterable[str] = ()) -> list[Forecast]:
    """One for each run; those that have their record take nothing."""
    speeds, finished = {speed.key: speed for speed in known}, set(done)
    out = []
    for run in runs:
        model = json.dumps(dict(run.stages[0].model), sort_keys=True)
        found = [speeds.get((model, stage.task, stage.length, device)) for stage in run.stages]
        seconds = [_seconds(stage, speed) for stage, speed in zip(run.stages, found, strict=True)]
        total = None if any(s is None for s in seconds) else sum(s for s in seconds if s is not None)
        first = found[0]
        out.append(
            Forecast(
                run.key,
                run.name,
                _tokens(run.stages[0], first),
                0.0 if run.key in finished else total,
                first.tokens_per_second if first else None,
                max((speed.shared for speed in found if speed), default=1),
                run.key in finished,
            )
        )
    return out


def _seconds(stage: Settings, speed: Speed | None) -> float | None:
    if stage.budget.seconds is not None:
        return stage.budget.seconds
    tokens = _tokens(stage, speed)
    return None if tokens is None or speed is None else tokens / speed.tokens_per_second + speed.evaluation_seconds


def _tokens(stage: Settings, speed: Speed | None) -> int | None:
    budget = stage.budget
    if budget.tokens is not None:
        return budget.tokens
    if budget.steps is not None:
        return round(budget.steps * stage.batch * (speed.tokens_per_sequence if speed else stage.length))
    if budget.epochs is not None and speed is not None and speed.tokens_per_epoch is not None:
        return round(budget.epochs * speed.tokens_per_epoch)
    return None


def speeds(records: Iterable[Mapping[str, Any]]) -> list[Speed]:
    """What records say: for each model, task, length and device the runs that shared it least."""
    seen: list[Speed] = []
    for record in records:
        stages, parallel = list(record["stages"].values()), record.get("parallel", 1)
        for stage in stages:
            settings, tokens = stage["settings"], stage["tokens_seen"]
            epochs = settings["budget"].get("epochs")
            seen.append(
                Speed(
                    stages[0]["settings"]["model"],
                    stage["task"],
                    settings["length"],
                    stage["device"],
                    stage["tokens_per_second"] * parallel,
                    parallel,
                    tokens / (stage["steps"] * settings["batch"]),
                    tokens / epochs if epochs else None,
                    stage.get("evaluation_seconds", 0.0),
                    1,
                )
            )
    seen.sort(key=lambda speed: (*speed.key, speed.shared))
    groups = [list(group) for _, group in groupby(seen, key=lambda speed: speed.key)]
    return [_mean([speed for speed in group if speed.shared == group[0].shared]) for group in groups]


def _mean(group: list[Speed]) -> Speed:
    epochs = [speed.tokens_per_epoch for speed in group if speed.tokens_per_epoch is not None]
    first = group[0]
    return Speed(
        first.model,
        first.task,
        first.length,
        first.device,
        round(fmean(speed.tokens_per_second for speed in group)),
        first.shared,
        round(fmean(speed.tokens_per_sequence for speed in group), 2),
        round(fmean(epochs)) if epochs else None,
        round(fmean(speed.evaluation_seconds for speed in group), 2),
        len(group),
    )


def known_speeds(out: Path) -> list[Speed]:
    """Those that came with the package, and before them those of the runs in ``out``."""
    from thereexists.experiments.results import read

    text = resources.files("thereexists.experiments").joinpath(_FILE).read_text("utf-8")
    shipped = [Speed(**entry) for entry in json.loads(text)["speeds"]]
    here = speeds(read([out])) if out.is_dir() and any(out.rglob("run.json")) else []
    return [*shipped, *here]


def write_speeds(records: Iterable[Mapping[str, Any]], path: Path, command: str) -> None:
    """One entry a line, so that a change reads well."""
    lines = ",\n".join("  " + json.dumps(asdict(speed), sort_keys=True) for speed in speeds(records))
    text = f'{{\n "made_by": {json.dumps(command)},\n "speeds": [\n{lines}\n ]\n}}\n'
    write_atomically(path, lambda beside: beside.write_text(text, encoding="utf-8"))


def device_of(known: Iterable[Speed], asked: str | None) -> str:
    """The device here, or the one whose name contains what was asked for."""
    names = sorted({speed.device for speed in known})
    if asked is None:
        import torch

        return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    found = [name for name in names if asked.lower() in name.lower()]
    exact = [name for name in found if name.lower() == asked.lower()]
    if len(exact or found) != 1:
        raise InvalidInput(
            f"--on must name one device of which figures are known ({', '.join(names) or 'there are none'}); "
            f"got {asked!r}."
        )
    return (exact or found)[0]


def sentence(made: list[Forecast], device: str, known: Iterable[Speed]) -> str:
    """The whole in words."""
    todo = [one for one in made if not one.done]
    sure = [one for one in todo if one.seconds is not None]
    hours = sum(one.seconds or 0.0 for one in sure) / 3600
    have = f" ({len(made) - len(todo)} are done)" if len(todo) < len(made) else ""
    if not todo:
        return f"All {len(made)} runs are done; nothing is left to do."
    if not sure:
        others = sorted({speed.device for speed in known} - {device})
        hint = f"; there are figures for {', '.join(others)}: --on '{others[0]}'" if others else ""
        return f"{len(todo)} runs to do{have}; no figure is known for them on {device}{hint}."
    rest = "" if len(sure) == len(todo) else f"; no figure is known for {len(todo) - len(sure)} more"
    company = max(one.shared for one in sure)
    basis = f" (partly from runs of which {company} shared the device)" if company > 1 else ""
    return (
        f"{len(sure)} runs to do{have}: {hours:.2f} device hours ({60 * hours:.0f} minutes) on {device}{basis}{rest}. "
        "Starting processes and reading data comes on top."
    )
