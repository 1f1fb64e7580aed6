"""Reading data: plain text of articles, sentence pairs with labels, single sentences with labels, parallel text.

Every reader takes a path the user gave, plain or compressed (``.xz``, ``.gz``), and answers a missing, empty or
malformed file with one sentence. ``Source`` says what was read, for the record of a run: name, bytes, SHA-256.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import lines_of
from thereexists.core.regular_files import file_sha256

NLI_LABELS = ("entailment", "neutral", "contradiction")
_OPENERS = {".xz": lzma.open, ".gz": gzip.open}
_SUFFIXES = ("", ".xz", ".gz")


@dataclass(frozen=True)
class Source:
    """A file that was read: what a result must say about its data."""

    name: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Source:
        return cls(f"{path.parent.name}/{path.name}" if path.parent.name else path.name, *_size_and_hash(path))

    def record(self) -> dict[str, Any]:
        return asdict(self)


def _size_and_hash(path: Path) -> tuple[int, str]:
    _must_be_a_file(path)
    return path.stat().st_size, file_sha256(path)


def read_text(path: Path) -> str:
    """The whole text of a plain, ``.xz`` or ``.gz`` file; never empty."""
    _must_be_a_file(path)
    opener = _OPENERS.get(path.suffix, open)
    try:
        with opener(path, "rb") as stream:
            text = stream.read().decode("utf-8")
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise InvalidInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} must hold UTF-8 text; byte {error.start} is not.") from error
    if not text.strip():
        raise InvalidInput(f"{path} is empty; give a file with text in it.")
    return text


def read_articles(path: Path) -> list[str]:
    """Articles separated by blank lines."""
    return [article for article in re.split(r"\n\s*\n", read_text(path)) if article.strip()]


def read_lines(path: Path) -> list[str]:
    """One sentence a line, blank ones kept, because line numbers align parallel files."""
    return read_text(path).rstrip("\n").split("\n")


def read_parallel(source: Path, target: Path) -> list[tuple[str, str]]:
    """Two files whose lines translate each other; pairs with a blank side are dropped."""
    left, right = read_lines(source), read_lines(target)
    if len(left) != len(right):
        raise InvalidInput(
            f"{source} and {target} must have the same number of lines; got {len(left)} and {len(right)} instead."
        )
    return [(a.strip(), b.strip()) for a, b in zip(left, right, strict=True) if a.strip() and b.strip()]


def read_nli(path: Path) -> tuple[list[tuple[str, str]], list[int]]:
    """One JSON object per line: premise, hypothesis and label, a name or its number (−1: no gold label, dropped)."""
    pairs, labels = [], []
    for number, line in enumerate(lines_of(read_text(path)), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            pair, label = (row["premise"], row["hypothesis"]), row["label"]
            if not all(isinstance(sentence, str) for sentence in pair):
                raise TypeError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InvalidInput(
                f"{path}, line {number}, must be a JSON object with premise, hypothesis and label; got {_short(line)}."
            ) from None
        if label in (-1, "-"):
            continue
        labels.append(_nli_label(label, path, number))
        pairs.append(pair)
    return _non_empty(pairs, path), labels


def _nli_label(label: object, path: Path, number: int) -> int:
    if isinstance(label, str) and label in NLI_LABELS:
        return NLI_LABELS.index(label)
    if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < len(NLI_LABELS):
        return label
    raise InvalidInput(f"{path}, line {number}: the label must be one of {', '.join(NLI_LABELS)}; got {label!r}.")


def read_sst2(path: Path) -> tuple[list[tuple[str]], list[int]]:
    """A header line ``sentence<TAB>label``, then one sentence and 0 or 1 a line."""
    lines = lines_of(read_text(path))
    if lines[0].split("\t") != ["sentence", "label"]:
        raise InvalidInput(
            f"{path} must begin with the line 'sentence<TAB>label', as SST-2 does; got {_short(lines[0])}."
        )
    rows = []
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        sentence, _, label = line.rpartition("\t")
        if not sentence or label not in ("0", "1"):
            raise InvalidInput(f"{path}, line {number}, must be a sentence, a tab and 0 or 1; got {_short(line)}.")
        rows.append(((sentence.strip(),), int(label)))
    rows = _non_empty(rows, path)
    return [row[0] for row in rows], [row[1] for row in rows]


def find(folder: Path, stem: str, *endings: str) -> Path:
    """``folder/stem + ending``, plain or compressed: the first that exists."""
    if not folder.is_dir():
        raise InvalidInput(f"There is no folder {folder}; it must hold {stem}{endings[0]} (or .xz, .gz).")
    for ending in endings:
        for suffix in _SUFFIXES:
            path = folder / f"{stem}{ending}{suffix}"
            if path.is_file():
                return path
    raise InvalidInput(f"There is no {stem}{' or '.join(endings)} (nor .xz, .gz) in {folder}.")


def text_sample(texts: Iterable[str], characters: int) -> list[str]:
    """A deterministic sample spread over the whole: every k-th text, about ``characters`` of them in all."""
    texts = list(texts)
    every = max(1, round(sum(map(len, texts)) / characters))
    return texts[::every]


def _must_be_a_file(path: Path) -> None:
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; a file is wanted.")
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")


def _non_empty(rows: list, path: Path) -> list:
    if not rows:
        raise InvalidInput(f"{path} holds no labelled example.")
    return rows


def _short(line: str) -> str:
    return repr(line if len(line) <= 60 else line[:57] + "...")
