"""What a file says of itself and nobody has checked again: shown, if at all, as its author's word.

A record's digest shows that nobody edited it by accident; whoever wrote it could write anything. Figures that a command
or a report cannot recompute are marked by these words, the same everywhere.
"""

from __future__ import annotations

WORDS = "as its author says"


def as_its_author_says(text: object) -> str:
    """``text``, marked."""
    return f"{text} ({WORDS})"
