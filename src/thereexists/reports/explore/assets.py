"""The files of the page, read once and joined: one document, one script, one style, on a server or in a file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

PARTS = ("base", "input", "columns", "blocks", "side", "explore")  # in this order: each uses those before it


@cache
def read(name: str) -> str:
    return files("thereexists.reports").joinpath(name).read_text(encoding="utf-8")


def script() -> str:
    return "".join(read(f"explore/page/{part}.js") for part in PARTS)


def style() -> str:
    return read("page.css") + read("explore/page/explore.css")


def document() -> str:
    return read("explore/page/explore.html")
