"""An n-gram model of a text: for every ``order`` characters that occur in it, the character that follows most often."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from thereexists.certificates.llama.lookup import MOST_READ, MOST_WORDS
from thereexists.certificates.llama.ngram import Ngram
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.functions.pairs import read_text

N, MORE = 256, 256


def ngram(text: str, order: int, n: int = N, more: int = MORE) -> Ngram:
    """Every line that is not empty is a text of its own, which ends. Of equally many the first to occur is taken."""
    if not 2 <= order <= MOST_READ:
        raise InvalidInput(f"'order' must be 2 to {MOST_READ} characters; got {order} instead.")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InvalidInput("The text is empty; at least one line is needed.")
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        for k, follows in enumerate([*line, ""]):
            counts[("\0" * order + line)[k : k + order]][follows] += 1  # no text has \0: it stands before the start
    symbols = tuple(sorted({symbol for line in lines for symbol in line}))
    number = {symbol: k for k, symbol in enumerate(symbols)}
    best = {context: seen.most_common(1)[0][0] for context, seen in counts.items()}
    rows = tuple(
        (tuple(number[symbol] for symbol in context if symbol != "\0"), number[follows])
        for context, follows in best.items()
        if follows
    )
    if len(rows) > MOST_WORDS:
        raise CannotBuild(
            f"The text has {len(rows):,} contexts; at most {MOST_WORDS:,} can be stored. Choose a lower order."
        )
    return Ngram.read(Ngram(symbols, rows, order, n, more).describe())


def ngram_of_file(path: Path, order: int) -> Ngram:
    text = read_text(path)
    if "\0" in text:
        raise InvalidInput(f"{path} holds the character 0, which no text has.")
    return ngram(text, order)
