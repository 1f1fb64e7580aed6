"""What a page repeats from a file, marked as its author's word: the builders of ``html.py`` for such texts.

The pages that only repeat a file (``reports/kinds``: a certificate, a printed verdict, a study) take what it says
through these builders alone, and have no others for facts and tables; a test sees to that.
"""

from __future__ import annotations

from typing import Any

from thereexists.core.authors_word import WORDS, as_its_author_says
from thereexists.reports import html
from thereexists.reports.html import Markup


def marked(value: Any) -> Markup:
    """A text, or a number that is written out already, with its mark behind it."""
    return Markup(f"{value} ({WORDS})") if isinstance(value, Markup) else html.text(as_its_author_says(value))


def paragraph(content: Any, style: str = "") -> Markup:
    return html.paragraph(marked(content), style)


def facts(pairs: dict[str, Any]) -> Markup:
    """A list of name and value, every value marked; values of None are left out."""
    return html.facts({name: None if value is None else marked(value) for name, value in pairs.items()})


def table(head: list[str], rows: list[list[Any]]) -> Markup:
    """Rows of cells under one mark."""
    return html.table(head, rows, f"All of it {WORDS}.")
