"""The blocks of a Markdown page, and what may be done with them.

A block is run unless a comment directly before it says why not:

    <!-- test: slow: minutes of training -->     runs with -m slow
    <!-- test: gpu: needs a CUDA device -->      runs with -m gpu
    <!-- test: never: ... -->                    is only parsed; say what is missing
    <!-- test: exit 2 -->                        its last command must end with this exit code

Fenced languages: ``python`` (run; with ``title="file.py"`` written to that file instead), ``sh`` (every line a
command), ``console`` (``$ command`` and what it prints, with … for anything), ``text`` (not run), ``json``, ``toml``,
``csv`` (with ``title=`` written to that file). An indented block is a formula or a list of commands; indented Python
is a mistake.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
LANGUAGES = {"python", "sh", "console", "text", "json", "toml", "csv"}
COMMANDS = ("thereexists", "python", "pip", "make", "pytest", "torchrun")
_MARK = re.compile(r"<!--\s*test:\s*(slow|gpu|never|exit)\s*:?\s*(.*?)\s*-->")
_TITLE = re.compile(r'title="([^"]+)"')


class BadBlock(Exception):
    """A block that no test could run, and why."""


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    code: str
    when: str = "always"  # always, slow, gpu or never
    reason: str = ""
    file: str | None = None
    code_expected: int = 0

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: str, text: str) -> list[Block]:
    """All code blocks of a page in order; anything that could not be tested raises ``BadBlock``."""
    found, mark = [], None
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "html_block" and "test:" in token.content:
            mark = _MARK.fullmatch(token.content.strip())
            if mark is None:
                raise BadBlock(f"{page}:{_line(token)}: not a mark that this test knows: {token.content.strip()}")
        elif token.type in ("fence", "code_block"):
            found.append(_block(page, token, mark))
            mark = None
        elif mark is not None and token.type != "inline":
            raise BadBlock(f"{page}: the mark {mark[0]} stands before no block")
    if mark is not None:
        raise BadBlock(f"{page}: the mark {mark[0]} stands before no block")
    return found


def _line(token) -> int:
    return token.map[0] + 1


def _block(page: str, token, mark: re.Match | None) -> Block:
    info = token.info.strip()
    where = f"{page}:{_line(token)}"
    language = info.split()[0] if info else _guess(where, token.content)
    if language not in LANGUAGES:
        raise BadBlock(f"{where}: the language {language!r} is none of {', '.join(sorted(LANGUAGES))}")
    title = _TITLE.search(info)
    when, reason = (mark[1], mark[2]) if mark else ("always", "")
    if when in ("slow", "gpu", "never") and not reason:
        raise BadBlock(f"{where}: a block that is not always run needs a reason")
    expected = int(reason) if when == "exit" else 0
    return Block(
        page,
        _line(token),
        language,
        token.content,
        "always" if when == "exit" else when,
        "" if when == "exit" else reason,
        title[1] if title else None,
        expected,
    )


def _guess(where: str, code: str) -> str:
    """An indented block, or a fence without a language: commands, or text that is no Python."""
    words = [line.split()[0] for line in code.splitlines() if line.strip()]
    if any(word in COMMANDS for word in words):
        return "sh"
    try:
        ast.parse(code)
    except SyntaxError:
        return "text"
    raise BadBlock(f"{where}: this could be Python; fence it as ```python, or as ```text if it is none")


def inline_commands(text: str) -> list[str]:
    """Command lines in the running text, between single backticks."""
    found = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for child in token.children or ():
            words = child.content.split()
            if child.type == "code_inline" and len(words) > 1 and words[0] in COMMANDS:
                found.append(" ".join(words))
    return found
