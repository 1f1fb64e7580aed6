"""The report of a witness on tokens: a table or a memorised data set, its memory, and what it recalls."""

from __future__ import annotations

import platform
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists.certificates.stored_tokens import sums_of
from thereexists.constructions.tokens.witness import TokenWitness
from thereexists.core.authors_word import WORDS, as_its_author_says
from thereexists.reports.artefact import Found, weights_hash
from thereexists.reports.first_screen import PAPERS, Number, depth_of, first_screen
from thereexists.reports.html import Markup, Page, Section, code, facts, join, number, paragraph, table
from thereexists.reports.memory import Recall, memory_figure, recall_of
from thereexists.reports.witness.function import stages_section
from thereexists.witness.load import load as read_witness

SOURCE = f"That Transformers can compute any finite function follows from {PAPERS['A']}; the construction is our own."
MOST_CHECKED = 4096  # stored pairs that are recalled again
MOST_SHOWN = 12
SUMS = {
    "slots": "the bits of every position, each in slots of its own (a table)",
    "counts": "how often every token occurs (a symmetric table)",
    "codes": "random sign vectors of tokens and positions, of which the signs are the key",
}


def token_page(folder: Path, witness: TokenWitness, record: dict[str, Any]) -> Page:
    kind = "data set" if witness.purpose == "memorise" else "table"
    title = f"There exists a Transformer: a {kind} of {len(witness.inputs):,} pairs"
    blocks = f"{witness.network.depth} standard blocks"
    lead = f"Sequences of {witness.lengths}, answered by {blocks} that were never trained."
    tried, found = Recalled.of(witness), _memory(witness)
    sections = (
        Section("built", "What was built", _built(witness, record)),
        Section("stages", "Stages and weights", stages_section(witness.network)),
        Section("recall", "What it recalls", _recalled(witness, tried, folder)),
        Section("memory", "The keyed memory", _fired(found)),
        Section("dtypes", "Number formats", _dtypes(witness)),
        Section("reproduce", "How to reproduce it", _reproduce(folder, witness, record)),
    )
    drawn = Markup("") if found is None else memory_figure(found)
    return Page("tokens", title, lead, sections, first_screen(_largest(witness, tried, folder), SOURCE, drawn))


