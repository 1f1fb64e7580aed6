"""explore: a local page on which an input goes through a witness, layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thereexists.cli._applies import refuse
from thereexists.cli._files import Force, files_to_write
from thereexists.cli._output import AsJson, print_json
from thereexists.cli.certificate import Function, OwnDomain, given_target, stored_target

app = typer.Typer()


@app.command()
def explore(
    witness: Annotated[Path, typer.Argument(help="The folder of a witness.")],
    port: Annotated[int, typer.Option(help="The port to listen on; 0: a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    out: Annotated[
        Path | None, typer.Option(help="Write the page to this .html file, with the answers to many inputs, and stop.")
    ] = None,
    function: Function = None,
    domain: OwnDomain = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Watch an input go through a witness: a page on this machine only, until Ctrl-C, or in a file.

    Examples: thereexists explore w/

    thereexists explore w/ --no-browser --port 8600

    thereexists explore w/ --out page.html
    """
    from thereexists.reports.explore import Server, open_viewer, save_static

    if as_json and browser:
        refuse("with --json, the program that reads the address opens it", "browser")
    if out is not None:
        refuse("a page in a file needs no server", "port", "browser")
    files_to_write(force, (out, (".html", ".htm")))

    target = None
    if function is not None or domain is not None:
        from thereexists.core.storage import read_record

        target = given_target(stored_target(witness, read_record(witness)), function, domain)
    viewer = open_viewer(witness, target)
    if out is not None:
        inputs = save_static(viewer, out)
        told = f"{out}: the answers to {inputs} inputs, {out.stat().st_size / 1024:,.0f} KiB"
        print_json({"file": str(out), "inputs": inputs, "kind": viewer.kind}) if as_json else print(told)
        return
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
