"""The report of a saved attention head: target and achieved attention beside each other, and what was verified."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np

from thereexists.core.authors_word import as_its_author_says
from thereexists.heads.head import Head
from thereexists.heads.precision import dtype_needed
from thereexists.heads.stated import verify_again
from thereexists.heads.verify import Verification, verify
from thereexists.reports import svg
from thereexists.reports.artefact import Found, Kind
from thereexists.reports.html import Markup, Page, Section, facts, figure, join, number, panels, paragraph, table

WINDOW = 48  # tokens that are drawn
MOST_ROWS = 1024  # rows that are verified again
MOST_EXACT_ROWS = 256  # the same in balls
FLOOR = -6.0  # decimal logarithm of the smallest weight that is drawn


def head_page(head: Head, record: dict, folder: Path) -> Page:
    title = f"An attention head for {head.target.length:,} tokens"
    lead = "One fixed head whose softmax reproduces a given sparse matrix, with the rows that were verified."
    again = _verified_again(head)
    sections = (
        Section("head", "The head", _head(head, record, again)),
        Section("verified", "What was verified", _verified(head, again, folder)),
        Section("attention", "Target and attention", _attention(head)),
    )
    return Page("head", title, lead, sections)


def _verified_again(head: Head) -> Verification | None:
    """Some or all rows, checked for this report; None for a long sum of words, which takes minutes in balls."""
    if head.words is not None:
        return verify_again(head) if head.target.length <= MOST_EXACT_ROWS else None
    every = max(1, -(-head.target.length // MOST_ROWS))
    rows = np.arange(0, head.target.length, every)
    return verify(head.X, head.W_Q, head.W_K, head.target, eps1=head.eps1, eps2=head.eps2, rows=rows)


def _head(head: Head, record: dict, again: Verification | None) -> Markup:
    target = head.target
    needs = as_its_author_says(f"needs {head.dtype_needed}")
    if head.words is None and again is not None and again.rows == target.length:
        found = dtype_needed(head.X, head.W_Q, head.W_K, target, again, head.eps1, head.eps2)
        needs = f"needs {found} (run again for this report)"
    return facts(
        {
            "target": f"{target.length:,} × {target.length:,}, {target.nonzeros:,} non-zeros, at most k = {target.k} "
            f"in a row or column, within a factor γ = {target.gamma:.4g}",
            "method": as_its_author_says(head.method),
            "hidden size": f"d = {head.hidden_size:,}; the paper's theorem asks for {number(head.theorem_hidden_size)}",
            "head size": f"m = {head.head_size:,}",
            "number format": needs,
            "seed": as_its_author_says(head.seed),
            "built by": as_its_author_says(f"thereexists {record['package_version']}"),
            "weights": f"SHA-256 {record['weights_sha256']}",
        }
    )


def _verified(head: Head, again: Verification | None, folder: Path) -> Markup:
    stored = head.verification
    when = as_its_author_says("when it was made")
    rows: list[list] = [[when, stored.rows, stored.leakage, stored.ratio_error, stored.dtype]]
    wanted = f"leakage below ε₁ = {head.eps1:g} and ratios within ε₂ = {head.eps2:g}"
    if again is None:
        verdict = paragraph(f"Not checked for this report: whether every row keeps {wanted}.")
        remark = "The head needs more than float64, and checking it takes long."
    else:
        rows.append(["for this report", again.rows, again.leakage, again.ratio_error, again.dtype])
        holds = again.verdict.holds
        keeps = {True: "Every checked row keeps", False: "Not every checked row keeps"}
        words = keeps.get(holds, "It is undecided whether every checked row keeps")  # pyright: ignore
        verdict = paragraph(f"{words} {wanted}.", "good" if holds else "bad")
        all_rows = again.rows == head.target.length
        remark = "" if all_rows else f"For this report {again.rows:,} of {head.target.length:,} rows were checked."
    return join(
        [
            verdict,
            table(["checked", "rows", "worst leakage", "worst ratio error", "arithmetic"], rows),
            paragraph(remark, "soft"),
            paragraph(f"To check all rows again: thereexists heads verify {shlex.quote(str(folder))}", "soft"),
        ]
    )


def _attention(head: Head) -> Markup:
    n = min(WINDOW, head.target.length)
    remark = f"The first {n} of {head.target.length:,} tokens. " if n < head.target.length else ""
    if head.words is not None:
        remark += "The attention needs more digits than float64 has, and is not drawn. "
    scale = "a stronger colour is a larger weight, on a log scale from 10⁻⁶ (blank) to 1"
    words = f"{remark}Rows are the tokens that attend, columns the tokens they attend to; {scale}."
    return join([paragraph(words), panels(attention_pictures(head))])


def attention_pictures(head: Head) -> list[Markup]:
    """The target, the head's attention, and the difference, for the first tokens."""
    n = min(WINDOW, head.target.length)
    wanted = np.asarray(head.target.to_scipy()[:n, :n].toarray())
    pictures = [figure(svg.heat(_log(wanted), FLOOR, "Target"), "Target.")]
    if head.words is None:
        logits = (head.X[:n] @ head.W_Q) @ (head.X @ head.W_K).T
        found = logits.double().softmax(-1)[:, :n].numpy()
        pictures.append(figure(svg.heat(_log(found), FLOOR, "Attention of the head"), "Attention of the head."))
        gap = np.abs(found - wanted)
        pictures.append(
            figure(svg.heat(_log(gap), FLOOR, "Difference", colour=3), f"|difference|, at most {gap.max():.2g}.")
        )
    return pictures


def _log(matrix: np.ndarray) -> np.ndarray:
    return np.log10(np.maximum(matrix, 10.0**FLOOR))


def _page(found: Found) -> Page:
    from thereexists.core.storage import HEAD, read_record
    from thereexists.heads.io import load

    return head_page(load(found.path), read_record(found.path, HEAD), found.path)


KIND = Kind(
    "head",
    "the folder of a saved attention head (heads fit --out)",
    lambda found: (found.path / "head.json").is_file(),
    _page,
)
