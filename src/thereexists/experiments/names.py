"""Names in records of runs: which may stand in the name of a file, which may be shown, and how texts are shown.

Records come from strangers. The name of an experiment or a size becomes part of the name of a file, so it is a *slug*:
few characters, none of which separates folders. The name of a run or a test set is only shown: letters, digits and a
few marks, in parts between slashes. Neither can begin with a dot, so no part of either is ``.`` or ``..``.
All other texts (files of a corpus, devices) are shown through ``in_markdown``.
"""

from __future__ import annotations

import re
from pathlib import Path

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import visible

SLUG = "letters, digits and . _ + = , - (a letter, a digit or _ first, at most 64)"
NAME = "letters, digits, spaces and . _ + = , ( ) - in parts between slashes (a letter, a digit or _ first)"
LONGEST_NAME = 200

_SLUG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+=,-]{0,63}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+=,-]{0,199}")  # two slugs and a few words
_NAME = re.compile(r"\w[\w .+=,()-]*(/\w[\w .+=,()-]*)*")
_CODE = re.compile(r"[\w .+=,()/%-]+")
# What HTML or Markdown would obey; the colon and the point where a page would make a link of them.
_OBEYED = re.compile(r"[<>&\"'`*\[\]|#~$\\!{}]|(?<!\w)_|_(?!\w)|:(?=//)|(?<=www)\.", re.IGNORECASE)


def is_slug(text: str) -> bool:
    """Whether it may be part of the name of a file."""
    return _SLUG.fullmatch(text) is not None


def is_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None


def file_in(folder: Path, name: str) -> Path:
    """``folder / name``, and nothing outside: the last look before a name becomes a file."""
    if not _FILE.fullmatch(name):
        raise InvalidInput(f"{visible(name)[:80]!r} cannot be the name of a file; it may have {SLUG}.")
    return folder / name


def in_markdown(text: str) -> str:
    """The text for a page of Markdown, which may hold HTML: what either would obey is written as an entity."""
    return _OBEYED.sub(lambda found: f"&#{ord(found[0])};", visible(text))


def as_code(text: str) -> str:
    """In backticks if it is a plain name; a page that breaks lines could take other text out of them."""
    return f"`{text}`" if _CODE.fullmatch(text) else in_markdown(text)
