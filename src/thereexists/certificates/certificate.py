"""The certificate: what is claimed of one network file, in numbers, and under which assumptions."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.errors import BadWitnessFile, NotProved

FILE = "certificate.json"
BLOCKS = "certificate.blocks.safetensors"
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
    blocks_sha256: str | None = None  # of the sums over cubes, block by block, which are stored beside
    blocks: list[list[float]] | None = dataclasses.field(default=None, repr=False, compare=False)
    seconds: float = dataclasses.field(default=0.0, compare=False)  # not stored: the same claim is the same bytes

    def __post_init__(self) -> None:
        """No certificate without a finite bound: "proved" and infinity never stand together."""
        if not _finite(self.bound):
            parts = self.parts if isinstance(self.parts, dict) else {}
            loose = [
                str(name).replace("_", " ") for name, size in parts.items() if size is not None and not _finite(size)
            ]
            where = f" (the part {', '.join(loose)} has no finite bound)" if loose else ""
            raise NotProved(f"Not proved: no finite bound on d_p follows from these weights and this target{where}.")

    def save(self, folder: str | Path) -> None:
        """Write certificate.json into the witness's folder, whole or not at all."""
        content = {k: v for k, v in dataclasses.asdict(self).items() if k not in ("blocks", "seconds")}
        record = {"format_version": FORMAT_VERSION, **content}
        record["digest"] = digest(record)
        _save_blocks(Path(folder) / BLOCKS, self.blocks)
        file = Path(folder) / FILE
        beside = file.with_name(f".{FILE}.part")
        beside.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(beside, file)


def load_certificate(folder: str | Path) -> Certificate:
    """Read certificate.json; refuses one that is missing, broken, changed or newer."""
    file, record = read_certificate(folder)
    try:
        return Certificate(**record)
    except NotProved as error:
        raise BadWitnessFile(f"{file} states no finite bound: {error}") from error
    except TypeError as error:
        raise BadWitnessFile(f"{file} is not a complete certificate: {error}") from error


def read_certificate(folder: str | Path) -> tuple[Path, dict[str, Any]]:
    """The fields of a certificate of any kind, after its version and its digest were looked at."""
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
    return file, record


def load_blocks(folder: str | Path, certificate: Certificate) -> list[list[float]]:
    """The sums over cubes that the certificate was made of, block by block; refused if they are not those."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    file = Path(folder) / BLOCKS
    if certificate.blocks_sha256 is None or not file.is_file():
        raise BadWitnessFile(f"{folder} has no {BLOCKS} to check a sample against; verify all cubes instead.")
    try:
        blocks = load_file(file)["sums"].tolist()
    except (SafetensorError, KeyError, OSError) as error:
        raise BadWitnessFile(f"{file} was truncated or changed: {error}") from error
    if blocks_sha256(blocks) != certificate.blocks_sha256:
        raise BadWitnessFile(f"{file} holds other sums than the certificate was made of: its SHA-256 differs.")
    return blocks


def blocks_sha256(blocks: list[list[float]]) -> str:
    return hashlib.sha256(np.array(blocks, dtype="<f8").tobytes()).hexdigest()


def _save_blocks(file: Path, blocks: list[list[float]] | None) -> None:
    from safetensors.numpy import save_file

    if blocks is None:
        file.unlink(missing_ok=True)
        return
    beside = file.with_name(f".{file.name}.part")
    save_file({"sums": np.array(blocks, dtype=np.float64)}, beside)
    os.chmod(beside, 0o644)
    os.replace(beside, file)


def _finite(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)


def digest(record: dict[str, Any]) -> str:
    content = {key: value for key, value in record.items() if key != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
