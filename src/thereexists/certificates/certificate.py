"""The certificate: what is claimed of one network file, in numbers, and under which assumptions."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from thereexists.errors import BadWitnessFile

FILE = "certificate.json"
FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Certificate:
    """``d_p(f, g) ≤ bound`` over the whole domain, for the network with these weights in exact real arithmetic.

    ``parts``: grid (f against the network's constant on cubes with distinct columns), equal_columns (the other cubes,
    without positional encoding), ramps (everything off the cores), network (undecided cubes, and the radii of the
    enclosures); bound = (grid^p + equal_columns^p + ramps^p)^{1/p} + network. A statistical certificate holds with
    probability ``confidence`` over its own random points, and has only the part ``sample`` (the others are None).
    """

    kind: str
    p: float
    bound: float
    parts: dict[str, float | None]
    confidence: float | None
    cells: int
    undecided: int
    output_bound: list[float]
    target_bound: float
    splits: int
    samples: int
    seed: int
    assumptions: list[str]
    target: dict[str, Any]
    grid: dict[str, Any]
    weights_sha256: str
    float_error: dict[str, Any]
    second_opinion: dict[str, Any]
    package_version: str
    seconds: float

    def save(self, folder: str | Path) -> None:
        """Write certificate.json into the witness's folder, whole or not at all."""
        record = {"format_version": FORMAT_VERSION, **dataclasses.asdict(self)}
        record["digest"] = digest(record)
        file = Path(folder) / FILE
        beside = file.with_name(f".{FILE}.part")
        beside.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(beside, file)


def load_certificate(folder: str | Path) -> Certificate:
    """Read certificate.json; refuses one that is missing, broken, changed or newer."""
    file = Path(folder) / FILE
    if not file.is_file():
        raise BadWitnessFile(f"{folder} has no {FILE}; make one with `thereexists certify {folder}`.")
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        version, stated = record.pop("format_version"), record.pop("digest")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadWitnessFile(f"{file} was truncated or changed: it is not a certificate.") from error
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise BadWitnessFile(f"{file} has format version {version}; update thereexists.")
    if digest({"format_version": version, **record}) != stated:
        raise BadWitnessFile(f"{file} was changed after it was written: its digest does not match.")
    try:
        return Certificate(**record)
    except TypeError as error:
        raise BadWitnessFile(f"{file} is not a complete certificate: {error}") from error


def digest(record: dict[str, Any]) -> str:
    content = {key: value for key, value in record.items() if key != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
