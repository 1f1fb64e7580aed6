"""A corpus as one stream of tokens, kept in a memory-mapped cache named after what it was made from.

A corpus is one file or several, each of text or of tokens (``prepared.py``). Articles are joined by [SEP]. The name of
a file's cache is the SHA-256 of the file and of the tokenizer, so a changed file is never mistaken for the old one.
Cutting the stream into sequences is left to the task: one cache, any length.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.experiments import tokenizer as tokenizers
from thereexists.experiments.corpus import Source, read_articles, text_sample
from thereexists.experiments.files import write_atomically
from thereexists.experiments.prepared import is_prepared, read_head, read_tokens
from thereexists.experiments.tokenizer import SEP

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_CHUNK = 4096  # articles encoded at once: all cores busy, memory bounded


@dataclass(frozen=True)
class Stream:
    """The tokens of one file, or of several one after the other."""

    sources: tuple[Source, ...]
    tokens: np.ndarray  # (length,) uint16; memory-mapped if of one file

    @property
    def name(self) -> str:
        return " + ".join(source.name for source in self.sources)

    def record(self) -> dict[str, Any]:
        if len(self.sources) == 1:
            return self.sources[0].record() | {"tokens": len(self.tokens)}
        return {"name": self.name, "files": [s.record() for s in self.sources], "tokens": len(self.tokens)}


def default_cache() -> Path:
    return Path(os.environ.get("THEREEXISTS_CACHE") or Path.home() / ".cache" / "thereexists")


def corpus_tokenizer(
    corpus: Path | Sequence[Path], size: int, cache: Path, given: Path | None = None
) -> tuple[Tokenizer, str]:
    """The tokenizer of a corpus and its SHA-256: ``given``, or trained once on a sample and kept in the cache.

    Of several files the sample is of all of them. Files of tokens bring the tokenizer they were made with.
    """
    files = files_of(corpus)
    if given is not None:
        return tokenizers.load(given), _sha(tokenizers.load(given))
    if any(map(is_prepared, files)):
        return _brought(files, size)
    sources = [source_of(file) for file in files]
    path = cache / f"wordpiece-{size}-{_joint(sources)[:16]}.json"
    if not path.is_file():
        articles = [article for file in files for article in read_articles(file)]
        tokenizers.save(tokenizers.train_wordpiece(text_sample(articles, tokenizers.SAMPLE), size), path)
    tokenizer = tokenizers.load(path)
    return tokenizer, _sha(tokenizer)


def stream(corpus: Path | Sequence[Path], tokenizer: Tokenizer, cache: Path) -> Stream:
    """All tokens of the corpus, encoded once."""
    parts = [_stream_of_one(file, tokenizer, cache) for file in files_of(corpus)]
    if len(parts) == 1:
        return parts[0]
    return Stream(tuple(part.sources[0] for part in parts), np.concatenate([part.tokens for part in parts]))


def files_of(corpus: Path | str | Sequence[Path | str]) -> list[Path]:
    """A corpus is a file or several."""
    return [Path(corpus)] if isinstance(corpus, str | Path) else [Path(file) for file in corpus]


def source_of(file: Path) -> Source:
    """The text, also where its tokens stand in its place."""
    return read_head(file).source if is_prepared(file) else Source.of(file)


def _stream_of_one(file: Path, tokenizer: Tokenizer, cache: Path) -> Stream:
    source, sha = source_of(file), _sha(tokenizer)
    if is_prepared(file) and _sha(read_head(file).tokenizer) != sha:
        raise InvalidInput(
            f"The tokens of {file} were made with another tokenizer than the rest; prepare all files together."
        )
    path = cache / f"tokens-{source.sha256[:16]}-{sha[:16]}.npy"
    if not path.is_file():
        pieces = _encode(read_articles(file), tokenizer) if not is_prepared(file) else [read_tokens(file)]
        tokens = np.concatenate(list(pieces))
        write_atomically(path, lambda beside: _save(beside, tokens))
    return Stream((source,), np.load(path, mmap_mode="r"))


def _brought(files: list[Path], size: int) -> tuple[Tokenizer, str]:
    text = next((file for file in files if not is_prepared(file)), None)
    if text is not None:
        raise InvalidInput(
            f"{text} holds text, and another file of the corpus holds tokens; give all of them in one form."
        )
    heads = [read_head(file) for file in files]
    for file, head in zip(files, heads, strict=True):
        if head.vocabulary != size:
            raise InvalidInput(f"{file} was made for a vocabulary of {head.vocabulary}, and {size} is asked for.")
    return heads[0].tokenizer, _sha(heads[0].tokenizer)


def _joint(sources: Sequence[Source]) -> str:
    """One SHA-256 for several files, in their order; that of the file itself where there is only one."""
    if len(sources) == 1:
        return sources[0].sha256
    return hashlib.sha256(" ".join(source.sha256 for source in sources).encode()).hexdigest()


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
            f"{stream.name} has {len(stream.tokens)} tokens, fewer than one sequence of {length}: "
            "give a longer corpus or a smaller --length."
        )
    return stream.tokens[: count * length].reshape(count, length)
