"""Two descriptions of a function (``Target.describe``): are they of the same one?

Records and certificates hold them. A file is known by the hash of its bytes, so where it lay does not matter: whoever
moved it, or gave it again from another place, has still the same function and the same domain.
"""

from __future__ import annotations

from typing import Any

from thereexists.functions.domains.stored import wherever_it_lies

_MISSING = object()


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The names of what two descriptions say differently; nothing if they are of one function on one domain."""
    one, other = _less_places(one), _less_places(other)
    return sorted(key for key in one.keys() | other.keys() if one.get(key, _MISSING) != other.get(key, _MISSING))


def _less_places(described: dict[str, Any]) -> dict[str, Any]:
    origin = described.get("origin")
    told = {**described, "domain": wherever_it_lies(described["domain"])} if "domain" in described else described
    if not isinstance(origin, dict) or origin.get("kind") != "file":
        return told
    return {**told, "origin": {key: value for key, value in origin.items() if key != "reference"}}
