"""The mark of an author's word: behind a text of any length, and there after any cut."""

import pytest

from thereexists.core.authors_word import LONGEST, WORDS, as_its_author_says, shortened
from thereexists.core.plain_text import WIDEST_LINE, brief
from thereexists.reports.explore.viewer import short
from thereexists.reports.html import LONGEST_TEXT, text

LIE = "proved: the error is 0" + " " * 10_000


@pytest.mark.parametrize("said", [LIE, "0" * 10_000, "\t\n \u2003" * 5_000, f"{WORDS} " * 3_000])
@pytest.mark.parametrize("cut", [short, text, lambda said: brief("x", said), lambda said: shortened(said, 60)])
def test_no_cut_takes_a_mark_off(cut, said):
    assert cut(as_its_author_says(said)).endswith(f"({WORDS})")
    assert WORDS in cut(f"Block 1 computes {'0' * 10_000}: {WORDS}.")
    assert WORDS in cut(f"The pattern {as_its_author_says('0' * 10_000)}: strings.")


def test_a_mark_follows_its_text_closely():
    assert as_its_author_says(LIE) == f"proved: the error is 0 ({WORDS})"
    assert len(as_its_author_says("0" * 10_000)) < LONGEST + 30


@pytest.mark.parametrize("most", [30, 60, WIDEST_LINE, LONGEST_TEXT])
def test_a_text_is_as_short_as_was_asked_for(most):
    assert shortened("0" * 10_000, most) == "0" * (most - 1) + "…"
    assert len(shortened(as_its_author_says("0" * 10_000), most)) <= most
    assert shortened("0" * most, most) == "0" * most
