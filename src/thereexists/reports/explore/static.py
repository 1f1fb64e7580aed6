"""The page of ``explore`` as one file: the answers to a lattice of inputs are stored in it, so it needs no server.

The script is the same as that of the live page. It finds the stored answers in the file and asks them instead of a
server; what is dragged goes to the nearest stored input. The page's policy allows this very script, by its hash, and
nothing else: no request, no other script. As on the live page, texts of the witness are JSON and are shown as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.atomic_files import write_beside
from thereexists.core.errors import InvalidInput
from thereexists.core.neutral import neutral
from thereexists.reports.explore import assets
from thereexists.reports.explore.output_map import rounded
from thereexists.reports.explore.viewer import Viewer, plain

MOST_INPUTS = 125
MOST_BYTES = 8_000_000  # of stored answers; later inputs are left out
MOST_EXAMPLES = 24


@neutral()
def static_page(viewer: Viewer) -> tuple[str, int]:
    """The document, and how many inputs it has the answers to."""
    about = plain(viewer.about())
    runs: list[dict[str, Any]] = []
    size = 0
    for asked in _inputs(about):
        try:
            answer = plain(viewer.run(asked)) | {"input": asked, "milliseconds": 0}
        except InvalidInput:  # of a lattice around a domain that is not a box, some points lie outside
            continue
        size += len(json.dumps(answer))
        if runs and size > MOST_BYTES:
            break
        runs.append(answer)
    table = _table(viewer)
    about["map"] = table is not None
    stored = json.dumps({"about": about, "runs": runs, "table": table}, allow_nan=False).replace("<", "\\u003c")
    return _document(stored), len(runs)


def save_static(viewer: Viewer, file: str | Path) -> int:
    """Write the page, whole or not at all; how many inputs it has the answers to."""
    document, inputs = static_page(viewer)
    write_beside(Path(file), document)
    return inputs


def _table(viewer: Viewer) -> dict[str, Any] | None:
    """The outputs at a lattice over all entries: every map of the page is a plane of it."""
    lattice = viewer.lattice(coarse=True)
    outputs = None if lattice is None else lattice.table()
    return None if lattice is None or outputs is None else plain({"axes": lattice.axes, "outputs": rounded(outputs)})


def _inputs(about: dict[str, Any]) -> list[dict[str, Any]]:
    """The first input, and a lattice over all entries; of words, the examples."""
    if not about.get("low"):
        words = [about["start"], *about.get("examples", [])]
        return [{"words": list(one)} for one in dict.fromkeys(map(tuple, islice(words, MOST_EXAMPLES)))]
    n, d = about["n"], about["d"]
    positions = int(MOST_INPUTS ** (1 / (n * d)) + 1e-9)
    about["positions"] = positions if positions > 2 else 0
    low, width = np.tile(about["low"], n), np.tile(np.subtract(about["high"], about["low"]), n)
    if positions > 2:
        shares = np.array(list(product((np.arange(positions) + 0.5) / positions, repeat=n * d)))
    else:  # too many entries for a lattice: each one moves while the others stay
        start = (np.array(about["start"]).ravel() - low) / width
        shares = np.tile(start, (9 * n * d, 1))
        shares[np.arange(len(shares)), np.repeat(np.arange(n * d), 9)] = np.tile((np.arange(9) + 0.5) / 9, n * d)
        shares = shares[:MOST_INPUTS]
    points = (low + width * shares).reshape(-1, n, d)
    return [{"x": about["start"]}, *({"x": point.tolist()} for point in points)]


def _document(stored: str) -> str:
    code = assets.script()
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    head = f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}; base-uri \'none\'">'
    document = assets.document().replace('<meta charset="utf-8">', head)
    document = re.sub(r'<link rel="stylesheet"[^>]*>\n|<script src[^>]*></script>\n', "", document)
    answers = f'<script type="application/json" id="stored">{stored}</script>\n<script>{code}</script>\n</body>'
    return document.replace("</head>", f"<style>\n{assets.style()}</style>\n</head>").replace("</body>", answers)
