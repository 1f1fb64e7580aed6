"""The folder of a job: one file for every finished chunk, with its range, its job and a code. A gap is refused.

Whoever finishes a chunk writes its file beside and renames it, so a file is whole or not there. A job that was stopped
goes on from what is there; nothing finished is done again. Every file carries a code that only this user's own jobs can
make (``secret.py``): what somebody else has put into the folder, however well it fits, is not a chunk and is
thrown away.
"""

from __future__ import annotations

import hmac
import json
import re
import shutil
from pathlib import Path
from typing import Any

from thereexists.core.atomic_files import is_part_of, write_beside
from thereexists.core.errors import BadWitnessFile, InvalidInput, Obstructed
from thereexists.core.json_files import too_deep
from thereexists.core.regular_files import read_regular
from thereexists.parallel.ranges import Range, missing
from thereexists.parallel.secret import code_of, job_key

ABOUT = "job.json"
CODE = "code"
MOST_BYTES = 64 << 20  # of one file
_NAME = re.compile(r"(\d{12})-(\d{12})\.json", re.ASCII)


class JobFolder:
    """The finished chunks of the job ``key``, which has ``total`` blocks. Another job's chunks are thrown away."""

    def __init__(self, path: Path, key: str, total: int):
        self.path, self.key, self.total = path, key, total
        self.secret = job_key(key)
        self.chunk: int | None = None  # blocks of a chunk, once that is settled
        about = _read(path / ABOUT)
        if about is None or not _signed(about, self.secret) or (about["job"], about["blocks"]) != (key, total):
            self._start_afresh()
        else:
            self.chunk = about["chunk"]

    def settle(self, chunk: int) -> None:
        """Fix the raster of this job."""
        self.chunk = chunk
        self._settle()

    def _settle(self) -> None:
        _write(self.path / ABOUT, {"job": self.key, "blocks": self.total, "chunk": self.chunk}, self.secret)

    def finished(self) -> dict[Range, Path]:
        """Every chunk file that is whole and of this job; a broken one is no chunk, and its work is done again."""
        found = {}
        for file in filter(_is_named_as_a_chunk, self.path.iterdir()):
            chunk = _read(file)
            if chunk is None or not _whole(chunk, self.key, self.secret) or file.name != name_of(_range(chunk)):
                _throw_away(file)
                continue
            found[_range(chunk)] = file
        return found

    def count(self) -> tuple[int, int]:
        """(chunks, blocks) that have a file, by name alone: for progress, not for proof."""
        ends = (_NAME.fullmatch(file.name) for file in self.path.iterdir())
        sizes = [int(found[2]) - int(found[1]) for found in ends if found]
        return len(sizes), sum(sizes)

    def results(self) -> list[Any]:
        """The results of all blocks, in their order. Refuses a gap, an overlap, and a chunk with too few results."""
        chunks = self.finished()
        gaps = missing(chunks, self.total)
        if gaps:
            raise BadWitnessFile(
                f"The job in {self.path} is not complete: the blocks {gaps[0].first} to {gaps[0].stop} of {self.total} "
                "are missing."
            )
        ordered = [_read(chunks[part]) for part in sorted(chunks)]
        return [result for chunk in ordered for result in (chunk or {})["results"]]

    def _start_afresh(self) -> None:
        if self.path.is_symlink():  # what it leads to is not ours to empty
            raise Obstructed(f"The job's folder {self.path} is a link; remove it, or give the folder itself.")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            names = {file.name for file in self.path.iterdir()}
        except OSError as error:
            raise Obstructed(f"The job's folder {self.path} cannot be used: {error.strerror}.") from error
        if not _are_of_a_job(names) or (ABOUT in names and not _describes_a_job(self.path / ABOUT)):
            raise Obstructed(f"{self.path} holds files that are not a job's; give an empty or a new folder.")
        for file in self.path.iterdir():
            _throw_away(file)
        self._settle()


def remove_job(path: Path) -> None:
    """The folder of a job that is done with; what is not a job's stays, and the folder with it."""
    if path.is_dir() and not path.is_symlink() and _are_of_a_job({file.name for file in path.iterdir()}):
        shutil.rmtree(path, ignore_errors=True)


def _are_of_a_job(names: set[str]) -> bool:
    return all(name == ABOUT or _NAME.fullmatch(name) or _is_left_over(name) for name in names)


def _is_named_as_a_chunk(file: Path) -> bool:
    return _NAME.fullmatch(file.name) is not None


def _describes_a_job(file: Path) -> bool:
    """Whether a job of ours, whoever's it was, may have written it: somebody else's ``job.json`` is not thrown away."""
    about = _read(file)
    return about is not None and about.keys() == {"job", "blocks", "chunk", CODE}


def put(folder: Path, key: str, part: Range, results: list[Any], secret: bytes) -> None:
    """Write one finished chunk, whole or not at all. Whoever has the job's key may; the same chunk is the same file."""
    _write(folder / name_of(part), {"job": key, "first": part.first, "stop": part.stop, "results": results}, secret)


def name_of(part: Range) -> str:
    return f"{part.first:012d}-{part.stop:012d}.json"


def _range(chunk: dict[str, Any]) -> Range:
    return Range(chunk["first"], chunk["stop"])


def _whole(chunk: dict[str, Any], key: str, secret: bytes) -> bool:
    if chunk.keys() != {"job", "first", "stop", "results", CODE} or not _signed(chunk, secret):
        return False
    return chunk["job"] == key and len(chunk["results"]) == chunk["stop"] - chunk["first"]


def _signed(content: dict[str, Any], secret: bytes) -> bool:
    stated = content.get(CODE)
    return isinstance(stated, str) and stated.isascii() and hmac.compare_digest(stated, _code(content, secret))


def _code(content: dict[str, Any], secret: bytes) -> str:
    return code_of(secret, json.dumps({k: v for k, v in content.items() if k != CODE}, sort_keys=True))


def _read(file: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(read_regular(file, MOST_BYTES).decode("utf-8"))
    except (ValueError, RecursionError):  # what is no ordinary file is a ValueError too
        return None
    return content if isinstance(content, dict) and not too_deep(content) else None  # or writing it again would fail


def _write(file: Path, content: dict[str, Any], secret: bytes) -> None:
    text = json.dumps({**content, CODE: _code(content, secret)})
    if len(text) > MOST_BYTES:  # or it would be thrown away again when it is read
        raise Obstructed(f"A chunk of this job has {len(text):,} bytes, more than {MOST_BYTES:,}; make chunks smaller.")
    try:
        write_beside(file, text)
    except InvalidInput as error:
        raise Obstructed(str(error)) from error


def _is_left_over(name: str) -> bool:
    """Whether a killed writer of one of our files has left it; a user's own ``movie.part`` is not that."""
    chunk = name[1 : 1 + len(name_of(Range(0, 1)))]
    return is_part_of(name, ABOUT) or (_NAME.fullmatch(chunk) is not None and is_part_of(name, chunk))


def _throw_away(file: Path) -> None:
    """Whatever it is: a link goes, not what it leads to."""
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file, ignore_errors=True)
    else:
        file.unlink(missing_ok=True)
