"""The certificate: what is claimed of one network file, in numbers, and under which assumptions."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.atomic_files import parts_of, put_in_place, the_error_in_words, write_beside, written_beside
from thereexists.core.errors import BadWitnessFile, InvalidInput, NotProved, Recovered
from thereexists.core.json_files import malformed, read_json, record_digest
from thereexists.core.plain_text import brief
from thereexists.core.regular_files import is_regular, read_regular

FILE = "certificate.json"
BLOCKS = "certificate.blocks.safetensors"
PARTS = frozenset({"grid", "equal_columns", "ramps", "network"})
KEYS = {  # of the parts that are objects, by kind: these, and no others that somebody might take for ours
    "parts": {"rigorous": PARTS, "statistical": PARTS | {"sample"}},
    "float_error": frozenset({"kind", "dtype", "cubes", "max"}),
    "second_opinion": frozenset({"cubes", "seed", "disagreeing"}),
}
FORMAT_VERSION = 1
_MOST_ROWS = 1 << 19  # twice the most blocks there are
_MOST_BYTES = 6 * 8 * _MOST_ROWS + 4096  # and a header


@dataclasses.dataclass(frozen=True, repr=False)
class Certificate:
    """``d_p(f, g) ≤ bound`` over the whole domain, for the network with these weights in exact real arithmetic.

    ``parts``: grid (f against the network's constant on cubes with distinct columns), equal_columns (the other cubes,
    without positional encoding), ramps (everything off the cores), network (undecided cubes, and the radii of the
    enclosures); bound = (grid^p + equal_columns^p + ramps^p)^{1/p} + network. A statistical certificate holds with
    probability ``confidence`` over its own random points, and has only the part ``sample`` (the others are None); it is
    about the float64 run, cut to ``output_bound``.
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

    def __repr__(self) -> str:
        cubes = f"{self.cells:,} cubes, {self.undecided:,} undecided"
        assumed = (f"assuming that {text}" for text in self.assumptions)
        return brief(f"Certificate: {self.claim()}, {self.kind}", cubes, *assumed)

    def claim(self) -> str:
        """The bound in a few words."""
        how = "" if self.kind == "rigorous" else f" at confidence {self.confidence}"
        return f"d_{float(self.p):g} ≤ {float(self.bound):.4g}{how}"

    def save(self, folder: str | Path) -> None:
        """Write certificate.json into the witness's folder, whole or not at all, and the sums over cubes beside it.

        Both are written out before the first of two renames. A kill between them leaves the new certificate with the
        new sums under the name they were written to, where ``load_blocks`` knows them by their hash.
        """
        content = {k: v for k, v in dataclasses.asdict(self).items() if k not in ("blocks", "seconds")}
        record = {"format_version": FORMAT_VERSION, **content}
        record["digest"] = record_digest(record)
        try:
            text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        except ValueError as error:
            raise InvalidInput(f"The certificate was not saved: one of its numbers is not finite ({error}).") from error
        file, sums = Path(folder) / FILE, Path(folder) / BLOCKS
        with the_error_in_words(file):
            if self.blocks is None:
                write_beside(file, text)
                sums.unlink(missing_ok=True)
            else:
                beside = written_beside(sums, _packed(self.blocks))
                try:
                    write_beside(file, text)
                except BaseException:
                    beside.unlink(missing_ok=True)
                    raise
                put_in_place(beside, sums)


def load_certificate(folder: str | Path) -> Certificate:
    """Read certificate.json; refuses one that is missing, broken, changed or newer."""
    file, record = read_certificate(folder)
    with malformed(file, "is not a complete certificate"):
        if "seconds" in record or "blocks" in record:
            raise InvalidInput("it holds a time or sums, which are not stored in it")
        certificate = Certificate(**record)
        _check_types(certificate)
        return certificate