@dataclass(frozen=True)
class Recalled:
    """Stored pairs that were run for this page: every ``every``-th one; ``answers`` of the network, ``right`` ones."""

    every: int
    rows: np.ndarray
    answers: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, witness: TokenWitness) -> Recalled:
        every = max(1, -(-len(witness.inputs) // MOST_CHECKED))
        rows = np.arange(0, len(witness.inputs), every)
        answers = witness.run(witness.inputs[rows])
        return cls(every, rows, answers, (answers == witness.outputs[rows]).all(axis=1))


def _largest(witness: TokenWitness, tried: Recalled, folder: Path) -> list[Number]:
    """How deep, how many pairs come back, and what of that was looked at."""
    right, whole = int(tried.right.sum()), len(witness.inputs)
    check = f"padding, dtypes and more: thereexists verify {shlex.quote(str(folder))}"
    if right < len(tried.rows):
        state = ("not recalled", "some stored pairs come back wrong")
    elif tried.every > 1:
        state = ("partly verified", f"one in {tried.every} of {whole:,} pairs, for this page; {check}")
    else:
        state = ("recalled", f"every stored pair, run for this page; {check}")
    pairs = (f"{right:,} of {len(tried.rows):,}", "stored pairs come back exactly")
    return [depth_of(witness.network.depth), pairs, state]


def _built(witness: TokenWitness, record: dict[str, Any]) -> Markup:
    shape, info = witness.network.shape(), witness.info
    return facts(
        {
            "pairs": f"{len(witness.inputs):,}"
            + (f", {as_its_author_says(info['repeated'])} repeated ones left out" if info.get("repeated") else ""),
            "sequences": as_its_author_says(witness.lengths)
            + (f", {as_its_author_says('in any order')}" if witness.symmetric else ""),
            "vocabularies": f"{len(witness.vocabulary):,} tokens in, {len(witness.output_vocabulary):,} out",
            "attention adds up": _sums(witness),
            "network": f"{witness.network.depth} blocks, {witness.network.parameter_count:,} parameters, "
            f"{str(witness.network.dtype).removeprefix('torch.')}",
            "class": f"h = {number(shape['h'])} heads of size m = {number(shape['m'])}, r = {number(shape['r'])} "
            f"hidden units, width {number(shape['d'])}",
            "contradictions": as_its_author_says(
                f"{len(info['conflicts'])} inputs had several outputs; decided by {info.get('on_conflict')!r}"
            )
            if info.get("conflicts")
            else None,
        }
    )


def _sums(witness: TokenWitness) -> str:
    """What the weights prove; else the word of the record."""
    proved = sums_of(witness.network)
    return as_its_author_says(SUMS[witness.sums]) if proved is None else SUMS[proved]


def _recalled(witness: TokenWitness, tried: Recalled, folder: Path) -> Markup:
    every, rows, answers, right = tried.every, tried.rows, tried.answers, tried.right
    scope = "all" if every == 1 else f"one in {every} of the"
    which = f"({scope} {len(witness.inputs):,} were tried)"
    words = f"{int(right.sum()):,} of {len(rows):,} stored pairs come back exactly {which}."
    shown = []
    tokens = witness.vocabulary.tokens
    for k, answer in zip(rows[:MOST_SHOWN].tolist(), answers, strict=False):
        given = " ".join(str(tokens[i - 1]) for i in witness.inputs[k].tolist() if 1 <= i <= len(tokens))
        found = witness._decode(answer)
        shown.append(
            [given, "nothing" if found is None else " ".join(map(str, found)), "yes" if right[k // every] else "no"]
        )
    more = len(witness.inputs) - len(shown)
    return join(
        [
            paragraph(words, "good" if right.all() else "bad"),
            table(["input", "answer of the network", "as stored"], shown),
            paragraph(f"{more:,} more pairs are not listed.", "soft") if more > 0 else Markup(""),
            paragraph(
                f"To check every pair, padding and dtypes again: thereexists verify {shlex.quote(str(folder))}", "soft"
            ),
        ]
    )


def _memory(witness: TokenWitness) -> Recall | None:
    ids = torch.from_numpy(np.ascontiguousarray(witness.inputs[:MOST_CHECKED]))
    return recall_of(witness.network, ids, ids > 0)


def _fired(found: Recall | None) -> Markup:
    return paragraph("This network has no stage of that name." if found is None else found.words())


def _dtypes(witness: TokenWitness) -> Markup:
    rows = [[name, "safe" if v.holds else "not safe", v.reasons[0]] for name, v in witness.verdicts().items()]
    return join([paragraph("Decided by a bound from the weights."), table(["format", "verdict", "why"], rows)])


def _reproduce(folder: Path, witness: TokenWitness, record: dict[str, Any]) -> Markup:
    seed = witness.info.get("seed")
    command = (
        f"thereexists memorise pairs.jsonl --seed {shlex.quote(str(seed))} --out {shlex.quote(str(folder))}"
        if witness.purpose == "memorise"
        else f"thereexists build table.csv --construction compact --out {shlex.quote(str(folder))}"
    )
    return join(
        [
            code(command),
            paragraph(
                f"The command is made from the record, {WORDS}. The pairs themselves are stored with the weights; the "
                "name of their file is not.",
                "soft",
            ),
            code(f"thereexists verify {shlex.quote(str(folder))}"),
            facts(
                {
                    "built by": as_its_author_says(f"thereexists {record['package_version']}"),
                    "report by": f"Python {platform.python_version()}, torch {torch.__version__}",
                    "seed": None if seed is None else as_its_author_says(seed),
                    "weights": weights_hash(record),
                }
            ),
        ]
    )


def page(found: Found, record: dict[str, Any]) -> Page:
    return token_page(found.path, read_witness(found.path), record)
