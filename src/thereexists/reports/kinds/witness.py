"""A saved witness, of whatever kind: the page is found by its construction."""

from __future__ import annotations

from thereexists.core.kinds import kind_of
from thereexists.core.storage import read_record
from thereexists.reports.artefact import Found, Kind
from thereexists.reports.html import Page


def _page(found: Found) -> Page:
    record = read_record(found.path)
    return kind_of(record, found.path).find("page")(found, record)


KIND = Kind(
    "witness",
    "the folder of a witness (build --out, memorise --out)",
    lambda found: (found.path / "witness.json").is_file(),
    _page,
)
