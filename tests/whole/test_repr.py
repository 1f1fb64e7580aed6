"""``repr`` of a result says what it is, in at most six lines, whatever its size and whoever wrote its words."""

import functools
import html
import re
import tempfile

import numpy as np
import pytest

import thereexists as te
from tests.kinds import EXAMPLES
from tests.reports.pages import EVIL, OUTSIDE, balanced
from thereexists import program as P
from thereexists.certificates.check import Check
from thereexists.core.plain_text import MOST_LINES, WIDEST_LINE, brief
from thereexists.core.verdict import Verdict


@functools.cache
def witness(kind):
    return EXAMPLES[kind].build()


@functools.cache
def certificate(kind):
    return te.certify(witness(kind), opinions=1)


@functools.cache
def head():
    return te.heads.fit(te.heads.random_matrix(8, k=2), eps1=1e-2, eps2=1e-1)


@functools.cache
def read():
    with tempfile.TemporaryDirectory() as place:
        head().save(place + "/h")
        return te.heads.load(place + "/h")


KINDS = list(EXAMPLES)
CERTIFIED = [kind for kind in KINDS if kind != "table"]  # recalled exactly or not at all
RESULTS = {
    **{f"witness, {kind}": lambda kind=kind: witness(kind) for kind in KINDS},
    **{f"plan, {kind}": lambda kind=kind: witness(kind).plan for kind in KINDS},
    **{f"trace, {kind}": lambda kind=kind: te.trace(witness(kind), EXAMPLES[kind].x) for kind in KINDS},
    **{f"certificate, {kind}": lambda kind=kind: certificate(kind) for kind in CERTIFIED},
    "program": lambda: P.sort(P.tokens(64, d=3)),
    "compiled program": lambda: P.compile(P.apply(np.sin, P.tokens(64), epsilon=1e-3)),
    "plan of a long program": lambda: te.plan(P.cumsum(P.tokens(8))),
    "trace of a long sequence": lambda: te.build(P.flip(P.tokens(40))).trace(np.linspace(0, 1, 40)[:, None]),
    "verdict, undecided": lambda: Verdict(None, ("nobody looked",)),
    "verified": lambda: Verdict(True, (), (Check("files", True, "whole"), Check("grid", None, "not looked at"))),
    "verdict of a witness": lambda: witness("faithful").verdicts()["float64"],
    "verdict, many reasons": lambda: Verdict(
        False, tuple(f"reason {k}: " + "why " * 60 for k in range(20)), np.ones(99)
    ),
    "pattern": lambda: te.patterns.strided(64, 8),
    "pattern of many steps": lambda: te.patterns.Pattern("many", (te.patterns.window(8, 1).step(0),) * 30),
    "verdict of a pattern": lambda: te.patterns.check(te.patterns.strided(64, 8)),
    "explanation of attention": lambda: te.attention.explain(te.patterns.strided(64, 8).multihead(8), "cuda"),
    "head": head,
    "head of a file": read,
    "what a head of a file says": lambda: read().verdict,
    "verification of a head": lambda: head().verification,
    "verification of a head of a file": lambda: read().verification,
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_says_what_it_is_in_six_lines(name):
    result = RESULTS[name]()
    lines = repr(result).splitlines()
    assert 1 <= len(lines) <= MOST_LINES == 6
    assert max(map(len, lines)) <= WIDEST_LINE
    assert "array(" not in repr(result)
    assert "tensor(" not in repr(result)
    if not isinstance(result, P.Value):  # a program is written as its last operation
        assert lines[0].startswith(type(result).__name__)


DRAWN = ("witness, ", "plan", "certificate, ", "verified", "program", "pattern", "verdict of a pattern", "head")
WITHOUT = ("trace", "explanation", "verification", "compiled program")  # shown as text


@pytest.mark.parametrize("name", [name for name in RESULTS if not name.startswith(WITHOUT)])
def test_a_result_has_a_card_for_notebooks(name):
    """What repr says, escaped; a picture where there is one; no script, no request, no style for others."""
    result = RESULTS[name]()
    shown = result._repr_html_()
    plain = re.sub(r"<style>.*?</style>", "", shown, flags=re.S)
    assert html.escape(repr(result).splitlines()[0]) in plain
    assert balanced(shown)
    assert not OUTSIDE.search(plain)
    assert shown.count("<style>@scope (.te-card)") == 1
    assert not re.search(r"\drem\b", shown[: shown.index("</style>")])  # a page has a rem of its own
    if name.startswith(DRAWN) and name != "head of a file":
        assert "<svg" in plain, name


def test_a_card_escapes_what_others_wrote():
    shown = Verdict(False, (EVIL,))._repr_html_()
    assert "<script" not in shown
    assert "<img" not in shown


def test_every_kind_of_witness_is_there():
    from thereexists.core.kinds import KINDS as REGISTERED

    assert {example.kind for example in EXAMPLES.values()} == set(REGISTERED)


def test_words_of_a_file_cannot_rewrite_what_is_said():
    said = brief("Verdict: does not hold", "\x1b[2J\rVerdict: holds", "a\nb", *["more"] * 9)
    assert "\x1b" not in said
    assert "\r" not in said
    assert len(said.splitlines()) == 6
    assert said.splitlines()[-1] == "  … 7 more"
