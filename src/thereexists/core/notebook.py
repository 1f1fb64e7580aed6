"""How a result shows itself in a notebook: as a small card, drawn by the reports.

What is drawn belongs to the reports, which stand above everything that can be shown; so the card is found by its name,
as the registry of kinds finds a page. Where it cannot be made, a notebook shows the ``repr``.
"""

from __future__ import annotations

from thereexists.core.errors import ThereExistsError
from thereexists.core.kinds import named

CARD = "thereexists.reports.cards:card"


class InNotebook:
    """Anything with a card; the base of what ``te`` gives back."""

    def _repr_html_(self) -> str | None:
        try:
            return named(CARD)(self)
        except ThereExistsError:  # of a stranger's file, say: words are better than nothing
            return None
