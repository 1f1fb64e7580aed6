"""The report of what ``pattern check --json`` or ``pattern compare --json`` printed: verdict, mask, path, field."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from thereexists.core.authors_word import WORDS, as_its_author_says
from thereexists.core.errors import ThereExistsError
from thereexists.core.rounded_figures import cut
from thereexists.patterns import Pattern
from thereexists.patterns.picture import density
from thereexists.patterns.stated import TooLarge
from thereexists.reports import stated, svg
from thereexists.reports.artefact import Found, Kind
from thereexists.reports.first_screen import Number, first_screen
from thereexists.reports.html import Digits, Markup, Page, Section, figure, join, measured, panels, paragraph, text
from thereexists.reports.kinds.pattern import (
    CELLS,
    SOURCE,
    density_key,
    density_pictures,
    pattern_numbers,
    thumbnails,
    universal_words,
)
from thereexists.reports.sparse import MOST_STEPS, MOST_TOKENS, pattern_pictures
from thereexists.reports.verdict_pictures import steps

_UNIVERSAL = {True: "yes", False: "no", None: "undecided"}
_IN_WORDS = {True: "universal", False: "not universal", None: "undecided"}
MOST_IN_GALLERY = 4096  # tokens of a pattern that the gallery draws
MOST_DRAWN = 1 << 26  # connections of all that it draws, each being made again
LARGEST = 1 << 20  # tokens of a pattern that is built again


def _page(found: Found) -> Page:
    return _compared(found.record) if "patterns" in found.record else _checked(found.record)


def _checked(record: dict[str, Any]) -> Page:
    n, route = record["n"], record["hamiltonian_path"]
    title = f"The pattern {as_its_author_says(record['name'])} on {n:,} tokens"
    verdict = join(
        [
            stated.paragraph(*universal_words(record["universal"])),
            *(stated.paragraph(str(reason)) for reason in record["reasons"]),
            stated.facts(
                {
                    "every token sees itself": "yes" if record["self_loops"] else "no",
                    "path": f"{route['status']} ({route['method']})",
                    "rule": route.get("rule"),
                    "receptive depth": record["receptive_depth"],
                    "farthest pair": record["farthest_pair"],
                    "connections": ", ".join(f"{c:,}" for c in record["connections"][:8]),
                    "sparsity": cut(record["sparsity"], 4),
                    "configuration": record["config"],
                    "seconds": record["seconds"],
                }
            ),
        ]
    )
    sections = (
        Section("verdict", "Is it universal?", verdict),
        Section("pattern", "The pattern", _pictures(record, route.get("path"))),
    )
    lead = f"A verdict that was printed, {WORDS}; drawn again, not decided again."
    most = max(map(int, record["connections"]))
    numbers = pattern_numbers(record["universal"], record["receptive_depth"], most, n, WORDS)
    return Page(
        "pattern check", title, lead, sections, first_screen(numbers, SOURCE, _conditions(record), _small(record))
    )


def _conditions(record: dict[str, Any]) -> Markup:
    """The three conditions of the theorem, as the verdict says: all of them hold of what it calls universal."""
    return figure(steps(_refuse_contradictions(record)), f"The conditions of the theorem, {WORDS}.")


def _refuse_contradictions(record: dict[str, Any]) -> dict[str, bool | None]:
    """Which of the three holds."""
    path = {"found": True, "impossible": False}.get(record["hamiltonian_path"]["status"])
    full = True if record["receptive_depth"] is not None else None if record["never_connected"] is None else False
    marks = {
        "every token attends to itself": bool(record["self_loops"]),
        "a Hamiltonian path": path,
        "every token sees every other": full,
    }
    if record["universal"] is True and not all(holds is True for holds in marks.values()):
        raise ValueError("it is called universal, and a condition of that does not hold")
    return marks


def _small(record: dict[str, Any]) -> Markup:
    """The steps as small pictures, if the pattern can be built again."""
    try:
        pattern = _again(record)
    except TooLarge:
        return Markup("")
    return Markup("") if pattern is None or pattern.n > MOST_IN_GALLERY else thumbnails(pattern)


def _pictures(record: dict[str, Any], path: Any) -> Markup:
    try:
        pattern = _again(record)
    except TooLarge as error:
        return paragraph(f"{error} It is not drawn here.")
    if pattern is None:
        words = (
            "The verdict names no pattern of the library with these connections, so it cannot be drawn from its name."
        )
        return paragraph(f"{words} Give the mask or the config itself to thereexists report.")
    if pattern.n > MOST_TOKENS:
        return density_pictures(pattern)
    return pattern_pictures(np.asarray(pattern.mask()), pattern.name, path)


def _again(record: dict[str, Any]) -> Pattern | None:
    """The pattern built from its name and sizes; None unless its connections are those of the verdict."""
    from thereexists.patterns import REGISTRY
    from thereexists.patterns.stated import build_stated

    name, n = record["name"], record["n"]
    if not isinstance(name, str) or name not in REGISTRY or type(n) is not int or not 1 <= n <= LARGEST:
        return None
    try:
        pattern = build_stated(name, n, record["parameters"], record["config"] == "union")
    except TooLarge:  # said by the caller
        raise
    except ThereExistsError:
        return None
    return pattern if list(pattern.connections) == record["connections"] else None


def _compared(record: dict[str, Any]) -> Page:
    for one in record["patterns"]:
        _refuse_contradictions(one)
    rows = [
        [
            str(one["name"]),
            _UNIVERSAL[one["universal"]],
            "–" if one["receptive_depth"] is None else str(one["receptive_depth"]),
            measured(max(one["connections"]) / record["n"]),
            str(one["hamiltonian_path"]["status"]),
            one["cycle"],
            max(one["connections"]),
            Digits(cut(one["sparsity"], 4)),
        ]
        for one in record["patterns"]
    ]
    head = ["pattern", "universal", "depth", "per token", "path", "steps", "connections", "sparsity"]
    left = [stated.paragraph(f"Left out {name}: {why}", "soft") for name, why in record.get("refused", {}).items()]
    remark = paragraph(
        "Undecided: the sufficient conditions fail or could not be decided, which is not a disproof.", "soft"
    )
    body = join([stated.table(head, rows), remark, *left])
    first = np.cumsum([sum(map(int, one["connections"])) for one in record["patterns"]]) <= MOST_DRAWN
    chosen = itertools.compress(record["patterns"], first)
    drawn = [picture for one in chosen if (picture := _thumbnail(one)) is not None]
    words = (
        "All steps of a pattern together. Rows are the tokens that attend, columns the tokens they attend to; "
        "equal scales."
    )
    gallery = join([paragraph(words), density_key(), panels(drawn, style="gallery")]) if drawn else Markup("")
    return Page(
        "pattern comparison",
        f"Patterns on {record['n']:,} tokens",
        f"Verdict, depth, connections, path, {WORDS}.",
        (Section("compared", "Every pattern that the file lists", body),),
        first_screen(_compared_numbers(record), SOURCE, gallery),
    )


def _compared_numbers(record: dict[str, Any]) -> list[Number]:
    """How many, how many of them are universal, and the sparsest of those."""
    universal = [one for one in record["patterns"] if one["universal"] is True]
    counts = [(len(record["patterns"]), f"patterns, {WORDS}"), (len(universal), f"of them universal: {WORDS}")]
    if not universal:
        return counts
    least = min(universal, key=lambda one: max(one["connections"]))
    per_token = round(max(least["connections"]) / record["n"], 1)
    return [*counts, (per_token, f"connections per token of the sparsest universal one, {least['name']}: {WORDS}")]


def _thumbnail(one: dict[str, Any]) -> Markup | None:
    """A pattern's steps together, as a map of densities; None if it is not in the library, or is too large."""
    try:
        pattern = _again(one)
    except TooLarge:
        return None
    if pattern is None or pattern.n > MOST_IN_GALLERY:
        return None
    cells = min(pattern.n, CELLS)
    full = np.max([density(step, cells) for step in pattern.steps[:MOST_STEPS]], axis=0)
    depth = one["receptive_depth"]
    facts_of = [] if depth is None else [as_its_author_says(f"depth {depth}")]
    facts_of.append(f"{max(pattern.connections) / pattern.n:,.1f} per token")
    verdict = _IN_WORDS[one["universal"]]
    tone = {True: "good", False: "bad"}.get(one["universal"], "")
    caption = Markup(
        f'<b>{text(pattern.name)}</b><br><span class="{tone}">{stated.marked(verdict)}</span><br>'
        f"{text(', '.join(facts_of))}"
    )
    title = f"{pattern.name}: {as_its_author_says(verdict)}, {', '.join(facts_of)}"
    return figure(svg.heat(np.sqrt(full) - 1.0, -1.0, title, labels=False), caption)


KIND = Kind(
    "pattern check",
    "the JSON of pattern check or pattern compare",
    lambda found: found.has("hamiltonian_path", "receptive_depth") or found.has("patterns", "refused", "n"),
    _page,
)
