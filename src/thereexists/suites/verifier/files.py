"""The two tables of a verifier suite, read and looked at entry by entry: instances.csv and truth/truth.json.

Whoever checks, answers or scores a suite reads them here, so that what is refused is refused everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import read_json
from thereexists.suites.folders import read_text
from thereexists.suites.plain import are_numbers, is_flag, is_name, is_number, is_whole
from thereexists.suites.verifier.families import FAMILIES
from thereexists.suites.verifier.families.base import LEVELS

TRUTH = "truth/truth.json"
TABLE = "instances.csv"
_LINE = re.compile(r"onnx/([\w-]+)\.onnx,vnnlib/\1\.vnnlib,([0-9]{1,6})", re.ASCII)


class Listed(NamedTuple):
    """A line of instances.csv."""

    name: str
    seconds: int

    @property
    def network(self) -> str:
        return f"onnx/{self.name}.onnx"

    @property
    def asked(self) -> str:
        return f"vnnlib/{self.name}.vnnlib"

    @property
    def files(self) -> tuple[str, str]:
        return self.network, self.asked

    @property
    def line(self) -> str:
        return f"{self.network},{self.asked},{self.seconds}"


def read_table(folder: Path) -> list[Listed]:
    """instances.csv: every line names an instance of this folder, once; to the byte as it is written."""
    found, text = [], read_text(folder / TABLE)
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        match = _LINE.fullmatch(line)
        if match is None or not is_name(match[1]):
            raise InvalidInput(
                f"{folder / TABLE}, line {number}: wanted onnx/NAME.onnx,vnnlib/NAME.vnnlib,SECONDS; got {line[:80]!r}."
            )
        found.append(Listed(match[1], int(match[2])))
    if len({one.name for one in found}) != len(found):
        raise InvalidInput(f"{folder / TABLE} must list no instance twice.")
    if text != table_of(found):  # seconds with zeros before them, or no end of the last line
        raise InvalidInput(f"{folder / TABLE} must have seconds without zeros before them, and end with its last line.")
    return found


def table_of(instances: list[Listed]) -> str:
    """The text of instances.csv."""
    return "".join(f"{one.line}\n" for one in instances)


def _is_mask(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"seed", "worn", "split"}
        and is_flag(value["worn"])
        and is_flag(value["split"])
        and isinstance(value["seed"], list)
        and all(is_whole(part, 0, 10**100) for part in value["seed"])
    )


_ENTRY: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (is_name, "letters, digits, - and _"),
    "verdict": (lambda value: value in ("sat", "unsat"), "sat or unsat"),
    "margin": (lambda value: is_number(value, 0) and value > 0, "a number above 0"),
    "family": (lambda value: isinstance(value, str) and value in FAMILIES, f"one of {', '.join(FAMILIES)}"),
    "level": (lambda value: is_whole(value, 1, LEVELS), f"a whole number from 1 to {LEVELS}"),
    "params": (lambda value: isinstance(value, dict), "an object"),
    "disguise": (_is_mask, "an object of seed, worn and split"),
    "bound": (lambda value: is_number(value, 0), "a number of at least 0"),
    "extremes": (are_numbers, "a list of numbers"),
    "proof": (lambda value: isinstance(value, str), "a text"),
    "counterexample": (lambda value: value is None or are_numbers(value), "null or a list of numbers"),
    "timeout": (lambda value: is_whole(value, 1, 999_999), "a whole number above 0"),
    "float32": (lambda value: is_number(value, 0), "a number of at least 0"),
}


def read_truth(folder: Path) -> list[dict[str, Any]]:
    """The instances with their verdicts, in the order of instances.csv; every entry is there and of its kind."""
    file = folder / TRUTH
    if not file.is_file():
        raise InvalidInput(f"{file} is missing: it holds the truth that a tool is scored by.")
    found = read_json(file)
    entries = found.get("instances") if isinstance(found, dict) and len(found) == 1 else None
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidInput(f"{file} is not the truth of a suite: wanted an object of instances, a list of objects.")
    for number, entry in enumerate(entries):
        for key, (is_right, wanted) in _ENTRY.items():
            if key not in entry or not is_right(entry[key]):
                raise InvalidInput(f"{file}, instance {number}: '{key}' must be {wanted}; {_said(entry, key)}.")
        if entry.keys() != _ENTRY.keys():
            raise InvalidInput(f"{file}, instance {number}: it has an entry that no instance has.")
    if len({entry["name"] for entry in entries}) != len(entries):
        raise InvalidInput(f"{file} names an instance twice.")
    return entries


def _said(entry: dict[str, Any], key: str) -> str:
    return f"got {str(entry[key])[:40]!r}" if key in entry else "it is missing"
