"""The report of a program's witness: what is proved, where every operation lives, and the number formats."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from thereexists.core.authors_word import WORDS
from thereexists.reports.artefact import Found
from thereexists.reports.html import Markup, Page, Section, code, facts, join, number, paragraph, table
from thereexists.witness.load import load as read_witness


def program_page(folder: Path, witness: Any) -> Page:
    described = witness.describe()
    sections = (
        Section("built", "What was built", _built(described)),
        Section("certificate", "What is certified", _proved(witness, described)),
        Section("places", "Where every operation lives", places_section(witness)),
        Section("reproduce", "How to check it", code(f"thereexists verify {shlex.quote(str(folder))}")),
    )
    lead = f"A program over the reals for {witness.n} tokens, compiled to {described['blocks']} standard blocks."
    return Page("program", f"There exists a Transformer: {described['operation']}", lead, sections)


def _built(described: dict[str, Any]) -> Markup:
    low, high = described["box"]
    return facts(
        {
            "sequences": f"n = {described['n']} tokens, d = {described['d']}, every entry in [{low:g}, {high:g}]",
            "network": f"{described['blocks']} blocks, d_model {described['d_model']}, {described['parameters']:,} "
            "parameters, softmax attention, ReLU",
            "class": f"at most {described['heads']} heads of size {described['head_size']}, width {described['width']}",
        }
    )


def _proved(witness: Any, described: dict[str, Any]) -> Markup:
    if witness.certificate is None:
        return paragraph("Nothing: there is no certificate in the folder.")
    rows = [[name, number(bound)] for name, bound in described["bounds"].items()]
    rows += [[name, f"not certified: {reason}"] for name, reason in described["reasons"].items()]
    parts = {name: number(value) for name, value in described["parts"].items()}
    return join(
        [
            paragraph(
                "For every input of the box, |network − program| at every token and feature is at most the following, "
                f"{WORDS}: this is read from certificate.json, and the proof was not checked for this report."
            ),
            table(["dtype", "sup norm ≤"], rows),
            facts(parts | {f"assumption {k}": text for k, text in enumerate(described["assumptions"], 1)}),
        ]
    )


def places_section(witness: Any) -> Markup:
    rows = [
        [place["block"] or "—", place["half"], ", ".join(f"{name} → row {row}" for name, row in place["made"])]
        for place in witness.places
    ]
    return join(
        [paragraph(f"Where the operations are, {WORDS}.", "soft"), table(["block", "half", "operation → row"], rows)]
    )


def page(found: Found, record: dict[str, Any]) -> Page:
    return program_page(found.path, read_witness(found.path))
