"""Saved artefacts: a directory with a JSON record and a safetensors file, written whole or not at all.

The record carries a format version, the SHA-256 of the weights, and a digest of itself, so that a truncated, changed
or newer file is refused with a reason. (A digest guards against accidents and careless edits, not against somebody who
recomputes it: what a witness *does* is re-checked by its certificate.) Nothing here can execute code: no pickle.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from thereexists.core import replaced_folders, shards
from thereexists.core.atomic_files import is_part_of, no_empty_folders, the_error_in_words
from thereexists.core.errors import BadWitnessFile, InvalidInput, ThereExistsError, Unreadable
from thereexists.core.json_files import MOST_BYTES, malformed, read_json, record_digest
from thereexists.core.kinds import kind_of
from thereexists.core.modes import as_the_umask_says
from thereexists.core.one_writer import one_writer
from thereexists.core.regular_files import file_sha256, is_regular
from thereexists.core.replaced_folders import fresh_beside, fresh_folder, put_in_place
from thereexists.core.tensor_files import check_booleans, save_tensors

FORMAT_VERSION = 1
MOST_WORDS = 1 << 28  # bytes of a record beyond ``MOST_BYTES``


@dataclass(frozen=True)
class Layout:
    """What kind of artefact a folder holds, and the names of its two files."""

    kind: str
    record: str
    weights: str


WITNESS = Layout("witness", "witness.json", "model.safetensors")
HEAD = Layout("head", "head.json", "head.safetensors")
JOB = ".certify.job"  # a folder, while a certification is under way
_BESIDE = ("certificate.json", "certificate.blocks.safetensors", JOB)  # what else we may have written into the folder


def finish_shards(path: Path, made: Path, record: dict[str, Any]) -> None:
    """Make the witness at ``path`` of the shards and their index in the folder ``made``, which stays as it is: whoever
    is stopped here goes on from there.
    """
    names = [shards.INDEX, *sorted(set(shards.read_index(made).values()))]
    hashes = {name: file_sha256(made / name) for name in names}
    record = {"format_version": FORMAT_VERSION, "kind": WITNESS.kind, **record, "shards_sha256": hashes}
    record["digest"] = record_digest(record)
    with the_error_in_words(path), fresh_beside(path) as beside:
        for name in names:
            try:
                os.link(made / name, beside / name)
            except OSError:  # a file system without links
                shutil.copyfile(made / name, beside / name)
        (beside / WITNESS.record).write_text(_written(record), encoding="utf-8")
        as_the_umask_says(beside)
        put_in_place(beside, path)


def write(path: Path, record: dict[str, Any], weights: dict[str, Tensor], layout: Layout = WITNESS) -> None:
    """Write beside, then rename. An existing artefact is replaced; anything else at ``path`` is left alone."""
    check_writable(path, layout)
    with the_error_in_words(path), fresh_beside(path) as beside:
        save_tensors(weights, beside / layout.weights)
        sha256 = file_sha256(beside / layout.weights)
        record = {"format_version": FORMAT_VERSION, "kind": layout.kind, **record, "weights_sha256": sha256}
        record["digest"] = record_digest(record)
        (beside / layout.record).write_text(_written(record), encoding="utf-8")
        if (beside / layout.record).stat().st_size > (most := _most_of_record(beside / layout.weights)):
            raise InvalidInput(f"Nothing was saved: the record would have more than {most:,} bytes.")
        as_the_umask_says(beside)
        put_in_place(beside, path)


def _most_of_record(weights: Path) -> int:
    """A vocabulary is as long as its table of weights, at most; and no longer than ``MOST_WORDS`` bytes."""
    return MOST_BYTES + min(weights.stat().st_size if weights.is_file() else 0, MOST_WORDS)


def read(path: Path, layout: Layout = WITNESS) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The record and the weights, after every check that needs no mathematics."""
    record = read_record(path, layout)
    if layout is WITNESS and "shards_sha256" in record:
        return record, _read_shards(path, record)
    file = path / layout.weights
    if not file.is_file():
        raise BadWitnessFile(f"{path} has no {layout.weights}.")
    if file_sha256(file) != record.get("weights_sha256"):
        raise BadWitnessFile(
            f"{file} was truncated or changed: its SHA-256 is not the one that {layout.record} states."
        )
    with malformed(file, "cannot be read"):
        try:
            weights = load_file(file)
        except SafetensorError as error:
            raise BadWitnessFile(f"{file} cannot be read: {error}") from error
    check_booleans(weights, file)
    return record, weights


