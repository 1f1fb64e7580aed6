"""The report of an automaton's witness: the machine, the doubling tree, what is proved, and how to check it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from thereexists.automata.automaton import Automaton, expression_of
from thereexists.constructions.automata.running import MachineWitness
from thereexists.constructions.automata.witness import AutomatonWitness
from thereexists.core.authors_word import WORDS, as_its_author_says
from thereexists.core.rounded_figures import rounded_down
from thereexists.reports import stated, svg
from thereexists.reports.artefact import Found, weights_hash
from thereexists.reports.automaton_pictures import (
    MOST_DRAWN,
    doubling_picture,
    edges_of,
    key_of_part,
    lively_string,
    machine_picture,
    symbols_in_words,
)
from thereexists.reports.first_screen import PAPERS, Number, depth_of, first_screen, proof_of
from thereexists.reports.html import (
    Markup,
    Page,
    Section,
    code,
    facts,
    figure,
    in_figures,
    join,
    key,
    keys,
    number,
    panels,
    paragraph,
    raised,
    table,
)
from thereexists.reports.witness.function import stages_section
from thereexists.witness.load import load as read_witness

SHOWN_SYMBOLS = 16
MOST_EDGES = 200
MOST_COLUMNS = 16  # symbols that have a column of their own


def automaton_page(folder: Path, witness: AutomatonWitness, record: dict[str, Any]) -> Page:
    rows = "a pair of states" if witness.describe()["maps"] == "states" else "the map of some string"
    maps = {"maps": f"{witness.maps.own} rows, each for {rows}"}
    picture, rows = _tree(witness)
    how = Section("doubling", "The doubling tree", rows)
    return machine_page(folder, witness, record, maps, how, picture)


def machine_page(
    folder: Path,
    witness: MachineWitness,
    record: dict[str, Any],
    method: dict[str, str],
    how: Section,
    picture: Markup,
) -> Page:
    """The page of any network of an automaton: ``method`` says how it works in a line, ``how`` shows it."""
    machine = witness.automaton
    what = "transducer" if machine.writes else "automaton"
    pattern = expression_of(machine.origin)
    title = f"There exists a Transformer: {'an ' if what == 'automaton' else 'a '}{what} of {machine.size} states"
    lead = (
        f"{'The pattern ' + as_its_author_says(pattern) + ': s' if pattern else 'S'}trings of up to {witness.n:,} "
        f"symbols, in {witness.network.depth} blocks that were never trained."
    )
    sections = (
        Section("built", "What was built", _built(witness, method)),
        Section("automaton", "The automaton", _machine(witness)),
        how,
        Section("certificate", "What is certified", _proved(witness)),
        Section("stages", "Stages and weights", stages_section(witness.network)),
        Section("reproduce", "How to check it", _check(folder, record)),
    )
    numbers = [depth_of(witness.network.depth), _exact(witness), proof_of(folder, witness.certificate is not None)]
    source = f"That such networks exist: {PAPERS['automata']}. The weights are our own."
    live = machine.size - (machine.dead is not None)
    drawn = [_drawn(witness), picture] if live <= MOST_DRAWN else [picture]
    return Page("automaton", title, lead, sections, first_screen(numbers, source, panels(drawn, pairs=True)))


def _exact(witness: MachineWitness) -> Number:
    certificate = witness.certificate
    if certificate is None:
        return "no bound", "there is no certificate of these weights"
    where = f"{certificate.symbols}{raised(certificate.n)} of them at that length"
    return (
        "exact",
        f"on every string of at most {certificate.n:,} symbols, {where}, in {', '.join(certificate.dtypes)}: {WORDS}",
    )


def _drawn(witness: MachineWitness) -> Markup:
    machine = witness.automaton
    dead = "" if machine.dead is None else f" State {machine.dead}, dead, is not drawn; all other steps lead there."
    picture = machine_picture(machine, f"An automaton of {machine.size} states")
    return figure(picture, f"The automaton. The arrow from nowhere marks the start, a ring an accepting state.{dead}")


def _built(witness: MachineWitness, method: dict[str, str]) -> Markup:
    machine, told = witness.automaton, witness.describe()
    heads = "1 head" if told["heads"] == 1 else f"{told['heads']} heads"
    return facts(
        {
            "automaton": f"{machine.size} states, {len(machine.alphabet)} symbols: "
            f"{symbols_in_words(machine.alphabet, 60)}",
            "before minimising": as_its_author_says(f"{machine.before} states"),
            "writes": symbols_in_words(machine.output_alphabet, 60) if machine.writes else None,
            "strings": f"at most {witness.n:,} symbols",
            **method,
            "network": f"{told['blocks']} blocks, {told['parameters']:,} parameters, {told['dtype']}",
            "class": f"h = {heads} of size m = {number(told['head_size'])}, r = {number(told['width'])} hidden units, "
            f"width {number(told['d_model'])}",
        }
    )


def _machine(witness: MachineWitness) -> Markup:
    machine = witness.automaton
    edges = edges_of(machine)
    live = machine.size - (machine.dead is not None)
    dead = "" if machine.dead is None else f" State {machine.dead}, dead, is not drawn; all other steps lead there."
    parts = []
    if live > MOST_DRAWN:
        parts.append(paragraph(f"{live} states are too many to draw; their steps follow.{dead}"))
    if len(machine.alphabet) <= MOST_COLUMNS and live <= MOST_EDGES:
        parts.append(_steps(machine))
        return join(parts)
    rows = [[q, r, symbols_in_words(symbols, 80)] for (q, r), symbols in list(edges.items())[:MOST_EDGES]]
    parts.append(table(["from", "to", "by"], rows))
    if len(edges) > MOST_EDGES:
        parts.append(paragraph(f"{len(edges) - MOST_EDGES:,} more steps are not listed.", "soft"))
    return join(parts)


def _steps(machine: Automaton) -> Markup:
    """A row for every state, a column for every symbol: where it leads, and what it writes."""

    def cell(q: int, a: int) -> str:
        r = int(machine.table[q, a])
        if r == machine.dead:
            return "–"
        return f"{r} / {machine.output_alphabet[machine.outputs[q, a]]}" if machine.writes else str(r)

    live = [q for q in range(machine.size) if q != machine.dead]
    head = ["state", *(f"by {symbols_in_words([symbol])}" for symbol in machine.alphabet)]
    return table(head, [[str(q), *(cell(q, a) for a in range(len(machine.alphabet)))] for q in live])


def _tree(witness: AutomatonWitness) -> tuple[Markup, Markup]:
    """The picture, and the states of the string that it is of."""
    traced = witness.trace([lively_string(witness.automaton, min(witness.n, SHOWN_SYMBOLS), seed=0)])
    needed = max(1, (len(traced.word) - 1).bit_length())  # later blocks find every prefix whole already
    shown = traced.blocks[: needed + 1]
    picture = doubling_picture(shown, traced.word, "Which segment's map every position holds after each block")
    words = (
        "The picture above is of a random string that avoids the dead state as long as it can. After block t a "
        "position holds the map of its last 2^t symbols, composed of its own half and the half that it fetched."
    )
    legend = keys([key(svg.NETWORK, "the map of the whole prefix"), key_of_part()])
    along = [["symbol", *map(str, traced.word)], ["state after it", *map(str, traced.states[1:])]]
    drawn = figure(join([picture, legend]), "The doubling tree, along a string. Point at a bar to read its map.")
    return drawn, join([paragraph(words), table(["position", *map(str, range(1, len(traced.word) + 1))], along)])


def _proved(witness: MachineWitness) -> Markup:
    certificate = witness.certificate
    if certificate is None:
        return paragraph("Nothing: there is no certificate of these weights in the folder.")
    rows = [[name, stated.marked("exact")] for name in certificate.dtypes]
    rows += [[name, stated.marked(f"not certified: {reason}")] for name, reason in certificate.reasons.items()]
    return join(
        [
            paragraph(
                in_figures(
                    f"{WORDS[0].upper()}{WORDS[1:]}: {certificate.claim()}. This is read from certificate.json; the "
                    "proof was not checked for this report."
                )
            ),
            table(["dtype", "state, output and acceptance"], rows),
            stated.facts(
                {"least lead of a logit": rounded_down(certificate.gap, 6)}
                | {f"assumption {k}": words for k, words in enumerate(certificate.assumptions, 1)}
            ),
        ]
    )


def _check(folder: Path, record: dict[str, Any]) -> Markup:
    return join(
        [
            code(f"thereexists verify {shlex.quote(str(folder))}"),
            facts(
                {
                    "built by": as_its_author_says(f"thereexists {record['package_version']}"),
                    "weights": weights_hash(record),
                }
            ),
        ]
    )


def page(found: Found, record: dict[str, Any]) -> Page:
    return automaton_page(found.path, read_witness(found.path), record)
