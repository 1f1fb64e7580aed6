"""Where a saved program says that its operations live: words that it knows, in halves and rows that the network has.

``places`` is for the reader of ``show`` and ``trace``, and stays its author's word: that a row holds what it is said to
hold is not proved. What can be told from the files is: a half of a block that is there, in order, each once; rows that
are there, each once in a half; and words for operations that there are.
"""

from __future__ import annotations

from typing import Any

from thereexists.certificates.program_settings import SETTINGS
from thereexists.core.errors import BadWitnessFile
from thereexists.model import EmbeddedTransformer

HALVES = ("embedding", "attention", "feed-forward")
_OWN_WORDS = frozenset({"constant", "position"})  # rows of E that no operation is asked for by name
_DETAILS = (": partner", ": exchange", ": is it me?", ": padding")  # steps of an operation
LONGEST_NAME = 200
_PART = " (part)"  # of a sum that is too wide for one block


def check_name(record: dict[str, Any]) -> str:
    """What the author calls the program; nothing at all is a name too."""
    name = record.get("name", "")
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        raise BadWitnessFile(f"The name of a program must be text of at most {LONGEST_NAME} characters.")
    return name


def check_places(places: Any, program: dict[str, Any], network: EmbeddedTransformer) -> None:
    """Of a program whose parts have the right types (``check_program``)."""
    words, times = _words(program), []
    rows = network.shape()["d"]
    for place in _listed(places):
        if not isinstance(place, dict) or place.keys() != {"block", "half", "made"}:
            raise BadWitnessFile(
                f"A place must have a block, a half and what is made there; got {_short(place)} instead."
            )
        block, half, made = place["block"], place["half"], _listed(place["made"])
        known = type(block) is int and half in HALVES and (block == 0) == (half == "embedding")
        if not known or not 0 <= block <= network.depth:
            raise BadWitnessFile(f"This network has no block {_short(block)} with a half {_short(half)}.")
        times.append(2 * block - (half == "attention"))
        if not all(isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) for one in made):
            raise BadWitnessFile(f"The entries of block {block} must be operations, each with its row.")
        wrong = [row for _, row in made if type(row) is not int or not 0 <= row < rows]
        if wrong or not made or len({row for _, row in made}) < len(made):
            raise BadWitnessFile(
                f"Every operation of block {block} must have a row of its own, below {rows}; got {_short(wrong)}."
            )
        strange = [name for name, _ in made if _operation(name) not in words]
        if strange:
            raise BadWitnessFile(f"Block {block} names {_short(strange[0])}, which is not an operation.")
    if times != sorted(set(times)):
        raise BadWitnessFile("The places of a program must be in order, with each half once; these are not.")


def _words(program: dict[str, Any]) -> frozenset[str]:
    """The operations there are (one may be made of others: argsort ranks), and what the program calls its own."""
    called = {node["settings"].get("called") for node in program["nodes"]}
    return _OWN_WORDS | frozenset(SETTINGS) | {word for word in called if isinstance(word, str)}


def _operation(name: str) -> str:
    while name.endswith(_PART):
        name = name.removesuffix(_PART)
    for detail in _DETAILS:
        name = name.removesuffix(detail)
    return name


def _listed(part: Any) -> list[Any]:
    if not isinstance(part, list):
        raise BadWitnessFile(f"The places of a program must be lists; got {_short(part)} instead.")
    return part


def _short(part: Any) -> str:
    return repr(part)[:60]
