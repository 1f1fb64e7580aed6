"""Domains from text and from records: data alone, except for ``file.py:name``, which the user types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.user_file import name_in_file, read_user_file
from thereexists.functions.domains.combined import Intersection, Union, check_parts
from thereexists.functions.domains.domain import Domain, check_amount
from thereexists.functions.domains.implicit import missing
from thereexists.functions.domains.points import Points
from thereexists.functions.domains.shapes import Ball, Box, Ellipsoid, Polytope
from thereexists.functions.domains.simplex import Simplex

_DEPTH = 16  # of unions of intersections of …
_KINDS = {
    "box": (("low", "high"), lambda s: Box(s["low"], s["high"])),
    "ellipsoid": (("centre", "axes"), lambda s: Ellipsoid(s["centre"], s["axes"])),
    "polytope": (("A", "b", "low", "high"), lambda s: Polytope(s["A"], s["b"], s["low"], s["high"])),
    "simplex": (("whole",), lambda s: Simplex(whole=s["whole"] is True)),
    "points": (("points",), lambda s: Points(s["points"])),
    "implicit": (("low", "high", "lipschitz", "interval", "origin"), missing),
}
_LISTS = ("low", "high", "centre", "axes", "A", "b", "points")
_WANTED = (
    "--domain takes a box (-2,5 or '0,1;-2,5'), simplex, 'simplex whole', 'ball 0.5,0.5 0.3' (centre, radius), "
    "'ellipsoid 0.5,0.5 0.3,0.1' (centre, half axes), or file.py:domain"
)


def read(stored: Any, depth: int = 0) -> Domain:
    """The inverse of ``Domain.describe``. Code does not come back: such a domain knows its box alone."""
    if not isinstance(stored, dict) or depth > _DEPTH:
        raise InvalidInput("a domain must be described by its kind and its numbers")
    if depth == 0:
        _check_size(stored)
    kind = stored.get("kind")
    if kind in ("union", "intersection") and stored.keys() == {"kind", "parts"} and isinstance(stored["parts"], list):
        parts = tuple(read(part, depth + 1) for part in stored["parts"])
        return Union(parts) if kind == "union" else Intersection(parts)
    if kind not in _KINDS or stored.keys() != {"kind", *_KINDS[kind][0]}:
        raise InvalidInput(f"a domain of the kind {kind!r} is not known, or is incomplete")
    if kind == "implicit" and not isinstance(stored["origin"], dict):
        raise InvalidInput("the origin of a domain must be a record")
    return _KINDS[kind][1](stored)


def _check_size(stored: dict[str, Any]) -> None:
    """Before anything is made of it: a short list of half axes is a large matrix, and parts multiply."""
    parts = amount = 0
    left: list[Any] = [stored]
    while left:
        part = left.pop()
        if not isinstance(part, dict):
            continue
        parts += 1
        if isinstance(part.get("parts"), list):
            left += part["parts"]
        lists = {name: _count(part[name]) for name in _LISTS if name in part}
        amount += max(sum(lists.values()), lists.get("centre", 0) ** 2)
        if part.get("kind") == "polytope" and not all(isinstance(part.get(end), list) for end in ("low", "high")):
            raise InvalidInput("a polytope must be stored with the ends of its box")
    check_parts(parts)
    check_amount(amount)


def _count(value: Any) -> int:
    """The numbers of a list of lists."""
    found, left = 0, [value]
    while left:
        if isinstance(one := left.pop(), list):
            left += one
        else:
            found += 1
    return found


def in_words(stored: Any) -> str:
    """A described domain, for people; of a stranger's record, whatever it holds."""
    try:
        return read(stored).words()
    except (InvalidInput, ValueError, TypeError, KeyError, OverflowError):
        return "a domain that cannot be read"


def measured_in_words(stored: Any) -> list[str]:
    """By what measure an integral over a described domain is one, where that is not volume."""
    try:
        return [said for said in (read(stored).measured(),) if said]
    except (InvalidInput, ValueError, TypeError, KeyError, OverflowError):
        return []


def parsed(text: str) -> Domain:
    """What the command line names, beside a box."""
    if ":" in text:
        return from_file(text)
    words = text.split()
    try:
        numbers = [np.array([float(x) for x in word.split(",")]) for word in words[1:]]
    except ValueError:
        numbers = []
    if words == ["simplex"] or words == ["simplex", "whole"]:
        return Simplex(whole=len(words) == 2)
    if words[0] == "ball" and len(numbers) == 2 and numbers[1].size == 1:
        return Ball(numbers[0], float(numbers[1][0]))
    if words[0] == "ellipsoid" and len(numbers) == 2:
        return Ellipsoid(*numbers)
    raise InvalidInput(f"{_WANTED}; got {text!r} instead.")


def given_again(stored: Domain | None, reference: str) -> Domain:
    """The domain of a file in place of the stored one, which it must be."""
    found = from_file(reference)
    if stored is None or not stored.codes:
        raise InvalidInput(
            "--domain gives the code of a domain again, and the domain of this witness has none: leave it out."
        )
    old, new = (origins(part.describe()) for part in (stored, found))
    if {str(origin.get("sha256")) for origin in old} != {str(origin.get("sha256")) for origin in new}:
        raise InvalidInput(f"{reference} is not the file that this domain was built from (its SHA-256 differs).")
    wanted, given = ({name_in_file(origin.get("reference")) for origin in some} for some in (old, new))
    if wanted != given:
        raise InvalidInput(
            f"This domain was built from {', '.join(sorted(wanted))} of that file, not from {reference}."
        )
    return found


def wherever_it_lies(described: Any) -> Any:
    """A domain's description without the folder of its file; of ``file.py:name`` the name stays, as a file may make
    several."""
    if isinstance(described, dict):
        return {k: name_in_file(v) if k == "reference" else wherever_it_lies(v) for k, v in described.items()}
    return [wherever_it_lies(part) for part in described] if isinstance(described, list) else described


def origins(described: dict[str, Any]) -> list[dict[str, Any]]:
    """Where the code of a described domain comes from, part by part."""
    inner = [origin for part in described.get("parts", []) for origin in origins(part)]
    return inner + ([described["origin"]] if "origin" in described else [])


def from_file(reference: str) -> Domain:
    """``file.py:name``, a domain that the file makes. The hash of the bytes goes into the record, if it has code."""
    file, name = read_user_file(reference, "domain")
    found = getattr(file.run(), name, None)
    if not isinstance(found, Domain):
        raise InvalidInput(f"{file.path} has no domain {name!r}: it must be one of te.domains.")
    origin = {"kind": "file", "reference": f"{Path(file.path).resolve()}:{name}", "sha256": file.sha256}
    return found.with_origin(origin)
