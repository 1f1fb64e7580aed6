"""The folder of a suite, as a stranger may have left it: its record, its texts, its hashes.

Whoever checks, answers or scores a suite reads it here. What cannot be read is refused in one sentence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thereexists._version import __version__
from thereexists.core.errors import InvalidInput, Obstructed, Unreadable
from thereexists.core.json_files import read_json
from thereexists.core.memory import is_out_of_memory, too_little_memory
from thereexists.core.regular_files import read_regular
from thereexists.suites.hashes import sha256
from thereexists.suites.plain import is_whole

MARK = "suite.json"
FORMATS = ("thereexists verifier suite", "thereexists circuit suite")
VERSION = 1
MOST_TEXT = 16 << 20
MOST = 1_000_000  # instances or models


@dataclass(frozen=True)
class Checked:
    """How many instances there are, every problem that was found, and what kept us from looking at the rest."""

    instances: int
    problems: tuple[str, ...]
    obstacle: str | None = None

    @property
    def holds(self) -> bool | None:
        """None: no problem was found, and not everything could be checked."""
        return False if self.problems else None if self.obstacle else True


def gathered(instances: int, found: Iterator[str]) -> Checked:
    """All problems, to the first obstacle: it says nothing about the suite, and what was found before it counts."""
    problems: list[str] = []
    try:
        for problem in found:
            problems.append(problem)
    except Exception as error:
        if (said := obstacle(error)) is None:
            raise
        return Checked(instances, tuple(problems), said)
    return Checked(instances, tuple(problems))


def obstacle(error: Exception) -> str | None:
    """What an error says of this machine, where it says nothing of the suite.

    A file of the suite that is missing or no file at all is an ``InvalidInput``, so an ``OSError`` is about our own.
    """
    if is_out_of_memory(error):
        return too_little_memory(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'A file'} cannot be used: {error.strerror or error}."
    return str(error) if isinstance(error, Obstructed | Unreadable) else None


def read_suite(folder: Path) -> dict[str, Any]:
    """suite.json of a folder of ours: format, version, seed, count and the hashes are what they should be."""
    if not (folder / MARK).is_file():
        raise InvalidInput(f"{folder} holds no suite: {MARK} is missing. Make one with `thereexists suite verifier`.")
    record = read_json(folder / MARK)
    files = record.get("files") if isinstance(record, dict) else None
    if not isinstance(files, dict) or not all(isinstance(digest, str) for digest in files.values()):
        raise InvalidInput(f"{folder / MARK} is not the record of a suite.")
    if record.get("format") not in FORMATS or not is_whole(record.get("version"), VERSION, VERSION):
        raise InvalidInput(
            f"{folder / MARK} must say that it is a {' or a '.join(FORMATS)}, version {VERSION}; it says "
            f"{record.get('format')!r}, {record.get('version')!r}."
        )
    if not is_whole(record.get("seed"), 0, 10**100) or not is_whole(record.get("count"), 1, MOST):
        raise InvalidInput(f"{folder / MARK} must have a seed of at least 0, and a count from 1 to {MOST:,}.")
    return record


def same_version(folder: Path, record: dict[str, Any], fields: set[str]) -> None:
    """What a seed gives is known of this version only. ``fields``: those of the record, and no others."""
    if record.get("package_version") != __version__:
        raise Obstructed(
            f"{folder} was made by version {record.get('package_version')!r}, and this is {__version__}: the same "
            "seed may give other files in it. Check it with that version."
        )
    if record.keys() != fields:
        raise InvalidInput(f"{folder / MARK} must have {', '.join(sorted(fields))}; it has others.")


def read_text(file: Path) -> str:
    """A text of the suite, byte by byte: an end of line is what it is."""
    content = read_regular(file, MOST_TEXT, InvalidInput)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}.") from None


def hash_problems(folder: Path, record: dict[str, Any]) -> Iterator[str]:
    """Files that are there and have no hash, or the other way round, and those that have another."""
    there = files_of(folder) - {MARK}
    for name in sorted(there - record["files"].keys()):
        yield f"{name} is in the folder but not in {MARK}"
    for name in sorted(record["files"].keys() - there):
        yield f"{name} is in {MARK} but not in the folder"
    for name in sorted(there & record["files"].keys()):
        try:
            if _is_another(folder, record, name):
                yield f"{name} has another SHA-256 than {MARK} says"
        except Obstructed:
            raise
        except InvalidInput as error:
            yield str(error)


def require_hashes(folder: Path, record: dict[str, Any], names: Iterable[str]) -> None:
    """The files that somebody is about to read are those that the record has the hashes of."""
    for name in names:
        if name not in record["files"]:
            raise InvalidInput(f"{folder / name} is not in {MARK}, which must list every file of the suite.")
        if _is_another(folder, record, name):
            raise InvalidInput(
                f"{folder / name} has another SHA-256 than {MARK} says, so it was changed; make the suite again."
            )


def _is_another(folder: Path, record: dict[str, Any], name: str) -> bool:
    return sha256(folder / name) != record["files"][name]


def page_problems(folder: Path, pages: dict[str, str]) -> Iterator[str]:
    """Pages and schemas that are not what this package writes."""
    for name, text in pages.items():
        if name in files_of(folder) and read_text(folder / name) != text:
            yield f"{name} is not the one that every suite has"


def stray_problems(folder: Path, wanted: set[str]) -> Iterator[str]:
    """Files that belong to no instance, whatever the hashes say, and files that are missing."""
    there = files_of(folder)
    for name in sorted(there - wanted):
        yield f"{name} is not a file of this suite"
    for name in sorted(wanted - there):
        yield f"{name} is missing"


def files_of(folder: Path) -> set[str]:
    """Every file below a folder, by its path from there; a folder that cannot be looked into is no empty one."""
    found: set[str] = set()
    for place, folders, files in os.walk(folder, onerror=_raised):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]  # nothing behind it is ours
        found |= {Path(place, name).relative_to(folder).as_posix() for name in files + links}
        if len(found) > 16 * MOST:
            raise InvalidInput(f"{folder} holds more than {16 * MOST:,} files, more than any suite has.")
    return found


def _raised(error: OSError) -> None:
    raise error
