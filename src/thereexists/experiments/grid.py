"""Experiments as data: a TOML file says which runs, which stages, which settings at which size; here it is unfolded.

A file has ``question``, ``paper``, ``stages`` (tasks in order, each from the weights of the last), ``[model]`` fields
of all, ``[data.STAGE]`` paths below the data folder, ``[sizes.SIZE.STAGE]`` settings (with ``data`` where a size has
files of its own), ``[[runs]]`` with a name and model fields (``sizes`` if not all, ``extra`` if it may come last), and
``[[axes]]`` whose values multiply the runs.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from fnmatch import fnmatch
from importlib import resources
from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.core.regular_files import read_regular
from thereexists.experiments.names import SLUG, is_slug
from thereexists.experiments.prepared import prepared_name
from thereexists.experiments.record import Field
from thereexists.experiments.settings import TASKS, Budget, Settings

EXPERIMENTS = ("table-a", "copying", "sparsity-nli", "lm", "mt")
MOST_RUNS = 100_000
MOST_BYTES = 4 << 20  # of a file
_BUDGETS = ("steps", "tokens", "seconds", "epochs")
_SETTINGS = {f.name for f in fields(Settings)} - {"task", "seed", "start", "budget"} | set(_BUDGETS)


@dataclass(frozen=True)
class Run:
    """One cell of a table: a model and a seed, trained through all stages.

        from thereexists.experiments.grid import load

        te.experiments.unfold(load("copying"), "tiny", seeds=1, data=None)[0].key

    Attributes:
        experiment: its name.
        size: of the models.
        name: of the model.
        labels: the values of the axes.
        seed: of the run.
        stages: the settings of its training runs, in order; each starts from the weights of the last.
        extra: whether it goes beyond the papers' tables; such a run begins when all others have.
    """

    experiment: str
    size: str
    name: str
    labels: Mapping[str, Any]
    seed: int
    stages: tuple[Settings, ...]
    extra: bool = False

    @property
    def key(self) -> str:
        return f"{self.experiment}/{self.size}/{self.name}-seed{self.seed}"

    def folder(self, out: Path) -> Path:
        return out / self.key


def load(name: str) -> dict[str, Any]:
    """The experiment of that name, or one in a file ``.toml`` of the user's."""
    if name in EXPERIMENTS:
        text = resources.files("thereexists.experiments").joinpath(f"configs/{name}.toml").read_text("utf-8")
        return {"name": name, **tomllib.loads(text)}
    path = Path(name)
    if path.suffix != ".toml" or not path.is_file():
        raise InvalidInput(f"There is no experiment {name!r}. Known: {', '.join(EXPERIMENTS)}; or give a .toml file.")
    try:
        config = tomllib.loads(read_regular(path, MOST_BYTES, InvalidInput).decode("utf-8"))
        json.dumps(config, allow_nan=False)  # what a record of a run can hold
    except RecursionError as error:
        raise InvalidInput(f"{path} is nested too deeply.") from error
    except (ValueError, TypeError) as error:  # no TOML, no UTF-8, numbers of thousands of digits, dates
        raise InvalidInput(f"{path} is not valid TOML for an experiment: {error}.") from error
    _check_experiment(Field(config, str(path), what="an experiment"))
    return {"name": path.stem, **config}


def _check_experiment(file: Field) -> None:
    """Whether everything that is unfolded has the kind that it needs; ranges are looked at by ``Settings``."""
    file.optional("name", Field.text)
    file.optional("model", Field.object)
    file.optional("data", lambda given: [_check_paths(paths) for _, paths in given.items()])
    for stage in file["stages"].list(1):
        if stage.text() not in TASKS:
            raise stage.wrong(f"one of the tasks {', '.join(TASKS)}")
    for _, size in file["sizes"].items():
        for _, settings in size.items():
            for name in ("model", "options"):
                settings.optional(name, Field.object)
            for name in ("seconds", "epochs", "lr", "warmup", "weight_decay", "clip"):
                settings.optional(name, Field.number)
            for name in ("steps", "tokens"):
                settings.optional(name, lambda given: given.whole(1))
            settings.optional("data", _check_paths)
            for name, value in settings.items():
                if name not in _SETTINGS:
                    raise value.wrong(f"left out: a stage has {', '.join(sorted(_SETTINGS))}")
    for run in file["runs"].list(1):
        run["name"].text()
        run["model"].object()
        run.optional("sizes", lambda sizes: [size.text() for size in sizes.list()])
    file.optional("axes", lambda axes: [_check_axis(axis) for axis in axes.list()])


def _check_axis(axis: Field) -> None:
    if axis["label"].text() == "run":
        raise axis["label"].wrong("another one than 'run', which is the label of the run")
    axis["field"].text()
    axis["values"].list()
    axis.optional("by_size", lambda sizes: [values.list() for _, values in sizes.items()])


def _check_paths(paths: Field) -> None:
    for _, path in paths.items():
        for one in path.list() if isinstance(path.value, list) else [path]:
            one.text()


