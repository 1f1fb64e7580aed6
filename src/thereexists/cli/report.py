"""report: one page about a saved artefact, to look at instead of to read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thereexists.cli._output import AsJson, console, print_json
from thereexists.cli.certificate import Function, given_target

app = typer.Typer()


@app.command()
def report(
    witness: Annotated[Path, typer.Argument(help="The folder of a witness or of an attention head.")],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    function: Function = None,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page about a witness or a head: opens offline, prints well, asks nobody for anything.

    Examples: thereexists report w/ --out report.html

    thereexists report h/ --out head.html
    """
    from thereexists.report import html
    from thereexists.report import report as make

    html.check_writable(out)
    target = None
    if function is not None:
        from thereexists.storage import read_record
        from thereexists.targets import restore

        target = given_target(restore(read_record(witness)["target"]), function)
    page = make(witness, target)
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
