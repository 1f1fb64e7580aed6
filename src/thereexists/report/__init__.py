"""Reports: one self-contained page about a saved artefact, with pictures measured on the artefact itself.

page = te.report.report("w")
page.save("report.html")
"""

from thereexists.report.artefact import report
from thereexists.report.html import Page, Section
from thereexists.report.pattern import pattern_page

__all__ = ["Page", "Section", "pattern_page", "report"]
