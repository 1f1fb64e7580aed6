"""One self-contained page: no script, no request, every text escaped.

A string becomes HTML only through ``text`` (which escapes and shortens it), through the builders below (which call
``text`` on every plain string they are given), or by being ``Markup`` already. The page also carries a content security
policy that forbids scripts and every kind of request, so that a hostile artefact has two walls to climb.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from thereexists._version import __version__
from thereexists.core.atomic_files import write_beside
from thereexists.core.authors_word import shortened
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import in_full, visible
from thereexists.core.rounded_figures import rounded_up

LONGEST_TEXT = 2000
SHADES = 8  # of the parts of a bar: the classes s0 … s7 of the page
SMALLEST = 1e-15  # what is smaller, and not 0, is said to be smaller than that
_EXPONENT = re.compile(r"(?<![\w.])\d+(?:\.\d+)?e[+-]\d+(?!\w)")
_POWER = re.compile(r"(?<![\w.])(\d+)\^(\d+)(?!\w)")
_TAG = re.compile(r"<[^>]*>")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


class Markup(str):
    """HTML that was made by this package from escaped text."""


class Digits(Markup):
    """A number, written out."""


SMALLER = Digits("&lt; 10⁻¹⁵")


@dataclass(frozen=True)
class Section:
    """A titled part of a page.

        [section.title for section in te.report("star", n=8).sections]

    Args:
        key: its anchor.
        title: its heading.
        body: the HTML below it.
    """

    key: str
    title: str
    body: Markup


@dataclass(frozen=True)
class Page:
    """A finished report: ``str(page)`` is the document, ``page.save("report.html")`` writes it.

        te.report("star", n=8).save("pattern.html")

    Args:
        kind: of the artefact.
        title: of the page.
        lead: the sentence below it.
        sections: its parts.
        first: what the first screen shows.
    """

    kind: str
    title: str
    lead: str
    sections: tuple[Section, ...]
    first: Markup | None = None  # what the first screen shows below the title

    def __str__(self) -> str:
        style = files("thereexists.reports").joinpath("page.css").read_text(encoding="utf-8")
        links = join(Markup(f'<a href="#{text(s.key)}">{text(s.title)}</a> ') for s in self.sections)
        body = join(
            Markup(f'<section id="{text(s.key)}"><h2>{text(s.title)}</h2>\n{s.body}</section>\n') for s in self.sections
        )
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<link rel="icon" href="data:,">\n'  # or else a browser asks for favicon.ico
            f"<title>{text(self.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
            f'<h1>{text(self.title)}</h1>\n<p class="soft">{text(self.lead)}</p>\n{self.first or ""}'
            f'<nav aria-label="Sections">{links}</nav>\n{body}'
            f'<p class="soft">thereexists {text(__version__)}</p>\n</main>\n</body>\n</html>\n'
        )

    def save(self, path: str | Path) -> Path:
        """Write the page, whole or not at all."""
        path = Path(path)
        write_beside(path, str(self))
        return path


def check_writable(path: Path) -> None:
    """Refuse, before any work, a place where no page can be written."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"A report is an HTML file: its name must end in .html; got {path.name!r} instead.")
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file to write.")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidInput(f"Nothing can be written to the folder {path.parent}: it must exist and be writable.")


def text(value: Any) -> Markup:
    """Anything as escaped text, cut after ``LONGEST_TEXT`` characters."""
    if isinstance(value, Markup):
        return value
    plain = "\n".join(map(visible, str(value).split("\n")))
    return Markup(html.escape(shortened(plain, LONGEST_TEXT), quote=True))


