"""``thereexists experiment`` and ``results``: whole tables of the papers, run and read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thereexists.cli import _complete
from thereexists.cli._applies import refuse
from thereexists.cli._files import Force, file_to_write, files_to_write
from thereexists.cli._output import AsJson, console, print_json, say
from thereexists.cli._settings import command
from thereexists.cli._training import Checkpoint, Device
from thereexists.core.errors import InvalidInput

if TYPE_CHECKING:
    from thereexists.experiments.runner import How

app = typer.Typer()


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    name: Annotated[
        str,
        typer.Argument(
            help="table-a, copying, sparsity-nli, lm, mt, or a .toml file.",
            autocompletion=_complete.names(_complete.EXPERIMENTS),
        ),
    ]
    size: Annotated[str, typer.Option(help="tiny, mini or base; table-a also small.")] = "tiny"
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Runs of every cell, with seeds 0, 1, …")] = 1
    data: Annotated[Path, typer.Option(help="Folder with wikipedia/, mnli/ and so on.", envvar="THEREEXISTS_DATA")] = (
        Path("data")
    )
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs")
    only: Annotated[str | None, typer.Option(help="Globs on the names of the runs, such as 'dense,star*'.")] = None
    resume: Annotated[bool, typer.Option("--resume", help="Keep finished runs, and continue stopped ones.")] = False
    parallel: Annotated[int, typer.Option(min=1, help="Runs at once on one device.")] = 1
    budget_seconds: Annotated[float | None, typer.Option(help="Start no new run after this many seconds.")] = None
    tokens: Annotated[str | None, typer.Option(help="Tokens of the first stage, such as 40M.")] = None
    steps: Annotated[int | None, typer.Option(help="Steps in every stage, for a quick trial.")] = None
    device: Device = None
    checkpoint_seconds: Checkpoint = 60.0
    pool: Annotated[str, typer.Option(help="local, or ray: runs spread over the GPUs of a cluster.")] = "local"
    address: Annotated[
        str | None,
        typer.Option(help="The address of a running Ray cluster, or auto; by default a local one is started."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print how many device hours it would take.")] = False
    on: Annotated[str | None, typer.Option(help="With --dry-run: the device to estimate for, such as h200.")] = None
    json: AsJson = False

    def how(self) -> How:
        from thereexists.experiments.runner import How
        from thereexists.experiments.tokens import default_cache

        same = ("device", "resume", "parallel", "budget_seconds", "checkpoint_seconds", "pool", "address")
        return How(self.out, default_cache(), **{name: getattr(self, name) for name in same})


@command(app)
def experiment(asked: ExperimentOptions) -> None:
    """Run a whole experiment of the papers: every model of the table, every seed, one record each.

    thereexists experiment table-a --size mini --seeds 3 --data data/ --out runs/ --parallel 4

    thereexists experiment table-a --size base --seeds 3 --dry-run --on h200

    thereexists experiment table-a --pool ray --address auto --out /shared/runs
    """
    from thereexists.experiments.grid import load, unfold
    from thereexists.experiments.results import rows
    from thereexists.experiments.runner import run_all
    from thereexists.experiments.settings import Budget, count

    if asked.steps is not None and asked.tokens is not None:
        raise InvalidInput("Give --steps or --tokens, not both; each is a budget of its own.")
    overrides = {"budget": Budget(steps=asked.steps)} if asked.steps is not None else {}
    first = {"budget": Budget(tokens=count(asked.tokens))} if asked.tokens is not None else {}
    data = None if asked.dry_run else asked.data
    runs = unfold(load(asked.name), asked.size, asked.seeds, data, asked.only, overrides, first)
    if asked.on is not None and not asked.dry_run:
        raise InvalidInput("--on names a device that is not here, so it goes with --dry-run only.")
    if asked.pool not in ("local", "ray"):
        raise InvalidInput(f"--pool must be local or ray for an experiment; got {asked.pool!r} instead.")
    if asked.address is not None and asked.pool != "ray":
        raise InvalidInput("An address belongs to a cluster: say --pool ray, or leave --address out.")
    if asked.pool == "ray":
        refuse("a cluster runs as many at once as it has devices", "parallel")
    if asked.dry_run:
        from thereexists.cli._forecast import show_forecast

        show_forecast(runs, asked.out, asked.on, asked.json)
        return
    outcome = run_all(runs, asked.how())
    report = {
        "experiment": asked.name,
        "size": asked.size,
        "out": str(asked.out),
        "done": len(outcome.records),
        "skipped": outcome.skipped,
        "failed": outcome.failed,
        "not_started": outcome.not_started,
        "rows": [row.record() for row in rows(outcome.records)],
    }
    if asked.json:
        print_json(report)
    else:
        _show_tables(rows(outcome.records))
        for key, reason in outcome.failed.items():
            say(f"failed: {key}: {reason}", error=True)
    if outcome.failed:
        raise typer.Exit(1)


@app.command()
def results(
    places: Annotated[list[Path], typer.Argument(help="Folders of runs, .jsonl files, or collected .json files.")],
    plots: Annotated[
        Path | None, typer.Option(help="Folder for the plots; default: RUNS/plots, with matplotlib.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Data folder, to score translations not scored yet.")] = None,
    collect: Annotated[Path | None, typer.Option(help="Folder for one small .json per experiment and size.")] = None,
    report: Annotated[Path | None, typer.Option(help="Markdown page to write, such as docs/experiments.md.")] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Tables and plots of finished runs, the papers' figures beside ours, budgets stated.

    thereexists results runs/
    thereexists results docs/data/experiments --report docs/experiments.md --plots docs/img --force
    """
    from thereexists.experiments import results as found
    from thereexists.experiments.report import budget, write_report

    if collect or plots:  # --force is for what they replace, too
        file_to_write(report, force)
    else:
        files_to_write(force, (report, ()))
    records = found.read(places)
    made = found.rows(records)  # all records are read and accepted before anything is written
    if collect is not None:
        command = f"thereexists results {' '.join(place.name for place in places)} --collect {collect}"
        written = found.collect(records, collect, command, found.find_references(data, records), force)
        records = found.read(written)  # and not whatever else is below that folder
    elif data is not None:
        references = found.find_references(data, records)
        records = [found.scored(record, references) for record in records]
    if collect is not None or data is not None:
        made = found.rows(records)
    drawn = []
    if plots is None and not json and report is None:
        plots = _folder_for_plots(places[0])
    if plots is not None:
        from thereexists.experiments.plots import draw

        drawn = draw(made, records, plots, force)
    if report is not None:
        sources = " ".join(map(str, [collect] if collect else places))
        plotted = f" --plots {plots}" if plots else ""
        left_out = write_report(records, report, f"thereexists results {sources} --report {report}{plotted}", drawn)
        if left_out is not None:
            say(f"{report} does not have everything. {left_out}", error=True)
    if json:
        stated = {"as_its_author_says": ["rows"]}  # read from records; nothing was run again
        print_json({"rows": [row.record() for row in made], "plots": [str(path) for path in drawn]} | stated)
        return
    _show_tables(made)
    say("Read from records; nothing was run again.")
    for key in found.by_table(made):
        for line in [*budget([r for r in records if found.table_of(r) == key]).split("\n"), ""]:
            say(line)
    for path in drawn:
        say(f"plot: {path}")


def _folder_for_plots(place: Path) -> Path | None:
    """RUNS/plots, for a folder of runs. Nobody named it, so it is taken only if it is not a link to somewhere else."""
    from importlib.util import find_spec

    from thereexists.core.regular_files import files_below

    if not place.is_dir() or not find_spec("matplotlib") or not any(f.name == "run.json" for f in files_below(place)):
        return None
    if (place / "plots").is_symlink():
        raise InvalidInput(f"{place / 'plots'} is a link; name the folder for the plots with --plots.")
    return place / "plots"


def _show_tables(made: list[Any]) -> None:
    from rich.table import Table

    from thereexists.experiments.tables import tables

    screen = console()
    for one in tables(made):
        table = Table(title=one.title, title_justify="left")
        for column in one.header:
            table.add_column(column, overflow="fold")
        for cells in one.body:
            table.add_row(*cells)
        screen.print(table)
        for remark in one.remarks:
            screen.print(remark.replace("**", ""))
        screen.print()
