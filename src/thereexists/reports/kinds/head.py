"""The report of a saved attention head: target and achieved attention beside each other, and what was verified."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np

from thereexists.core.authors_word import WORDS, as_its_author_says
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_up
from thereexists.heads.head import Head
from thereexists.heads.matrix import AttentionMatrix
from thereexists.heads.precision import dtype_needed
from thereexists.heads.stated import verify_again
from thereexists.heads.verify import Verification, verify
from thereexists.reports import svg
from thereexists.reports.artefact import Found, Kind
from thereexists.reports.first_screen import PAPERS, Number, first_screen
from thereexists.reports.html import (
    Markup,
    Page,
    Section,
    facts,
    figure,
    join,
    keys,
    number,
    panels,
    paragraph,
    table,
    upper,
)
from thereexists.reports.matrix_view import MOST_PIXELS, Layer, largest_in, pooled, thumbnail, zoomable
from thereexists.reports.svg import FLOOR

WINDOW = 48  # tokens that a card draws
MOST_ROWS = 1024  # rows that are verified again
MOST_EXACT_ROWS = 256  # the same in balls
MOST_ATTENDED = 8192  # tokens of a head whose attention is computed for the page
ROWS_AT_ONCE = 256


def head_page(head: Head, record: dict, folder: Path) -> Page:
    title = f"An attention head for {head.target.length:,} tokens"
    lead = "One fixed head whose softmax reproduces a given sparse matrix, with the rows that were verified."
    again, layers = _verified_again(head), layers_of(head)
    sections = (
        Section("head", "The head", _head(head, record, again)),
        Section("verified", "What was verified", _verified(head, again, folder)),
        Section("attention", "Target and attention", _attention(head, layers)),
    )
    source = f"After {PAPERS['heads']}."
    pictures = join([panels([thumbnail(layer) for layer in layers], style="three"), keys(_keys(layers))])
    return Page("head", title, lead, sections, first_screen(_largest(head, again, folder), source, pictures))


def _largest(head: Head, again: Verification | None, folder: Path) -> list[Number]:
    """How small, how exact, and how many rows were looked at."""
    asked = f"hidden size d; the theorem's own construction asks for {number(head.theorem_hidden_size)}"
    check = f"all rows: thereexists heads verify {shlex.quote(str(folder))}"
    size = (Markup(f"d = {number(head.hidden_size)}"), asked)
    if again is None:
        leakage = (Markup(f"≤ {number(head.eps1)}"), f"worst leakage that was asked for: {WORDS}")
        return [size, leakage, ("not verified", f"too long to check for this page; {check}")]
    leakage = (
        upper(again.leakage),
        f"worst leakage, weight off the target, in {again.dtype}; ε₁ = {number(head.eps1)}",
    )
    rows = f"{again.rows:,} of {head.target.length:,} rows were checked for this page"
    states = {True: "verified", False: "does not hold"}
    whole = again.rows == head.target.length
    state = states.get(again.verdict.holds, "undecided")  # pyright: ignore[reportCallIssue, reportArgumentType]
    return [size, leakage, (state if whole or state != "verified" else "partly verified", f"{rows}; {check}")]


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
            f"in a row or column, within a factor γ = {rounded_up(target.gamma, 4)}",
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
    rows: list[list] = [[when, stored.rows, upper(stored.leakage), upper(stored.ratio_error), stored.dtype]]
    wanted = f"leakage below ε₁ = {in_full(head.eps1)} and ratios within ε₂ = {in_full(head.eps2)}"
    if again is None:
        verdict = paragraph(f"Not checked for this report: whether every row keeps {wanted}.")
        remark = "The head needs more than float64, and checking it takes long."
    else:
        rows.append(["for this report", again.rows, upper(again.leakage), upper(again.ratio_error), again.dtype])
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


def _attention(head: Head, layers: list[Layer]) -> Markup:
    length, side = head.target.length, len(layers[0].weights)
    pixel = (
        "" if side == length else f" A pixel is the largest of about {length / side:.1f} × {length / side:.1f} weights."
    )
    words = f"All {length:,} tokens. Rows are the tokens that attend, columns the tokens they attend to.{pixel} "
    words += "Choose what to see, and how large."
    parts = [paragraph(words), zoomable(layers, length), keys(_keys(layers))]
    if len(layers) == 1:
        why = "it needs more digits than float64 has" if head.words is not None else f"beyond {MOST_ATTENDED:,} tokens"
        parts.append(paragraph(f"The head's own attention is not drawn: {why}.", "soft"))
    return join(parts)


def _keys(layers: list[Layer]) -> list[Markup]:
    return [svg.strengths(layer.colour, f"{layer.name}: 10⁻⁶ or less", "1") for layer in layers]


def layers_of(head: Head) -> list[Layer]:
    """Target, attention and difference at full length; the target alone where the attention is not to be had."""
    length = head.target.length
    layers = [target_layer(head.target)]
    if head.words is not None or length > MOST_ATTENDED:
        return layers
    side = len(layers[0].weights)
    edges = np.arange(side) * length // side
    A = head.target.to_scipy()
    keyed = (head.X @ head.W_K).T
    found, gap = [], []
    for first, last in pairwise([*edges[::ROWS_AT_ONCE].tolist(), length]):
        weights = ((head.X[first:last] @ head.W_Q) @ keyed).double().softmax(-1).numpy()
        rows = edges[(edges >= first) & (edges < last)] - first
        found.append(largest_in(weights, rows, edges))
        gap.append(largest_in(np.abs(weights - A[first:last].toarray()), rows, edges))
    layers.append(Layer("attention of the head", np.concatenate(found), svg.NETWORK))
    layers.append(Layer("difference", np.concatenate(gap), svg.ERROR))
    return layers


def target_layer(target: AttentionMatrix) -> Layer:
    """A target at full length, or as near to that as a page can show."""
    side = min(target.length, MOST_PIXELS)
    weights = pooled(target.rows(), target.indices, target.probabilities(), target.length, side)
    return Layer("target", weights, svg.ASKED)


def attention_pictures(head: Head) -> list[Markup]:
    """The target, the head's attention, and the difference, for the first tokens."""
    n = min(WINDOW, head.target.length)
    wanted = np.asarray(head.target.to_scipy()[:n, :n].toarray())
    pictures = [figure(svg.heat(_log(wanted), FLOOR, "Target", svg.ASKED), "Target.")]
    if head.words is None:
        logits = (head.X[:n] @ head.W_Q) @ (head.X @ head.W_K).T
        found = logits.double().softmax(-1)[:, :n].numpy()
        drawn = svg.heat(_log(found), FLOOR, "Attention of the head", svg.NETWORK)
        pictures.append(figure(drawn, "Attention of the head."))
        gap = np.abs(found - wanted)
        pictures.append(
            figure(
                svg.heat(_log(gap), FLOOR, "Difference", svg.ERROR),
                f"|difference|, at most {upper(float(gap.max()))}.",
            )
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
