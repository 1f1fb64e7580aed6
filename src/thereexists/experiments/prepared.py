"""A corpus as a file of tokens, ``NAME.tokens.xz``: half the work of a run done elsewhere, and no text to carry.

    python -m thereexists.experiments prepare table-a --size base --data DATA --out PREPARED

The file stands where the text would (``wiki.tokens.xz`` for ``wiki.txt.xz``) and says which text it was made from
(name, bytes, SHA-256) and by which tokenizer, so that a run on it leaves the same record as a run on the text. Inside
the xz: one line of JSON, then the tokens as little-endian uint16.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import parse_json
from thereexists.experiments.corpus import Source
from thereexists.experiments.files import write_atomically
from thereexists.experiments.tokenizer import from_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SUFFIX = ".tokens.xz"
_VERSION = 1
# Tokens repeat as pairs of bytes at even places: saying so makes the file a tenth smaller.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "pb": 1, "lp": 1, "lc": 3}]


@dataclass(frozen=True)
class Prepared:
    """The head of such a file."""

    source: Source  # the text
    vocabulary: int  # the size that was asked for
    tokenizer: Tokenizer
    count: int
    sha256: str  # of the tokens


def is_prepared(path: Path) -> bool:
    return path.name.endswith(SUFFIX)


def prepared_name(path: Path) -> Path:
    """``wiki.tokens.xz`` for ``wiki.txt``, ``wiki.txt.xz`` and ``wiki.txt.gz``."""
    plain = path.with_suffix("") if path.suffix in (".xz", ".gz") else path
    return plain.with_name(plain.stem + SUFFIX)


def write(path: Path, tokens: np.ndarray, source: Source, vocabulary: int, tokenizer: Tokenizer) -> None:
    body = np.ascontiguousarray(tokens, "<u2").tobytes()
    head = {
        "thereexists_tokens": _VERSION,
        "source": source.record(),
        "vocabulary": vocabulary,
        "tokenizer": tokenizer.to_str(),
        "count": len(tokens),
        "sha256": hashlib.sha256(body).hexdigest(),
    }

    def fill(beside: Path) -> None:
        with lzma.open(beside, "wb", filters=_FILTERS) as file:
            file.write(json.dumps(head, ensure_ascii=True).encode() + b"\n")
            file.write(body)

    write_atomically(path, fill)


def read_head(path: Path) -> Prepared:
    with _opened(path) as file:
        return _head(path, _guarded(path, file.readline))


def read_tokens(path: Path) -> np.ndarray:
    """All tokens, checked against the head."""
    with _opened(path) as file:
        head = _head(path, _guarded(path, file.readline))
        body = _guarded(path, file.read)
    if len(body) != 2 * head.count or hashlib.sha256(body).hexdigest() != head.sha256:
        raise InvalidInput(f"{path} does not hold the tokens that its first line promises; make it again.")
    tokens = np.frombuffer(body, "<u2")
    if tokens.size and tokens.max() >= head.tokenizer.get_vocab_size():
        raise InvalidInput(f"{path} holds tokens that its own tokenizer does not have; make it again.")
    return tokens


def _opened(path: Path) -> Any:
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    return lzma.open(path, "rb")


def _guarded(path: Path, read: Any) -> bytes:
    try:
        return read()
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise InvalidInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _head(path: Path, line: bytes) -> Prepared:
    try:
        head = parse_json(line, str(path), InvalidInput)
        if head["thereexists_tokens"] != _VERSION:
            raise ValueError
        source = Source(**head["source"])
        return Prepared(source, head["vocabulary"], from_text(head["tokenizer"], path), head["count"], head["sha256"])
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(
            f"{path} is not a file of tokens of this version; make it with python -m thereexists.experiments prepare."
        ) from None
