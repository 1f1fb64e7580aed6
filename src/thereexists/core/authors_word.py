"""What a file says of itself and nobody has checked again: shown, if at all, as its author's word.

A record's digest shows that nobody edited it by accident; whoever wrote it could write anything. Figures that a command
or a report cannot recompute are marked by these words, the same everywhere. The mark stands behind the text, so a text
that is too long must lose its middle and not its mark: everybody who shortens a text does it by ``shortened``.
"""

from __future__ import annotations

from typing import Any

WORDS = "as its author says"
LONGEST = 1000  # characters that a mark may be about


def as_its_author_says(text: object) -> str:
    """``text``, marked: in one line and without runs of spaces, so that no emptiness comes between it and its mark."""
    return _marked(shortened(" ".join(str(text).split()), LONGEST))


class Figures:
    """Base of a dataclass of figures that are counted here, or ``stated`` by a record: then its ``repr`` says so."""

    stated: bool

    def describe(self) -> dict[str, Any]:
        return {name: figure for name, figure in vars(self).items() if name != "stated"}

    def __repr__(self) -> str:
        told = f"{type(self).__name__}({', '.join(f'{name}={figure!r}' for name, figure in self.describe().items())})"
        return as_its_author_says(told) if self.stated else told


def shortened(text: str, most: int) -> str:
    """At most so many characters of a text; a mark that would be cut off is put behind what is left."""
    if len(text) <= most:
        return text
    kept = text[: most - 1] + "…"
    if kept.count(WORDS) == text.count(WORDS):
        return kept
    return _marked(text[: max(0, most - 1 - len(_marked("")))].rstrip() + "…")


def _marked(text: str) -> str:
    return text if text.endswith(f" ({WORDS})") else f"{text} ({WORDS})"