def unfold(
    config: Mapping[str, Any],
    size: str,
    seeds: int,
    data: Path | None,
    only: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    first: Mapping[str, Any] | None = None,
) -> list[Run]:
    """All runs of an experiment at a size, seed by seed: a table is complete with one seed before the next begins.

        from thereexists.experiments.grid import load

        len(te.experiments.unfold(load("copying"), "tiny", seeds=2, data=None))

    Args:
        config: the experiment: ``load`` of one of ``te.experiments.EXPERIMENTS``, or of a ``.toml`` file.
        size: one of its sizes.
        seeds: how many.
        data: the folder of the corpora; with None the files are not looked for.
        only: globs on the names of the runs, separated by commas.
        overrides: settings of every stage that are replaced, such as ``precision`` and ``budget``.
        first: settings of the first stage that are replaced.

    Returns:
        The runs.

    Raises:
        InvalidInput: there is no such size, no run matches, or the experiment lacks something.
    """
    with _as_described(config["name"]):
        if size not in config["sizes"]:
            raise InvalidInput(f"'{config['name']}' has no size {size!r}; it has {', '.join(config['sizes'])}.")
        if seeds < 1:
            raise InvalidInput(f"An experiment needs at least one seed; got {seeds}.")
        _refuse_too_many(config, size, seeds)
        cells = list(_cells(config, size))
        _refuse_strange_names(config["name"], size, [name for name, _, _ in cells])
        changes = [{**(overrides or {}), **((first or {}) if i == 0 else {})} for i in range(len(config["stages"]))]
        extra = {run["name"] for run in config["runs"] if run.get("extra")}
        runs = [
            Run(
                config["name"],
                size,
                name,
                labels,
                seed,
                tuple(_stages(config, size, model, seed, data, changes)),
                labels["run"] in extra,
            )
            for seed in range(seeds)
            for name, labels, model in cells
        ]
        return matching(runs, only)


@contextmanager
def _as_described(name: str) -> Iterator[None]:
    """A file of one's own may lack anything, and have anything in its place."""
    try:
        yield
    except ThereExistsError:
        raise
    except KeyError as missing:
        raise InvalidInput(f"The experiment {name!r} lacks {missing.args[0]!r} where it is needed.") from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise InvalidInput(f"The experiment {name!r} cannot be read: {error}.") from error


def _refuse_strange_names(experiment: str, size: str, runs: list[str]) -> None:
    """They name folders and files; and a record with another name could not be read again."""
    for name in (experiment, size, *runs):
        if not isinstance(name, str) or not is_slug(name):
            raise InvalidInput(f"{name!r} cannot name an experiment, a size or a run; it may have {SLUG}.")
    if len(set(runs)) < len(runs):
        twice = next(name for name in runs if runs.count(name) > 1)
        raise InvalidInput(f"Two runs of the experiment {experiment!r} have the name {twice!r}.")


def matching(runs: list[Run], only: str | None) -> list[Run]:
    """The runs whose name matches one of the globs, which commas separate; at least one run must."""
    globs = ["*"] if only is None else only.split(",")
    found = [run for run in runs if any(fnmatch(run.name, glob.strip()) for glob in globs)]
    if not found:
        known = ", ".join(dict.fromkeys(run.name for run in runs))
        raise InvalidInput(f"No run matches {only!r}; there are {known}.")
    return found


def _refuse_too_many(config: Mapping[str, Any], size: str, seeds: int) -> None:
    """Counted before any is made: a few axes of a few values are a million runs."""
    cells = sum(size in run.get("sizes", [size]) for run in config["runs"])
    for axis in config.get("axes", []):
        cells *= len(_values(axis, size))
    if cells * seeds > MOST_RUNS:
        raise InvalidInput(f"'{config['name']}' has {cells * seeds:,} runs; an experiment has at most {MOST_RUNS:,}.")


def _values(axis: Mapping[str, Any], size: str) -> list[Any]:
    return axis.get("by_size", {}).get(size, axis["values"])


def _cells(config: Mapping[str, Any], size: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Name, axis labels and model fields of every run."""
    for run in config["runs"]:
        if size not in run.get("sizes", [size]):
            continue
        cells = [(run["name"], {"run": run["name"]}, dict(run["model"]))]
        for axis in config.get("axes", []):
            cells = [
                (f"{name}-{axis['label']}{value}", labels | {axis["label"]: value}, model | {axis["field"]: value})
                for name, labels, model in cells
                for value in _values(axis, size)
            ]
        yield from cells


def _stages(
    config: Mapping[str, Any],
    size: str,
    model: dict[str, Any],
    seed: int,
    data: Path | None,
    changes: list[dict[str, Any]],
) -> Iterator[Settings]:
    for i, stage in enumerate(config["stages"]):
        values = dict(config["sizes"][size][stage])
        budget = Budget(**{name: values.pop(name) for name in _BUDGETS if name in values})
        values |= changes[i]
        budget = values.pop("budget", budget)
        # A stage that starts from another takes its model as it is.
        fields = {"size": _model_size(size)} | config.get("model", {}) | values.pop("model", {}) | model
        named = config.get("data", {}).get(stage, {}) | values.pop("data", {})
        paths = {name: _below(data, value) for name, value in named.items()}
        yield Settings(stage, budget, fields if i == 0 else {}, paths, seed=seed, **values)


def _model_size(size: str) -> str:
    return size if size in ("tiny", "mini", "base") else "mini"


def _below(data: Path | None, value: Any) -> Any:
    """A path of the file below the data folder; the file there may be compressed, or hold the text's tokens."""
    if data is None:
        return value
    if isinstance(value, list):
        return [_below(data, one) for one in value]
    path = data / value
    found = next((p for p in (path, Path(f"{path}.xz"), Path(f"{path}.gz"), prepared_name(path)) if p.exists()), None)
    if found is None:
        raise InvalidInput(f"There is no {path} (nor .xz, .gz); --data must name the folder that holds {value}.")
    return str(found)
