"""The report of a verdict that a command printed: ``verify --json``, ``heads verify --json``, ``heads fit --json``."""

from __future__ import annotations

from typing import Any

from thereexists.core.authors_word import WORDS
from thereexists.heads.figures import AT_MOST
from thereexists.reports import stated
from thereexists.reports.artefact import Found, Kind
from thereexists.reports.first_screen import PAPERS, Number, first_screen
from thereexists.reports.html import Markup, Page, Section, figure, in_figures, join, measured, number, upper
from thereexists.reports.verdict_pictures import Size, decades, steps, worded

_WORDS = {True: "Everything holds", False: "It does not hold", None: "Undecided"}
_TONES = {True: "good", False: "bad", None: ""}


def _page(found: Found) -> Page:
    record = found.record
    holds = record["holds"]
    if holds not in (True, False, None):
        raise ValueError(f"'holds' is {holds!r}")
    sections = [
        Section(
            "verdict",
            "The verdict",
            join([stated.paragraph(_WORDS[holds], _TONES[holds]), *_reasons(record)]),
        )
    ]
    if "checks" in record:
        rows = [[str(c["name"]), _marked(c["passed"]), in_figures(c["detail"])] for c in record["checks"]]
        sections.append(Section("checks", "Every check", stated.table(["check", "", "what was found"], rows)))
        title = "A witness, checked again"
    else:
        sections.append(Section("figures", "Figures", stated.facts(_flat(record))))
        title = "An attention head, " + ("fitted" if "method" in record else "checked again")
    lead = f"What {found.path.name} says, {WORDS}; the files themselves were not examined."
    paper = PAPERS["A" if "checks" in record else "heads"]
    first = first_screen(_largest(record), f"What such a network is: {paper}.", _picture(record))
    return Page("verdict", title, lead, tuple(sections), first)


def _largest(record: dict[str, Any]) -> list[Number]:
    """The verdict, what stands behind it, and whether this page looked again."""
    holds = {True: "holds", False: "does not hold", None: "undecided"}[record["holds"]]
    verdict, state = (holds, f"the verdict that was printed, {WORDS}"), ("not verified", "for this page")
    if "checks" in record:
        passed = sum(check["passed"] is True for check in record["checks"])
        return [verdict, (f"{passed} of {len(record['checks'])}", f"checks passed, {WORDS}"), state]
    return [verdict, (upper(record["leakage"]), f"worst leakage, {WORDS}"), state]


def _picture(record: dict[str, Any]) -> Markup:
    """Every check with its mark; of a head, how much of what was asked for it uses up."""
    if "checks" in record:
        marks = steps((str(check["name"]), _passed(check["passed"])) for check in record["checks"])
        return figure(marks, f"Every check, {WORDS}.")
    limits = {"leakage": record.get("eps1"), "ratio_error": record.get("eps2")}
    rows = [Size(name.replace("_", " "), float(record[name]), limit=limit) for name, limit in limits.items()]
    asked = " The dashed marks are what was asked for." if any(limits.values()) else ""
    return figure(decades(rows, "Errors of the head"), f"The worst row, {WORDS}, on a logarithmic scale.{asked}")


def _passed(stated: Any) -> bool | None:
    """What a file says, if it is one of the three; anything else is no pass."""
    return stated if stated is True or stated is None else False


def _marked(stated: Any) -> Markup:
    passed = _passed(stated)
    return worded(passed, {True: "passed", False: "failed", None: "not made"}[passed])


def _reasons(record: dict[str, Any]) -> list[Markup]:
    return [stated.paragraph(str(reason)) for reason in record.get("reasons", [])]


def _flat(record: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Figures by name; those of objects within the record behind a comma."""
    out: dict[str, Any] = {}
    for name, value in record.items():
        label = f"{before}, {name}" if before else str(name)
        label = label.replace("_", " ")
        if isinstance(value, dict):
            out |= _flat(value, label)
        elif name not in ("holds", "reasons"):
            out[label] = _figure(name, value)
    return out


def _figure(name: str, value: Any) -> Markup:
    return upper(value) if name in AT_MOST else measured(value) if name == "seconds" else number(value)


KIND = Kind(
    "verdict",
    "the JSON of verify, heads verify or heads fit",
    lambda found: found.has("holds", "checks") or found.has("holds", "reasons", "leakage"),
    _page,
)
