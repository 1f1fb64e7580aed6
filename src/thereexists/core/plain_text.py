"""Text that is not ours, made harmless to look at.

A name in a record, a token of a vocabulary or the words of an error may hold characters that a terminal or a page obeys
instead of showing: escape sequences that clear the screen or rewrite a line, a carriage return, marks that reverse the
direction of reading, halves of surrogate pairs that no stream accepts. ``visible`` writes them out, as Python does in
a literal; all other text stays as it is. (The joiners U+200C and U+200D stay: languages and emoji need them.)
"""

from __future__ import annotations

import re
from typing import Any

from thereexists.core.authors_word import shortened

_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, bidirectional, breaks
    "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # empty places that Python does not call white space
    "\ud800-\udfff"  # halves of pairs
    "\U000e0000-\U000e0fff]"  # tags and variations that show nothing
)


def visible(text: Any) -> str:
    """The text with every character that would be obeyed written out, line breaks among them: ``\\x1b``, ``\\n``."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], str(text))


def is_text(text: str) -> bool:
    """Half of a surrogate pair is not a text: no file can hold it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def lines_of(text: str) -> list[str]:
    """The lines of a file, ended by \\n or \\r\\n; ``str.splitlines`` would also cut at the U+2028 inside a string."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]


MOST_LINES = 6  # of a ``repr``
WIDEST_LINE = 150


def brief(what: str, *facts: str) -> str:
    """What ``repr`` says of a result: what it is, and at most five facts, none of them long or obeyed by a terminal."""
    lines = [visible(what), *(f"  {visible(fact)}" for fact in facts)]
    lines = lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], f"  … {len(facts) - MOST_LINES + 2} more"]
    return "\n".join(shortened(line, WIDEST_LINE) for line in lines)


def visible_json(text: str) -> str:
    """JSON with the same characters as ``\\uXXXX``: the same value to whoever parses it."""
    return _OBEYED.sub(lambda found: _escaped(ord(found[0])), text)


def _escaped(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def counted(number: int, what: str) -> str:
    """A count with its noun: ``1 block``, ``1,585 layers``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def d_of(p: float) -> str:
    """The name of the distance d_p."""
    return f"d_{in_full(float(p))}"


def in_full(x: float | None) -> str:
    """A number of an assumption, none of its digits left out: what is assumed must imply what is proved."""
    if x is None:
        return "none"
    if float(f"{x:g}") == x:
        return f"{x:g}"
    return repr(x) if isinstance(x, int) else repr(float(x))  # that of NumPy's floats names their type