def _read_shards(path: Path, record: dict[str, Any]) -> dict[str, Tensor]:
    """Weights in several files, mapped, after every file has been compared with its recorded hash."""
    stated = record["shards_sha256"]
    named = {shards.INDEX, *shards.read_index(path).values()}
    if not isinstance(stated, dict) or stated.keys() != named:
        raise BadWitnessFile(f"{path} does not state a SHA-256 for every file of weights that its index names.")
    for name, sha256 in stated.items():
        if not is_regular(path / name):
            raise BadWitnessFile(f"{path} has no {name}.")
        if file_sha256(path / name) != sha256:
            raise BadWitnessFile(f"{path / name} was truncated or changed: its SHA-256 is not the one stated.")
    weights, files = shards.map_shards(path)
    check_booleans(weights, path)
    return shards.Mapped(weights, files)


def read_record(path: Path, layout: Layout = WITNESS) -> dict[str, Any]:
    recover(path, layout)
    file = path / layout.record
    if not file.is_file():
        raise Unreadable(f"There is no saved {layout.kind} at {path} (no {layout.record} there).")
    record = read_json(file, _most_of_record(path / layout.weights), f"a {layout.kind} record")
    if not isinstance(record, dict) or "format_version" not in record:
        raise BadWitnessFile(f"{file} was truncated or changed: it is not a {layout.kind} record.")
    version = record["format_version"]
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        newer = Unreadable if type(version) is int and version > FORMAT_VERSION else BadWitnessFile
        raise newer(
            f"{file} has format version {str(version)[:40]}, and this package reads up to {FORMAT_VERSION}: update "
            "thereexists."
        )
    if record.get("digest") != record_digest(record):
        raise BadWitnessFile(f"{file} was changed after it was written: its digest does not match.")
    if record.get("kind") != layout.kind:
        raise BadWitnessFile(f"{path} holds a {record.get('kind')!r}, where a {layout.kind!r} is wanted.")
    if layout is WITNESS:
        kind_of(record, file)
    return record


def check_dtype(record: dict[str, Any], weights: dict[str, Tensor]) -> None:
    """Every number must have the dtype that the record states, and that must be float64."""
    wanted = {name: torch.bool if name.endswith(".pattern") else torch.float64 for name in weights}
    wrong = sorted(name for name, weight in weights.items() if weight.dtype != wanted[name])
    if record.get("dtype") != "float64" or wrong:
        found = f"the array {wrong[0]} is {weights[wrong[0]].dtype}" if wrong else f"it states {record.get('dtype')!r}"
        raise BadWitnessFile(
            f"A witness of this kind must be in float64, because a lower precision is not safe for it; {found}."
        )


def check_writable(path: Path, layout: Layout = WITNESS) -> None:
    """Refuse, before any work, a place that must not be overwritten or cannot be written."""
    check_elsewhere(path)
    recover(path, layout)
    if path.exists() and not (path.is_dir() and _only_ours(path, layout)):
        raise InvalidInput(f"{path} exists and is not a saved {layout.kind}; it is left alone. Choose another folder.")
    check_place(path)


@contextmanager
def reserved(path: Path, layout: Layout = WITNESS) -> Iterator[None]:
    """A place for an artefact that is being made: checked before any work, and reserved until it is done."""
    with no_empty_folders(path):
        check_writable(path, layout)
        with one_writer(path):
            yield


def check_elsewhere(path: Path) -> None:
    """Refuse the folder in which the user is, and those around it: a folder that is replaced is gone for a moment."""
    here, place = Path.cwd(), Path(os.path.realpath(path))  # of links in a circle, too
    if place == here or place in here.parents:
        raise InvalidInput(f"{path} is the folder you are in, or around it; choose another one with --out.")


def check_place(path: Path) -> None:
    """Refuse a place where no folder can be written: the folder above it is made, and one beside is tried."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tried = fresh_folder(path)
        with suppress(FileNotFoundError):  # another writer took it for one that was left
            tried.rmdir()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"Nothing can be written to the folder {path.parent}: {why}.") from error


def _only_ours(path: Path, layout: Layout) -> bool:
    """Whether a folder is empty, or holds an artefact of this kind and not one file more."""
    if any(file.is_symlink() or file.is_dir() != (file.name == JOB) for file in path.iterdir()):
        return False
    names = {file.name for file in path.iterdir()}
    names -= {name for name in names if any(is_part_of(name, of) for of in _BESIDE)}  # of saves that were killed
    own = {layout.record, layout.weights}
    if layout is WITNESS and shards.INDEX in names:
        try:
            listed = shards.read_index(path).values()
        except ThereExistsError:
            return False
        own = {layout.record, shards.INDEX, *(name for name in listed if fnmatch(name, "model-*-of-*.safetensors"))}
    return not names or own <= names <= own | {*_BESIDE}


def _written(record: dict[str, Any]) -> str:
    try:
        return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError as error:
        raise InvalidInput(f"Nothing was saved: a number of the record is not finite ({error}).") from error


def recover(path: Path, layout: Layout = WITNESS) -> None:
    """Put back what a save that was killed between its two renames has left aside, and say so."""
    replaced_folders.recover(path, lambda old: (old / layout.record).is_file(), layout.kind)
