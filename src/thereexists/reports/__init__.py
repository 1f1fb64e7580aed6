"""Reports: one self-contained page about an artefact, with pictures measured on the artefact itself.

page = te.report("w")
page.save("report.html")
"""

from typing import TYPE_CHECKING

from thereexists.reports.artefact import Found, Kind, every_kind, report
from thereexists.reports.html import Page, Section

if TYPE_CHECKING:
    from thereexists.reports.kinds.pattern import pattern_page

__all__ = ["Found", "Kind", "Page", "Section", "every_kind", "pattern_page", "report"]


def __getattr__(name: str) -> object:
    """``pattern_page`` on first use: the kinds import this package's pieces, and not the other way round."""
    if name == "pattern_page":
        from thereexists.reports.kinds.pattern import pattern_page

        return pattern_page
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
