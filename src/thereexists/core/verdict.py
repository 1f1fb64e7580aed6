"""A check answers with a verdict *and* its evidence, whichever way it goes. ``holds is None`` means undecided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thereexists.core.notebook import InNotebook
from thereexists.core.plain_text import brief


@dataclass(frozen=True)
class Verdict(InNotebook):
    """``holds``: True, False, or None for *undecided*; ``reasons`` in words; ``evidence`` in data.

        verdict = te.Verdict(True, ("every row was checked",))
        verdict.holds

    Args:
        holds: True, False, or None for *undecided*.
        reasons: in words.
        evidence: in data.
    """

    holds: bool | None
    reasons: tuple[str, ...] = ()
    evidence: Any = None

    def __repr__(self) -> str:
        return brief(f"{type(self).__name__}: {self.in_words()}", *self.reasons)

    def in_words(self) -> str:
        return "undecided" if self.holds is None else "holds" if self.holds else "does not hold"

    def __bool__(self) -> bool:
        if self.holds is None:
            raise ValueError("This verdict is undecided and has no truth value; look at .holds and .reasons.")
        return self.holds
