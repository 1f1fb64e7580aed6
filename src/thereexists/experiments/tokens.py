"""A corpus as one stream of tokens, kept in a memory-mapped cache named after what it was made from.

Articles are joined by [SEP]. The name of the cache is the SHA-256 of the corpus file and of the tokenizer, so a changed
file is never mistaken for the old one. Cutting the stream into sequences is left to the task: one cache, any length.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thereexists.errors import InvalidInput
from thereexists.experiments import tokenizer as tokenizers
from thereexists.experiments.corpus import Source, read_articles, text_sample
from thereexists.experiments.files import write_atomically
from thereexists.experiments.tokenizer import SEP

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_CHUNK = 4096  # articles encoded at once: all cores busy, memory bounded


@dataclass(frozen=True)
class Stream:
    """The tokens of one file."""

    source: Source
    tokens: np.ndarray  # (length,) uint16, memory-mapped

    def record(self) -> dict[str, Any]:
        return self.source.record() | {"tokens": len(self.tokens)}


def default_cache() -> Path:
    return Path(os.environ.get("THEREEXISTS_CACHE") or Path.home() / ".cache" / "thereexists")


def corpus_tokenizer(corpus: Path, size: int, cache: Path, given: Path | None = None) -> tuple[Tokenizer, str]:
    """The tokenizer of a corpus and its SHA-256: ``given``, or trained once on a sample and kept in the cache."""
    if given is not None:
        return tokenizers.load(given), _sha(tokenizers.load(given))
    source = Source.of(corpus)
    path = cache / f"wordpiece-{size}-{source.sha256[:16]}.json"
    if not path.is_file():
        sample = text_sample(read_articles(corpus), tokenizers.SAMPLE)
        tokenizers.save(tokenizers.train_wordpiece(sample, size), path)
    tokenizer = tokenizers.load(path)
    return tokenizer, _sha(tokenizer)


def stream(corpus: Path, tokenizer: Tokenizer, cache: Path) -> Stream:
    """All tokens of the corpus, encoded once."""
    source = Source.of(corpus)
    path = cache / f"tokens-{source.sha256[:16]}-{_sha(tokenizer)[:16]}.npy"
    if not path.is_file():
        tokens = np.concatenate(list(_encode(read_articles(corpus), tokenizer)))
        write_atomically(path, lambda beside: _save(beside, tokens))
    return Stream(source, np.load(path, mmap_mode="r"))


def _encode(articles: Sequence[str], tokenizer: Tokenizer) -> Iterator[np.ndarray]:
    for start in range(0, len(articles), _CHUNK):
        for encoding in tokenizer.encode_batch_fast(articles[start : start + _CHUNK], add_special_tokens=False):
            yield np.array([*encoding.ids, SEP], np.uint16)


def _save(path: Path, tokens: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, tokens)


def _sha(tokenizer: Tokenizer) -> str:
    return hashlib.sha256(tokenizer.to_str().encode()).hexdigest()


def windows(stream: Stream, length: int) -> np.ndarray:
    """``(count, length)`` consecutive pieces of the stream; the rest at the end is dropped."""
    if length < 1:
        raise InvalidInput("--length leaves no room for tokens beside the special ones; give a larger one.")
    count = len(stream.tokens) // length
    if count == 0:
        raise InvalidInput(
            f"{stream.source.name} has {len(stream.tokens)} tokens, fewer than one sequence of {length}: "
            "give a longer corpus or a smaller --length."
        )
    return stream.tokens[: count * length].reshape(count, length)
