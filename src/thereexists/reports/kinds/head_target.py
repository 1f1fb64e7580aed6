"""The report of a target of heads: a sparse attention matrix that no head shows yet."""

from __future__ import annotations

import shlex

import numpy as np

from thereexists.reports import svg
from thereexists.reports.artefact import Found, Kind
from thereexists.reports.html import Page, Section, code, facts, figure, join, panels, paragraph
from thereexists.reports.kinds.head import FLOOR, WINDOW
from thereexists.reports.kinds.pattern import is_sparse_matrix


def _page(found: Found) -> Page:
    from thereexists.heads import load_matrix

    target = load_matrix(found.path)
    n = min(WINDOW, target.length)
    matrix = np.asarray(target.to_scipy()[:n, :n].toarray())
    logs = np.log10(np.maximum(matrix, 10.0**FLOOR))
    stated = facts(
        {
            "size": f"{target.length:,} × {target.length:,}",
            "non-zeros": f"{target.nonzeros:,}, at most k = {target.k} in a row or column",
            "ratio": f"non-zeros of a row within a factor γ = {target.gamma:.4g}",
        }
    )
    words = f"The first {n} tokens; a stronger colour is a larger weight, on a log scale from 10⁻⁶ (blank) to 1."
    picture = figure(
        svg.heat(logs, FLOOR, "Target"), "Rows are the tokens that attend, columns the tokens they attend to."
    )
    sections = (
        Section("target", "The matrix", join([stated, paragraph(words), panels([picture])])),
        Section(
            "next", "A head that reproduces it", code(f"thereexists heads fit {shlex.quote(str(found.path))} --out h/")
        ),
    )
    return Page(
        "head target",
        f"A sparse attention matrix for {target.length:,} tokens",
        "What a head is asked to reproduce.",
        sections,
    )


KIND = Kind(
    "head target",
    "a sparse matrix for a head (heads random --out, an .npz of SciPy)",
    lambda found: found.path.suffix == ".npz" and found.path.is_file() and is_sparse_matrix(found.path),
    _page,
)
