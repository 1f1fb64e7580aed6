"""explore: a local page on which an input goes through a witness, layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thereexists.cli._applies import refuse
from thereexists.cli._output import AsJson, print_json
from thereexists.cli.certificate import Function, OwnDomain, given_target, stored_target

app = typer.Typer()


@app.command()
def explore(
    witness: Annotated[Path, typer.Argument(help="The folder of a witness.")],
    port: Annotated[int, typer.Option(help="The port to listen on; 0: a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    function: Function = None,
    domain: OwnDomain = None,
    as_json: AsJson = False,
) -> None:
    """Watch an input go through a witness: a page on this machine only, until Ctrl-C.

    Examples: thereexists explore w/

    thereexists explore w/ --no-browser --port 8600
    """
    from thereexists.reports.explore import Server, open_viewer

    if as_json and browser:
        refuse("with --json whoever reads the address opens it", "browser")

    target = None
    if function is not None or domain is not None:
        from thereexists.core.storage import read_record

        target = given_target(stored_target(witness, read_record(witness)), function, domain)
    viewer = open_viewer(witness, target)
    with Server(viewer, port) as server:
        if as_json:
            print_json({"url": server.url, "port": server.port, "kind": viewer.kind})
        else:
            print(f"{server.url}\nOnly this machine can open it. Ctrl-C stops it.")
        _flush()
        if browser and not as_json:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            if not as_json:
                print("\nStopped.")


def _flush() -> None:
    import sys

    sys.stdout.flush()
