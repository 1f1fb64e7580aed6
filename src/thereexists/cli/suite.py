"""suite: ground truth for other people's tools. Make a suite, check it, score what a tool says about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from thereexists.cli._files import Force, file_to_write
from thereexists.cli._output import AsJson, console, print_json, progress_bar, say
from thereexists.cli._settings import command
from thereexists.core.authors_word import as_its_author_says
from thereexists.core.errors import Obstructed
from thereexists.core.rounded_figures import cut

app = typer.Typer(help="Ground truth for other people's tools: problems with known answers.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="The folder of a suite.")]


@dataclass(frozen=True, kw_only=True)
class Making:
    """What every suite is made of."""

    out: Annotated[Path, typer.Option(help="The folder to write, or an unchanged suite to replace.")]
    seed: Annotated[int, typer.Option(min=0, help="Same seed and count, same bytes.")] = 0
    workers: Annotated[int, typer.Option(min=1, help="Processes that make instances.")] = 1
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class Verifier(Making):
    count: Annotated[int, typer.Option(min=1, help="How many instances.")] = 300


@command(app)
def verifier(asked: Verifier) -> None:
    """Write networks (ONNX) and properties (VNN-LIB) with known verdicts, each checked before it is written.

    Examples: thereexists suite verifier --out vnn/ --count 300 --seed 0

    thereexists suite verifier --out vnn/ --count 35 --workers 2
    """
    from thereexists.suites.verifier.make import make_verifier

    with progress_bar("instances", asked.as_json) as progress:
        made = make_verifier(asked.out, asked.count, asked.seed, asked.workers, progress)
    _said(asked.as_json, {"folder": str(asked.out)} | made,
          f"{asked.out}: {made['count']} instances, {made['unsat']} hold, {made['sat']} do not")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Circuits(Making):
    count: Annotated[int, typer.Option(min=1, help="How many models.")] = 200


@command(app)
def circuits(asked: Circuits) -> None:
    """Write models with known circuits, for TransformerLens: program, graph, data and certificate beside each.

    Examples: thereexists suite circuits --out bench/ --count 200

    thereexists suite circuits --out bench/ --count 8 --workers 2
    """
    from thereexists.suites.circuits.make import make_circuits

    with progress_bar("models", asked.as_json) as progress:
        made = make_circuits(asked.out, asked.count, asked.seed, asked.workers, progress)
    _said(asked.as_json, {"folder": str(asked.out)} | made, f"{asked.out}: {made['count']} models, {made['dresses']}")


@dataclass(frozen=True, kw_only=True)
class Check:
    folder: Folder
    as_json: AsJson = False


@command(app)
def check(asked: Check) -> None:
    """Check again that everything in a suite is true: exit code 0, 1 (it is not) or 2 (could not be checked).

    Examples: thereexists suite check vnn/
    """
    from thereexists.suites import checked

    with progress_bar("checked", asked.as_json) as progress:
        found = checked(asked.folder, progress)
    summary = {
        "holds": found.holds,
        "instances": found.instances,
        "problems": list(found.problems),
        "not_checked": found.obstacle,
    }
    if found.holds is None:
        raise Obstructed(f"{asked.folder} could not be checked. {found.obstacle}")
    if not asked.as_json:
        for problem in found.problems:
            say(problem)
        if found.obstacle:
            say(f"The rest could not be checked. {found.obstacle}")
    said = "all true" if found.holds else f"{len(found.problems)} problems"
    _said(asked.as_json, summary, f"{asked.folder}: {found.instances} instances, {said}")
    raise typer.Exit(0 if found.holds else 1)


@dataclass(frozen=True, kw_only=True)
class Floor:
    folder: Folder
    out: Annotated[Path, typer.Option(help="The CSV file of answers to write.")] = Path("floor.csv")
    force: Force = False
    as_json: AsJson = False


@command(app)
def floor(asked: Floor) -> None:
    """Answer a verifier suite by plain interval propagation: the baseline that every tool should beat.

    Examples: thereexists suite floor vnn/ --out floor.csv
    """
    from thereexists.suites.verifier.score import floor as answer

    file_to_write(asked.out, asked.force, (".csv",))
    counts = answer(asked.folder, asked.out)
    _said(asked.as_json, {"answers": str(asked.out)} | counts, f"{asked.out}: {counts}")


@dataclass(frozen=True, kw_only=True)
class Score:
    folder: Folder
    answers: Annotated[Path, typer.Argument(help="What a tool says: CSV for verifiers, JSON for circuits.")]
    as_json: AsJson = False


@command(app)
def score(asked: Score) -> None:
    """Score a tool's answers against the truth as the suite's author says it; `suite check` finds out if it is true.

    Examples: thereexists suite score vnn/ floor.csv

    thereexists suite score bench/ edges.json
    """
    from thereexists.suites import scored

    found = scored(asked.folder, asked.answers)
    if asked.as_json:
        print_json(found)
        return
    from rich.table import Table

    columns = list(found["rows"][0])
    table = Table(*columns, title=as_its_author_says("scored against the truth of the suite"))
    for row in found["rows"]:
        table.add_row(*(_shown(row[name]) for name in columns))
    console().print(table)
    say(as_its_author_says(", ".join(f"{name} {_shown(value)}" for name, value in found["total"].items())))


def _shown(value: Any) -> str:
    return cut(value, 3) if isinstance(value, float) else str(value)


def _said(as_json: bool, summary: dict[str, Any], line: str) -> None:
    if as_json:
        print_json(summary)
    else:
        console().print(line)
