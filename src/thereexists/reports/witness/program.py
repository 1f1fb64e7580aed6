"""The report of a program's witness: what is proved, where every operation lives, and the number formats."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import Any

from thereexists.core.authors_word import WORDS, as_its_author_says
from thereexists.core.plain_text import counted, in_full
from thereexists.reports import stated
from thereexists.reports.artefact import Found
from thereexists.reports.first_screen import PAPERS, Number, depth_of, first_screen, proof_of
from thereexists.reports.html import (
    Markup,
    Page,
    Section,
    at_most,
    code,
    facts,
    join,
    paragraph,
    table,
    text,
    upper,
)
from thereexists.reports.schedule import schedule
from thereexists.reports.verdict_pictures import bound_picture
from thereexists.witness.load import load as read_witness

SOURCE = f"Compiled by a compiler of our own, as proposed by {PAPERS['programs']}."
MOST_WRITTEN = 60  # operations of a formula
LONGEST_TITLE = 40  # characters of a formula that stands for a name


def program_page(folder: Path, witness: Any) -> Page:
    described = witness.describe()
    sections = (
        Section("built", "What was built", _built(witness, described)),
        Section("certificate", "What is certified", _proved(witness, described)),
        Section("places", "Where every operation lives", places_section(witness)),
        Section("reproduce", "How to check it", code(f"thereexists verify {shlex.quote(str(folder))}")),
    )
    blocks = counted(described["blocks"], "standard block")
    lead = f"A program over the reals for {witness.n} tokens, compiled to {blocks}."
    first = first_screen(_largest(folder, described), SOURCE, schedule(witness.places, witness.network))
    return Page("program", f"There exists a Transformer: {title_of(witness)}", lead, sections, first)


def _largest(folder: Path, described: dict[str, Any]) -> list[Number]:
    """How deep, how far off at most, and whether anything is proved."""
    bound, proof = described["bound"], proof_of(folder, described["bound"] is not None)
    if bound is None:
        return [depth_of(described["blocks"]), ("no bound", "there is no certificate of this program"), proof]
    norm = f"at every input of the box, in {described['bound_dtype']}, rounding included: {WORDS}"
    return [depth_of(described["blocks"]), (at_most(float(bound)), norm), proof]


def title_of(witness: Any) -> str:
    """The program's name; without one its formula if that is short, or its number of operations: its author's word."""
    record = witness.record()
    formula = written_out(record)
    if "\n" in formula or len(formula) > LONGEST_TITLE:
        formula = f"a program of {counted(len(record['nodes']) - 1, 'operation')}"  # the input is none
    return as_its_author_says(witness.name or formula)


def written_out(record: dict[str, Any]) -> str:
    """The program as a formula; a value that is used twice is written once and called v1, v2, …"""
    nodes = record["nodes"]
    if len(nodes) > MOST_WRITTEN:
        return f"{len(nodes):,} operations, too many to write out"
    used = Counter(a for node in nodes for a in node["arguments"])
    names: list[str] = []
    lines: list[str] = []
    for k, node in enumerate(nodes):
        words = _called(node, [names[a] for a in node["arguments"]])
        if node["operation"] != "tokens" and used[k] > 1:
            lines.append(f"v{len(lines) + 1} = {words}")
            words = f"v{len(lines)}"
        names.append(words)
    return "\n".join([*lines, names[-1]])


def _called(node: dict[str, Any], arguments: list[str]) -> str:
    settings = node["settings"]
    if node["operation"] == "tokens":
        return "x"
    if node["operation"] == "linear":
        terms = [
            f"{'−' if c < 0 else '+'} {a if abs(c) == 1 else f'{in_full(abs(c))}·{a}'}"
            for c, a in zip(settings["coefficients"], arguments, strict=True)
        ]
        whole = " ".join(terms).removeprefix("+ ").replace("− ", "−", int(terms[0][0] == "−"))
        whole = f"({whole})" if len(terms) > 1 else whole
        return f"{whole}/{in_full(settings['divisor'])}" if "divisor" in settings else whole
    name = settings.get("called") or settings.get("function") or node["operation"]
    return f"{name}({', '.join(arguments)})"


def _built(witness: Any, described: dict[str, Any]) -> Markup:
    low, high = described["box"]
    return facts(
        {
            "program": as_its_author_says(witness.name) if witness.name else None,
            "formula": Markup(f"<pre>{text(written_out(witness.record()))}</pre>({WORDS})"),
            "sequences": f"n = {described['n']} tokens, d = {described['d']}",
            "box": as_its_author_says(f"every entry in [{in_full(low)}, {in_full(high)}]"),
            "network": f"{counted(described['blocks'], 'block')}, d_model {described['d_model']}, "
            f"{described['parameters']:,} parameters, softmax attention, ReLU",
            "class": f"at most {described['heads']} heads of size {described['head_size']}, width {described['width']}",
        }
    )


def _proved(witness: Any, described: dict[str, Any]) -> Markup:
    if witness.certificate is None:
        return paragraph("Nothing: there is no certificate of this program and these weights in the folder.")
    rows = [[name, stated.marked(upper(bound))] for name, bound in described["bounds"].items()]
    rows += [[name, stated.marked(f"not certified: {reason}")] for name, reason in described["reasons"].items()]
    parts = {name: upper(value) for name, value in described["parts"].items()}
    return join(
        [
            paragraph(
                "For every input of the box, |network − program| at every token and feature is at most the following, "
                f"{WORDS}: this is read from certificate.json, and the proof was not checked for this report."
            ),
            bound_picture(witness.certificate),
            table(["dtype", "sup norm ≤"], rows),
            stated.facts(parts | {f"assumption {k}": text for k, text in enumerate(described["assumptions"], 1)}),
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
