"""What a stock checkpoint can be made of without a witness, by name: ``addition:10``, ``reverse:10``, …"""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from thereexists.certificates.llama.claims import Claim, read_claimed
from thereexists.core.errors import InvalidInput


@dataclass(frozen=True)
class Named:
    """How it is written, and what makes the claim of what stands behind the first colon."""

    written: str
    what: str
    make: Callable[[str], Claim]


def named(reference: str) -> Claim | None:
    """The claim, or None where no name of ours stands before the first colon."""
    name, colon, rest = reference.partition(":")
    return NAMES[name].make(rest) if colon and name in NAMES else None


def _whole(text: str, written: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise InvalidInput(f"Write it as {written}: a whole number must follow the colon; got {text!r} instead.")
    return int(text)


def _addition(rest: str) -> Claim:
    return read_claimed({"kind": "addition", "digits": _whole(rest, "addition:10")})


def _reverse(rest: str) -> Claim:
    return read_claimed({"kind": "reverse", "letters": list(string.ascii_lowercase), "n": _whole(rest, "reverse:10")})


def _recall(rest: str) -> Claim:
    keys, values = list(string.ascii_lowercase), list(string.digits)
    return read_claimed({"kind": "recall", "keys": keys, "values": values, "n": _whole(rest, "recall:16")})


def _ngram(rest: str) -> Claim:
    from thereexists.exports.ngrams import ngram_of_file

    order, _, file = rest.partition(":")
    return ngram_of_file(Path(file), _whole(order, "ngram:6:text.txt"))


NAMES = {
    "addition": Named("addition:10", "two numbers of ten digits, as text", _addition),
    "reverse": Named("reverse:10", "words of up to ten letters a to z", _reverse),
    "recall": Named("recall:16", "up to 16 letters with a digit each, by an induction head", _recall),
    "ngram": Named("ngram:6:text.txt", "the characters of a text, by the last six", _ngram),
}
