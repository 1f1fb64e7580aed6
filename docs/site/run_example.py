"""Run one example as a notebook would, and print its cells with what they gave, as JSON: python run_example.py file.py

A cell gives what it prints, the picture or the words of its last expression (``_repr_html_`` or ``repr``), and the
figures that it drew with matplotlib, as a notebook shows them.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import html as html_text
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import jupytext


def main(script: Path) -> list[dict[str, str]]:
    notebook = jupytext.read(script)
    names: dict[str, Any] = {"__name__": "__main__"}
    return [{"kind": cell.cell_type, "source": cell.source} | _given(cell, names) for cell in notebook.cells]


def _given(cell: Any, names: dict[str, Any]) -> dict[str, str]:
    if cell.cell_type != "code":
        return {}
    tree, printed = ast.parse(cell.source), io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<example>", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<example>", "eval"), names)
    html = getattr(value, "_repr_html_", lambda: None)()
    words = "" if value is None or html else repr(value) + "\n"
    return {"printed": printed.getvalue() + words, "html": (html or "") + _figures()}


def _figures() -> str:
    """What is drawn and not yet shown, as images in the page itself; none where nothing was drawn."""
    plots = sys.modules.get("matplotlib.pyplot")
    shown = []
    for number in plots.get_fignums() if plots else ():
        file = io.BytesIO()
        figure = plots.figure(number)
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
        titles = (axes.get_title() or axes.get_xlabel() for axes in figure.axes)
        about = html_text.escape("; ".join(filter(None, titles)) or "A figure", quote=True)
        data = base64.b64encode(file.getvalue()).decode("ascii")
        shown.append(f'<img alt="{about}" src="data:image/svg+xml;base64,{data}">')
        plots.close(figure)
    return "".join(shown)


if __name__ == "__main__":
    script = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found = main(script)
        os.chdir("/")
    print(json.dumps(found))