def _check_types(c: Certificate) -> None:
    """Fields of a stranger's certificate are what the checks take them for."""
    numbers = (c.p, c.bound, c.target_bound, *c.output_bound, *(x for x in c.parts.values() if x is not None))
    right = all(type(x) in (int, float) for x in numbers)
    right = right and (c.confidence is None or type(c.confidence) in (int, float))
    right = right and all(type(x) is int and x >= 0 for x in (c.cells, c.undecided, c.splits, c.samples, c.seed))
    right = right and all(isinstance(x, dict) for x in (c.target, c.grid, c.float_error, c.second_opinion))
    right = right and isinstance(c.assumptions, list) and all(isinstance(x, str) for x in c.assumptions)
    right = right and all(isinstance(x, str) for x in (c.kind, c.weights_sha256, c.package_version))
    if not right or not isinstance(c.blocks_sha256, str | None):
        raise InvalidInput("its fields are not numbers, whole numbers, words and objects where they should be")
    parts = KEYS["parts"].get(c.kind, c.parts.keys())  # another kind is refused by name
    keys = {"parts": (c.parts, parts)} | {
        name: (getattr(c, name), KEYS[name]) for name in ("float_error", "second_opinion")
    }
    for name, (found, wanted) in keys.items():
        if found.keys() != wanted:
            odd = sorted(map(str, found.keys() ^ wanted))[0]
            raise InvalidInput(
                f"'{name}' holds {', '.join(sorted(wanted))} in a {c.kind} certificate; '{odd}' is amiss"
            )


def read_certificate(folder: str | Path) -> tuple[Path, dict[str, Any]]:
    """The fields of a certificate of any kind, after its version and its digest were looked at."""
    file = Path(folder) / FILE
    if not is_regular(file):
        raise BadWitnessFile(f"{folder} has no {FILE}; make one with `thereexists certify {folder}`.")
    record = read_json(file)
    if not isinstance(record, dict) or not {"format_version", "digest"} <= record.keys():
        raise BadWitnessFile(f"{file} was truncated or changed: it is not a certificate.")
    version, stated = record.pop("format_version"), record.pop("digest")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise BadWitnessFile(f"{file} has format version {version}; update thereexists.")
    if record_digest({"format_version": version, **record}) != stated:
        raise BadWitnessFile(f"{file} was changed after it was written: its digest does not match.")
    return file, record


def load_blocks(folder: str | Path, certificate: Certificate) -> list[list[float]]:
    """The sums over cubes that the certificate was made of, block by block; refused if they are not those."""
    file = Path(folder) / BLOCKS
    if certificate.blocks_sha256 is None or not (is_regular(file) or parts_of(file)):
        raise BadWitnessFile(f"{folder} has no {BLOCKS} to check a sample against; verify all cubes instead.")
    problem = f"{file} holds other sums than the certificate was made of: its SHA-256 differs."
    for place in (file, *parts_of(file)):
        try:
            blocks = _read_blocks(place)
        except BadWitnessFile as error:
            problem = str(error) if place == file and is_regular(file) else problem
            continue
        if blocks_sha256(blocks) == certificate.blocks_sha256:
            if place != file:
                with suppress(OSError):
                    os.replace(place, file)
                told = f"A save of the certificate in {folder} was interrupted; its sums have been put in place."
                warnings.warn(told, Recovered, stacklevel=2)
            return blocks
    raise BadWitnessFile(problem)


def _read_blocks(file: Path) -> list[list[float]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        stored = load(read_regular(file, _MOST_BYTES))["sums"]
    except (SafetensorError, KeyError, OSError) as error:
        raise BadWitnessFile(f"{file} was truncated or changed: {error}") from error
    if stored.dtype != np.float64 or stored.ndim != 2 or stored.shape[1] != 6 or len(stored) > _MOST_ROWS:
        raise BadWitnessFile(f"{file} was changed: it holds {stored.dtype} {stored.shape}, not six sums a block.")
    return stored.tolist()


def _packed(blocks: list[list[float]]) -> bytes:
    from safetensors.numpy import save

    return save({"sums": np.array(blocks, dtype=np.float64)})


def blocks_sha256(blocks: list[list[float]]) -> str:
    return hashlib.sha256(np.array(blocks, dtype="<f8").tobytes()).hexdigest()


def _finite(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)
