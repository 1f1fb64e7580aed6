"""The report of a program over symbols: what is proved of every string, where its operations live, how to check it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from thereexists.constructions.symbols.witness import SymbolWitness
from thereexists.core.authors_word import WORDS
from thereexists.core.plain_text import counted
from thereexists.reports import stated
from thereexists.reports.artefact import Found
from thereexists.reports.automaton_pictures import symbols_in_words
from thereexists.reports.first_screen import Number, depth_of, first_screen, proof_of
from thereexists.reports.html import Markup, Page, Section, code, facts, join, paragraph, table, upper
from thereexists.reports.schedule import schedule
from thereexists.reports.witness.program import SOURCE, places_section, title_of
from thereexists.witness.load import load as read_witness

_SHOWN = 60


def symbol_page(folder: Path, witness: SymbolWitness) -> Page:
    told = witness.describe()
    sections = (
        Section("built", "What was built", _built(told)),
        Section("certificate", "What is certified", _proved(witness, told)),
        Section("places", "Where every operation lives", places_section(witness)),
        Section("reproduce", "How to check it", code(f"thereexists verify {shlex.quote(str(folder))}")),
    )
    blocks = counted(told["blocks"], "standard block")
    symbols = counted(len(told["alphabet"]), "symbol")
    lead = f"A program over {symbols}, for strings of up to {witness.n}, compiled to {blocks}."
    first = first_screen(_largest(folder, witness, told), SOURCE, schedule(witness.places, witness.network))
    return Page("symbols", f"There exists a Transformer: {title_of(witness)}", lead, sections, first)


def _largest(folder: Path, witness: SymbolWitness, told: dict[str, Any]) -> list[Number]:
    """How deep, on which strings it is right, and whether that is proved."""
    proof = proof_of(folder, witness.certificate is not None)
    if witness.certificate is None:
        return [depth_of(told["blocks"]), ("no bound", "there is no certificate of this program"), proof]
    least, most = told["lengths"]
    lengths = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    where = f"on every string of {lengths} symbols, in {', '.join(told['bounds'])}: {WORDS}"
    return [depth_of(told["blocks"]), ("right", where), proof]


def _built(told: dict[str, Any]) -> Markup:
    least, most = told["lengths"]
    return facts(
        {
            "strings": f"{most:,} symbols" if least == most else f"{least:,} to {most:,} symbols",
            "alphabet": symbols_in_words(told["alphabet"], _SHOWN),
            "writes": symbols_in_words(told["output_alphabet"], _SHOWN),
            "network": f"{told['blocks']} blocks, d_model {told['d_model']}, {told['parameters']:,} parameters, "
            "softmax attention, ReLU",
            "class": f"at most {told['heads']} heads of size {told['head_size']}, width {told['width']}",
        }
    )


def _proved(witness: SymbolWitness, told: dict[str, Any]) -> Markup:
    certificate = witness.certificate
    if certificate is None:
        return paragraph("Nothing: there is no certificate of this program and these weights in the folder.")
    rows = [[name, stated.marked(upper(bound))] for name, bound in told["bounds"].items()]
    rows += [[name, stated.marked(f"not certified: {reason}")] for name, reason in told["reasons"].items()]
    return join(
        [
            paragraph(
                "At every token of every string the network gives the number of the right symbol, up to the following, "
                f"which is less than 1/2, {WORDS}: this is read from certificate.json, and the proof was not checked "
                "for this report."
            ),
            table(["dtype", "off by at most"], rows),
            stated.facts(
                certificate.subject() | {f"assumption {k}": text for k, text in enumerate(told["assumptions"], 1)}
            ),
        ]
    )


def page(found: Found, record: dict[str, Any]) -> Page:
    return symbol_page(found.path, read_witness(found.path))