def number(value: Any) -> Markup:
    """A number as a paper writes it, 1,585 or 0.25 or 1·10⁻⁵, with all its digits; anything else as text.

    Which way a number may be rounded depends on what it says: see ``upper`` and ``measured``.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return text("none" if value is None else value)
    return Digits(f"{value:,}") if isinstance(value, int) else _as_in_a_paper(in_full(value))


def upper(bound: Any) -> Markup:
    """An upper bound, rounded up; what is no float, as ``number`` does."""
    if not isinstance(bound, float):
        return number(bound)
    return SMALLER if 0 < bound < SMALLEST else _as_in_a_paper(rounded_up(bound, 4))


def measured(value: Any) -> Markup:
    """What was measured, and is said to be, rounded to the nearest; what is no float, as ``number`` does."""
    if not isinstance(value, float):
        return number(value)
    return SMALLER if 0 < value < SMALLEST else _as_in_a_paper(f"{value:.4g}")


def _as_in_a_paper(written: str) -> Digits:
    mantissa, e, exponent = written.replace("-", "−", int(written[0] == "-")).partition("e")
    return Digits(f"{mantissa}·10{raised(int(exponent))}" if e else mantissa)


def raised(exponent: int) -> str:
    return str(exponent).translate(_RAISED)


def in_figures(words: Any) -> Markup:
    """A sentence of ours whose numbers were written by Python, 2.4e-05 or 2^64, with the numbers as in a paper."""
    powers = _POWER.sub(lambda found: f"{found[1]}{raised(int(found[2]))}", text(words))
    return Markup(_EXPONENT.sub(_in_a_sentence, powers))


def _in_a_sentence(found: re.Match[str]) -> str:
    """The same digits: whoever wrote the sentence has rounded them to the side that keeps it true."""
    return _as_in_a_paper(found[0])


def at_most(bound: float) -> Markup:
    """``≤ 0.1114``; below what is of interest ``< 10⁻¹⁵``."""
    return SMALLER if 0 < bound < SMALLEST else Markup(f"≤ {upper(bound)}")


def join(parts: Iterable[Markup]) -> Markup:
    return Markup("".join(parts))


def paragraph(content: Any, style: str = "") -> Markup:
    return Markup(f'<p class="{text(style)}">{text(content)}</p>\n' if style else f"<p>{text(content)}</p>\n")


def code(content: Any) -> Markup:
    return Markup(f"<pre>{text(content)}</pre>\n")


def facts(pairs: dict[str, Any]) -> Markup:
    """A list of name and value; values of None are left out."""
    rows = (f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in pairs.items() if v is not None)
    return Markup(f"<dl>{''.join(rows)}</dl>\n")


def table(head: list[str], rows: list[list[Any]], caption: str = "") -> Markup:
    """Rows of cells, a float with all its digits; numbers are set to the right, and so are the heads above them."""
    numeric = [bool(rows) and all(isinstance(row[i], int | float | Digits) for row in rows) for i in range(len(head))]

    def cell(tag: str, value: Any, right: bool) -> str:
        seen = len(_TAG.sub("", value) if isinstance(value, Markup) else str(value))
        long = not right and tag == "td" and seen > 40
        short = not right and tag == "td" and seen <= 24
        style = ' class="number"' if right else ' class="words"' if long else ' class="short"' if short else ""
        return f"<{tag}{style}>{number(value)}</{tag}>"

    def line(tag: str, row: list[Any]) -> str:
        return "<tr>" + "".join(cell(tag, v, right) for v, right in zip(row, numeric, strict=True)) + "</tr>"

    title = f"<caption>{text(caption)}</caption>" if caption else ""
    body = "\n".join(line("td", row) for row in rows)
    return Markup(
        f'<div class="wide"><table>{title}<thead>{line("th", head)}</thead>\n<tbody>{body}</tbody></table></div>\n'
    )


def large_numbers(shown: Iterable[tuple[Any, str]]) -> Markup:
    """A few numbers that matter most, each with a line that says what it is."""
    return Markup(
        '<div class="large">'
        + "".join(f'<div><span class="figure">{number(n)}</span> {text(what)}</div>' for n, what in shown)
        + "</div>\n"
    )


def figure(picture: Markup, caption: Any) -> Markup:
    return Markup(f"<figure>{picture}<figcaption>{text(caption)}</figcaption></figure>\n")


def panels(figures: Iterable[Markup], pairs: bool = False, style: str = "") -> Markup:
    """Figures beside each other, as many as fit, or always two and two where there is room, or in a ``style``."""
    style = "pairs" if pairs else style
    return Markup(f'<div class="panels {text(style)}">{"".join(figures)}</div>\n')


def shade(part: int, label: Any) -> Markup:
    """The key of a part of a bar: parts have shades of grey, for the colours mean something else."""
    return Markup(f'<span class="label"><span class="key s{int(part) % SHADES}"></span>{number(label)}</span>')


def keys(shown: Iterable[Markup]) -> Markup:
    """A line of keys."""
    return Markup(f'<p class="key-line">{" ".join(shown)}</p>\n')


def key(colour: int, label: Any) -> Markup:
    """A patch of colour and what it stands for."""
    return Markup(f'<span class="label"><span class="key f{int(colour) % 6}"></span>{number(label)}</span>')
