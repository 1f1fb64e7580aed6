"""report: one page about a saved artefact, to look at instead of to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thereexists.cli._output import AsJson, console, print_json
from thereexists.cli.certificate import Function, given_target

if TYPE_CHECKING:
    from thereexists.report import Page

app = typer.Typer()


@app.command()
def report(
    witness: Annotated[
        Path,
        typer.Argument(help="The folder of a witness or a head, or a pattern: its name with --n, or an .npz mask."),
    ],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    function: Function = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Tokens of a pattern.")] = None,
    sizes: Annotated[list[str] | None, typer.Option("--set", help="A size of a pattern, as name=value.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page about a witness, a head or a pattern: opens offline, prints well, asks nobody for anything.

    Examples: thereexists report w/ --out report.html

    thereexists report h/ --out head.html

    thereexists report strided --n 64 --set stride=8 --out pattern.html
    """
    from thereexists.report import html
    from thereexists.report import report as make

    html.check_writable(out)
    target = None
    if function is not None:
        from thereexists.storage import read_record
        from thereexists.targets import restore

        target = given_target(restore(read_record(witness)["target"]), function)
    is_pattern = n is not None or witness.suffix == ".npz"
    page = _pattern_page(str(witness), n, sizes) if is_pattern else make(witness, target)
    page.save(out)
    summary = {
        "report": str(out),
        "kind": page.kind,
        "title": page.title,
        "sections": [section.key for section in page.sections],
        "bytes": out.stat().st_size,
    }
    if as_json:
        print_json(summary)
    else:
        console().print(f"{out}: {page.title}, {summary['bytes'] / 1024:,.0f} KiB", markup=False)


def _pattern_page(what: str, n: int | None, sizes: list[str] | None) -> Page:
    from thereexists.cli.pattern import assignment, load_pattern
    from thereexists.patterns import check
    from thereexists.report import pattern_page

    return pattern_page(check(load_pattern(what, n, dict(assignment(text) for text in sizes or []))))
