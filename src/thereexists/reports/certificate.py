"""A certificate in pictures: the bound, its parts as a stacked bar, what each part pays for, and the assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from thereexists.core.authors_word import WORDS, as_its_author_says
from thereexists.core.errors import BadWitnessFile
from thereexists.reports import svg
from thereexists.reports.html import Markup, facts, figure, join, key, number, paragraph, table

PARTS = {  # of a certificate: what each one pays for
    "grid": "f against the network's constant, on cubes with distinct columns",
    "equal_columns": "cubes with equal columns, which Theorem 1 without positions answers by 0",
    "ramps": "everything between the cubes, where the quantiser is not exact",
    "network": "cubes that stayed undecided, and the radii of the enclosures",
    "sample": "mean of the sample, and its confidence term",
}


@dataclass(frozen=True)
class Stated:
    """What a certificate says of the error, as its file or the command's JSON gives it."""

    kind: str
    p: float
    bound: float
    parts: Mapping[str, float | None]
    confidence: float | None
    cells: int
    undecided: int
    assumptions: list[str]
    second_opinion: Mapping[str, Any]
    float_error: Mapping[str, Any]

    @classmethod
    def of(cls, record: Mapping[str, Any], where: Any) -> Stated:
        """The fields of a record; refuses parts that no certificate has, and numbers that are none."""
        unknown = sorted(set(record["parts"]) - set(PARTS))
        if unknown:
            raise BadWitnessFile(f"{where} has parts that no certificate has: {unknown}.")
        return cls(
            str(record["kind"]),
            float(record["p"]),
            float(record["bound"]),
            {name: None if size is None else float(size) for name, size in record["parts"].items()},
            record["confidence"],
            record["cells"],
            record["undecided"],
            [str(line) for line in record["assumptions"]],
            record.get("second_opinion") or {},
            record.get("float_error") or {},
        )


def bound_section(stated: Stated, measured: str | None = None) -> Markup:
    """The bound in one sentence, the bar, the table of parts, and the facts beside them."""
    parts = [(i, name, stated.parts[name] or 0.0) for i, name in enumerate(PARTS) if stated.parts.get(name) is not None]
    bar = svg.stacked_bar([(i, size) for i, _, size in parts], "Parts of the certified bound")
    rows = [[key(i, name.replace("_", " ")), size, PARTS[name]] for i, name, size in parts]
    power = "" if stated.p == 1 else f" The first three add up as p-th powers, p = {stated.p:g}."
    ways = {
        "rigorous": "for every input of the domain",
        "statistical": f"with confidence {stated.confidence}, over the certificate's own random points",
    }
    opinion, drift = stated.second_opinion, stated.float_error
    said = {
        "measured": measured,
        "assuming": as_its_author_says("; ".join(stated.assumptions) or "nothing"),
        "cubes": as_its_author_says(f"{number(stated.cells)}, undecided {number(stated.undecided)}"),
        "second opinion": f"{number(opinion.get('cubes'))} cubes by ball and rational arithmetic, "
        f"{len(opinion.get('disagreeing', []))} disagree ({WORDS})"
        if opinion
        else None,
        "float run": f"within {number(drift.get('max'))} of exact arithmetic ({drift.get('kind')}, "
        f"{number(drift.get('cubes'))} cubes; {WORDS})"
        if drift
        else None,
    }
    return join(
        [
            paragraph(
                f"d_{stated.p:g}(f, network) ≤ {stated.bound:.6g}, {ways.get(stated.kind, stated.kind)}, {WORDS}: "
                "this is read from the certificate, and its proof was not checked for this report."
            ),
            figure(bar, f"The bound and its parts; a part that is not zero is drawn at least a hair wide.{power}"),
            table(["part", "size", "what it pays for"], rows),
            facts(said),
        ]
    )
