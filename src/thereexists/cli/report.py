"""report: one page about any artefact, to look at instead of to read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thereexists.cli._files import Force, files_to_write
from thereexists.cli._output import AsJson, console, print_json
from thereexists.cli.certificate import Function, OwnDomain, given_target, stored_target

app = typer.Typer()


@app.command()
def report(
    artefact: Annotated[
        Path,
        typer.Argument(
            help="The folder of a witness, a head or runs; a JSON file that one of our commands wrote; a mask.npz, a "
            "config.json, or the name of a pattern with --n."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    function: Function = None,
    domain: OwnDomain = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Tokens of a pattern.")] = None,
    sizes: Annotated[list[str] | None, typer.Option("--set", help="A size of a pattern, as name=value.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page about an artefact: opens offline, prints well, and requests nothing.

    Examples: thereexists report w/ --out report.html

    thereexists report h/ --out head.html

    thereexists report strided --n 64 --set stride=8 --out pattern.html

    thereexists report runs/ --out results.html
    """
    from thereexists.cli.pattern import assignment
    from thereexists.reports import html
    from thereexists.reports import report as make

    files_to_write(force, (out, ()))
    html.check_writable(out)
    target = None
    if function is not None or domain is not None:
        from thereexists.core.storage import read_record

        target = given_target(stored_target(artefact, read_record(artefact)), function, domain)
    page = make(artefact, target, n, dict(assignment(text) for text in sizes or []))
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
