"""The report of a target of heads: a sparse attention matrix that no head shows yet."""

from __future__ import annotations

import shlex

from thereexists.core.rounded_figures import rounded_up
from thereexists.reports import svg
from thereexists.reports.artefact import Found, Kind
from thereexists.reports.first_screen import PAPERS, first_screen
from thereexists.reports.html import Markup, Page, Section, code, facts, join, keys, panels, paragraph
from thereexists.reports.kinds.head import target_layer
from thereexists.reports.kinds.pattern import is_sparse_matrix
from thereexists.reports.matrix_view import thumbnail, zoomable


def _page(found: Found) -> Page:
    from thereexists.heads import load_matrix

    target = load_matrix(found.path)
    layer = target_layer(target)
    stated = facts(
        {
            "size": f"{target.length:,} × {target.length:,}",
            "non-zeros": f"{target.nonzeros:,}, at most k = {target.k} in a row or column",
            "ratio": f"non-zeros of a row within a factor γ = {rounded_up(target.gamma, 4)}",
        }
    )
    legend = keys([svg.strengths(svg.ASKED, "weight 10⁻⁶ or less", "1")])
    words = "Rows are the tokens that attend, columns the tokens they attend to."
    sections = (
        Section("target", "The matrix", join([stated, paragraph(words), zoomable([layer], target.length), legend])),
        Section("next", "A head that shows it", code(f"thereexists heads fit {shlex.quote(str(found.path))} --out h/")),
    )
    numbers = [
        (target.length, f"tokens, {target.nonzeros:,} non-zeros"),
        (
            Markup(f"k = {target.k}"),
            f"non-zeros in a row or column at most, within a factor γ = {rounded_up(target.gamma, 4)}",
        ),
        ("no head yet", f"thereexists heads fit {shlex.quote(str(found.path))} --out h/"),
    ]
    return Page(
        "head target",
        f"A sparse attention matrix for {target.length:,} tokens",
        "What a head is asked to reproduce.",
        sections,
        first_screen(numbers, f"What heads can show: {PAPERS['heads']}.", panels([thumbnail(layer)])),
    )


KIND = Kind(
    "head target",
    "a sparse matrix for a head (heads random --out, an .npz of SciPy)",
    lambda found: found.path.suffix == ".npz" and found.path.is_file() and is_sparse_matrix(found.path),
    _page,
)
