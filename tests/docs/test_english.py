"""Plain English: what a reader stumbled over once does not return to the pages, the help, the errors or the reports."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, pages

WIDTH = 120
PAGES = list(pages())
PAGES += [page for name in ("CONTRIBUTING.md", "SECURITY.md") if (page := ROOT / name) not in PAGES]
SOURCES = sorted((ROOT / "src/thereexists").rglob("*.py"))

# a riddle, and what to write instead
RIDDLES = {
    r"(no|some|every|any)body": "a token is a token, a person is 'anyone' or 'you'",
    r"unless said": "default: …",
    r"(by|from) a try|not by trying": "by a trial run; or say what decides",
    r"(is|are|was|were) told": "gets, is given, sees",
    r"(it|which|that) has not (all|the|a|an|any)": "does not have",
    r"numbers? that (is|are) none": "not a number, not finite",
    r"(?<!there )(is|are) no (number|box|pattern|terminal|artefact|symbol|character|whole|disproof|value|power|"
    r"function|object|file)s?": "is not a …",
    r"of company|in company": "several runs shared the device",
    r"to look instead of to read": "to see it as a picture",
    r"what there is": "say which one",
    r"without a word": "silently",
    r"everything (is|was) seen": "the receptive field is full",
    r"who attends|to whom": "the token that attends, the token it attends to",
    r"(after|over|at most|in) so many": "this many; or the number",
    r"in the place of": "in place of",
    r"for want of": "not enough …",
    r"from [01] on": "of at least",
    r"written beside": "written under a temporary name",
    r"from near|the nearer it": "enlarged; the closer it",
    r"stands on nothing": "imports nothing",
    r"(microseconds|milliseconds|seconds|ms|MiB|FLOPs|tokens|layers|sentences|module|search|string|sequence|object|"
    r"logit|folder|matrix|column|once) an? (token|second|layer|line|head|run|row|block|worker|cube|cell|kind|sequence)":
    "per token, per second, …",
}  # fmt: skip

# the pages are in British English; names of other people's things (tokenizer, torch.optim) stay as they are
AMERICAN = r"colors?|centers?|gray|neighbors?|behaviors?|labeled|modeling|artifacts?|favors?"
AMERICAN += (
    r"|(quanti|minimi|maximi|normali|recogni|optimi|generali|memori|vectori|summari|reali|initiali)z(e|ed|es|ing)"
)

FAULTS = {**RIDDLES, AMERICAN: "British spelling"}
ANY = re.compile(rf"(?<![\w.`/-])({'|'.join(FAULTS)})(?![\w`/-])", re.IGNORECASE)


def faults(text: str) -> list[str]:
    """The riddles and the American spellings of a text, each with what to write instead."""
    hits = [hit[0] for hit in ANY.finditer(" ".join(text.split()))]
    return [f"{hit!r}: {advice}" for hit in hits for advice in _advice(hit)]


def _advice(hit: str) -> list[str]:
    return [advice for riddle, advice in FAULTS.items() if re.fullmatch(riddle, hit, re.IGNORECASE)]


def prose(text: str) -> str:
    """A page without its blocks of code, code in the text, addresses and styles; the code of Gray is a name."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(    .*|<!--.*)$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`|\]\([^)]*\)|https?://\S+|\bcolor:|Gray code", " ", text)


def sentences(source: Path) -> str:
    """What a module says: its strings of four words or more, and the docstrings of commands, which are their help."""
    nodes = list(ast.walk(ast.parse(source.read_text(encoding="utf-8"))))
    inner = [node for node in nodes if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    inner = [node for node in inner if isinstance(node, ast.Module | ast.ClassDef) or not node.decorator_list]
    unsaid = {id(node.body[0].value) for node in inner if node.body and isinstance(node.body[0], ast.Expr)}
    said = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in unsaid]
    return "\n".join(text for text in said if isinstance(text, str) and len(text.split()) >= 4)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_reads_like_english(page):
    assert faults(prose(page.read_text(encoding="utf-8"))) == []


def test_help_errors_and_reports_read_like_english():
    found = {str(source.relative_to(ROOT)): faults(prose(sentences(source))) for source in SOURCES}
    assert {source: those for source, those in found.items() if those} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_of_text_end_at_120(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\$\$$.*?^\$\$$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`|\$[^$]+\$", lambda code: "\n" * code[0].count("\n"), text)  # neither is broken
    long = [line for line in text.splitlines() if len(line) > WIDTH and not re.match(r"\s*(\||!\[|<|#|    )", line)]
    assert long == []


@pytest.mark.parametrize(
    "text",
    [
        "Row = who attends, column = to whom.",
        "Folder to write; NAME-llama unless said.",
        "safe, from a proof, never from\na try",
        "the first token is told the sum",
        "it has not all integers",
        "numbers that are none",
        "so times and speeds are of company",
        "To look instead of to read",
        "A sink brings nobody nearer",
        "Microseconds a token",
        "x is no value of a program",
        "a seed from 0 on",
        "the color of a cell",
        "quantized",
    ],
)
def test_a_planted_riddle_is_found(text):
    assert len(faults(text)) >= 1


def test_names_are_not_faults():
    assert faults(prose("`torch.optim`, a tokenizer, `normalize=True`, [x](docs/color.md), a message in 8 MiB")) == []
